# Fuzzes PROGRAM for MEGALITH_FUZZ_SECONDS (environment; 10 by default) from the seeds in CORPUS. New inputs go to
# FOUND, which later runs in the same build folder start from too; a crashing input is left there as crash-*.
set(seconds 10)
if(DEFINED ENV{MEGALITH_FUZZ_SECONDS})
  set(seconds $ENV{MEGALITH_FUZZ_SECONDS})
endif()
file(MAKE_DIRECTORY ${FOUND})
execute_process(COMMAND ${PROGRAM} -max_total_time=${seconds} -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512
                        -max_len=65536 -print_final_stats=1 -artifact_prefix=${FOUND}/ ${FOUND} ${CORPUS}
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "fuzzer failed (${status}); the input is ${FOUND}/crash-*, oom-* or timeout-*")
endif()
