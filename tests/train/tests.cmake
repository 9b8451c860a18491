add_test(NAME train.kill COMMAND ${CMAKE_SOURCE_DIR}/tests/train/kill_test.sh $<TARGET_FILE:megalith> 50)
add_test(NAME train.kill_async COMMAND ${CMAKE_SOURCE_DIR}/tests/train/kill_test.sh $<TARGET_FILE:megalith> 50
                                       --async-save --save-interval 2)
set_tests_properties(train.kill train.kill_async PROPERTIES LABELS slow TIMEOUT 600)
add_test(NAME train.trouble COMMAND ${CMAKE_SOURCE_DIR}/tests/train/trouble_test.sh $<TARGET_FILE:megalith>)
set_tests_properties(train.trouble PROPERTIES LABELS fast TIMEOUT 300 SKIP_RETURN_CODE 77)
if(EXISTS /usr/bin/python3)
  add_test(NAME train.program
           COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/program_test.py $<TARGET_FILE:megalith>)
  set_tests_properties(train.program PROPERTIES LABELS fast TIMEOUT 300)
endif()
