# Comparisons with outside implementations.
foreach(program gpt_dump gpt_logits)
  add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.cpp)
  target_link_libraries(${program} PRIVATE megalith_all)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR})
endforeach()
if(EXISTS /usr/bin/python3)
  add_test(NAME parity.gpt_against_torch
           COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/gpt_oracle.py check $<TARGET_FILE:gpt_dump>)
  set_tests_properties(parity.gpt_against_torch PROPERTIES LABELS fast SKIP_RETURN_CODE 77 TIMEOUT 300)
  add_test(NAME parity.run_files
           COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/run_files.py $<TARGET_FILE:megalith>)
  set_tests_properties(parity.run_files PROPERTIES LABELS fast TIMEOUT 120)
endif()
