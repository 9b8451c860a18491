# The build itself: layering, packages, scripts.
add_test(NAME build.layers COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}/src -P
                                   ${CMAKE_SOURCE_DIR}/cmake/check_layers.cmake)
add_test(NAME build.layers_refuses COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/build/layers_test.sh
                                           ${CMAKE_SOURCE_DIR}/cmake/check_layers.cmake)
add_test(NAME build.scripts COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/build/scripts_test.sh ${CMAKE_SOURCE_DIR})
add_test(NAME build.quickstart_flow COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/build/quickstart_test.sh ${CMAKE_SOURCE_DIR})
set_tests_properties(build.layers build.layers_refuses build.scripts build.quickstart_flow PROPERTIES LABELS fast TIMEOUT 60
                     SKIP_RETURN_CODE 77)
add_test(NAME build.package COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/build/package_test.sh ${CMAKE_BINARY_DIR})
set_tests_properties(build.package PROPERTIES LABELS slow TIMEOUT 600 SKIP_RETURN_CODE 77)
