# The documents stay true: links, named files, commands and flags.
set(docs_tests ${CMAKE_SOURCE_DIR}/tests/docs)
add_test(NAME docs.links COMMAND ${docs_tests}/links_test.sh ${CMAKE_SOURCE_DIR})
add_test(NAME docs.flags COMMAND ${docs_tests}/flags_test.sh $<TARGET_FILE:megalith> ${CMAKE_SOURCE_DIR})
add_test(NAME docs.refuses COMMAND ${docs_tests}/refuses_test.sh $<TARGET_FILE:megalith> ${CMAKE_SOURCE_DIR})
set_tests_properties(docs.links docs.flags docs.refuses PROPERTIES LABELS fast TIMEOUT 60)
