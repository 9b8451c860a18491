if(EXISTS /usr/bin/python3)
  add_test(NAME generate.program
           COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/program_test.py $<TARGET_FILE:megalith>)
  set_tests_properties(generate.program PROPERTIES LABELS fast TIMEOUT 300)
endif()
