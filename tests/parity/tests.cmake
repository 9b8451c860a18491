# Comparisons with outside implementations.
add_executable(gpt_dump ${CMAKE_CURRENT_LIST_DIR}/gpt_dump.cpp)
target_link_libraries(gpt_dump PRIVATE megalith_all)
target_include_directories(gpt_dump PRIVATE ${CMAKE_SOURCE_DIR})
if(EXISTS /usr/bin/python3)
  add_test(NAME parity.gpt_against_torch
           COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/gpt_oracle.py check $<TARGET_FILE:gpt_dump>)
  set_tests_properties(parity.gpt_against_torch PROPERTIES LABELS fast SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()
