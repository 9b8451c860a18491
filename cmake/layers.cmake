# Every build checks which folder includes which; see check_layers.cmake.
file(GLOB_RECURSE layered_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.h ${CMAKE_SOURCE_DIR}/src/*.cpp)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/layers.stamp
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}/src -DSTAMP=${CMAKE_BINARY_DIR}/layers.stamp -P
          ${CMAKE_SOURCE_DIR}/cmake/check_layers.cmake
  DEPENDS ${layered_files} ${CMAKE_SOURCE_DIR}/cmake/check_layers.cmake
  COMMENT "Checking which folder includes which"
  VERBATIM)
add_custom_target(check_layers ALL DEPENDS ${CMAKE_BINARY_DIR}/layers.stamp)
