# Writes core/version_data.h: version, commit, compiler.
set(MEGALITH_COMMIT "unknown")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                  OUTPUT_VARIABLE found_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  RESULT_VARIABLE commit_status)
  if(commit_status EQUAL 0)
    set(MEGALITH_COMMIT ${found_commit})
  endif()
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/version_data.h.in ${CMAKE_BINARY_DIR}/generated/core/version_data.h)
