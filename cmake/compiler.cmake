# Compiler flags shared by every target.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Megalith needs g++ 12 or newer (C++20); found ${CMAKE_CXX_COMPILER_VERSION}. "
                      "Install one and set CXX, for example: CXX=g++-12 scripts/build.sh")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "Megalith needs clang 16 or newer (tested with 19); found ${CMAKE_CXX_COMPILER_VERSION}. "
                      "Set CXX, for example: CXX=clang++-19 scripts/build.sh")
endif()

add_library(megalith_flags INTERFACE)
target_compile_options(megalith_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in "text" + std::string where there are none (GCC bug 105651).
  target_compile_options(megalith_flags INTERFACE -Wno-restrict)
endif()
if(MEGALITH_WERROR)
  target_compile_options(megalith_flags INTERFACE -Werror)
endif()
# Contraction would make a float64 result depend on the compiler; kernels ask for FMA explicitly.
target_compile_options(megalith_flags INTERFACE -ffp-contract=off)
if(MEGALITH_SANITIZE)
  target_compile_options(megalith_flags INTERFACE -fsanitize=${MEGALITH_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(megalith_flags INTERFACE -fsanitize=${MEGALITH_SANITIZE})
endif()
if(MEGALITH_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MEGALITH_BUILD_FUZZERS needs clang (libFuzzer); found ${CMAKE_CXX_COMPILER_ID}. "
                        "Use: cmake --preset fuzz. With other compilers the test suite replays the seed corpora.")
  endif()
  target_compile_options(megalith_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
find_package(Threads REQUIRED)
target_link_libraries(megalith_flags INTERFACE Threads::Threads)
target_include_directories(megalith_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
