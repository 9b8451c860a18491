# The data commands as a user meets them: killed, interrupted, given damaged files.
add_test(NAME data.interrupt COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/data/interrupt_test.sh $<TARGET_FILE:megalith>)
set_tests_properties(data.interrupt PROPERTIES LABELS fast TIMEOUT 120)
