add_test(NAME examples.smoke COMMAND ${CMAKE_SOURCE_DIR}/tests/examples/examples_test.sh $<TARGET_FILE:megalith>
                                     ${CMAKE_SOURCE_DIR})
set_tests_properties(examples.smoke PROPERTIES LABELS fast TIMEOUT 300)
