# Every library outside the standard one. docs/dependencies.md says why each was chosen and which versions are tested.
# Targets made here: megalith::format, megalith::json, megalith::toml, megalith::xxhash (required);
# megalith::pcre2, megalith::zlib, megalith::zstd, megalith::hwy, megalith::onednn, megalith::openmp (optional:
# the target exists only where the library was found; it defines MEGALITH_HAVE_NAME for whoever links it).
# megalith_note_library() keeps the list that cmake/summary.cmake prints and writes to core/build_libraries.h.
include(CheckCXXSourceCompiles)

set(MEGALITH_WITHOUT "" CACHE STRING
    "Optional libraries to leave out though present: zlib;zstd;pcre2;hwy;onednn;openmp, or all")

# megalith_note_library(NAME VERSION FOUND LOST): LOST says what a build without it cannot do.
function(megalith_note_library name version found lost)
  set_property(GLOBAL APPEND PROPERTY MEGALITH_LIBRARIES "${name}|${version}|${found}|${lost}")
endfunction()

# megalith_header_version(RESULT HEADER MACRO...): the numbers that the macros are defined as, joined by dots.
function(megalith_header_version result header)
  set(version "")
  if(EXISTS ${header})
    foreach(macro IN LISTS ARGN)
      file(STRINGS ${header} line REGEX "#[ \t]*define[ \t]+${macro}[ \t]+\"?[0-9]" LIMIT_COUNT 1)
      string(REGEX MATCH "${macro}[ \t]+\"?([0-9.]+)" unused "${line}")
      if(CMAKE_MATCH_1)
        list(APPEND version ${CMAKE_MATCH_1})
      elseif(line)
        list(APPEND version 0)
      endif()
    endforeach()
  endif()
  list(JOIN version "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

function(megalith_missing_required what package)
  message(FATAL_ERROR "${what} was not found. It is needed to build Megalith. "
                      "Run scripts/install-deps.sh, or install it (Debian: apt-get install ${package}).")
endfunction()

# Text formatting: the standard library's where it has it, else {fmt}.
add_library(megalith_format INTERFACE)
check_cxx_source_compiles("#include <format>\nint main() { return static_cast<int>(std::format(\"{}\", 1).size()) - 1; }"
                          MEGALITH_HAVE_STD_FORMAT)
if(NOT MEGALITH_HAVE_STD_FORMAT)
  find_path(FMT_INCLUDE fmt/format.h)
  if(NOT FMT_INCLUDE)
    megalith_missing_required("{fmt} 9.1 or newer (this compiler has no <format>)" libfmt-dev)
  endif()
  megalith_header_version(fmt_number ${FMT_INCLUDE}/fmt/core.h FMT_VERSION)
  if(NOT fmt_number)
    megalith_header_version(fmt_number ${FMT_INCLUDE}/fmt/base.h FMT_VERSION)
  endif()
  if(NOT fmt_number OR fmt_number LESS 90100)
    megalith_missing_required("{fmt} 9.1 or newer (this compiler has no <format>; found FMT_VERSION ${fmt_number})"
                              libfmt-dev)
  endif()
  math(EXPR fmt_major "${fmt_number} / 10000")
  math(EXPR fmt_minor "${fmt_number} / 100 % 100")
  math(EXPR fmt_patch "${fmt_number} % 100")
  target_include_directories(megalith_format SYSTEM INTERFACE ${FMT_INCLUDE})
  find_library(FMT_LIBRARY NAMES fmt)
  if(FMT_LIBRARY)
    target_link_libraries(megalith_format INTERFACE ${FMT_LIBRARY})
  else()
    target_compile_definitions(megalith_format INTERFACE FMT_HEADER_ONLY)
  endif()
  target_compile_definitions(megalith_format INTERFACE MEGALITH_FORMAT_IS_FMT)
  megalith_note_library("{fmt}" "${fmt_major}.${fmt_minor}.${fmt_patch}" TRUE "required where <format> is missing")
endif()
add_library(megalith::format ALIAS megalith_format)

find_package(nlohmann_json 3.11 QUIET)
if(NOT nlohmann_json_FOUND)
  megalith_missing_required("nlohmann-json 3.11 or newer" nlohmann-json3-dev)
endif()
add_library(megalith_json INTERFACE)
target_link_libraries(megalith_json INTERFACE nlohmann_json::nlohmann_json)
add_library(megalith::json ALIAS megalith_json)
megalith_note_library("nlohmann-json" "${nlohmann_json_VERSION}" TRUE "required")

find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE)
  megalith_missing_required("toml++ 3.3 or newer" libtomlplusplus-dev)
endif()
foreach(header version.hpp version.h)
  if(NOT toml_version)
    megalith_header_version(toml_version ${TOMLPLUSPLUS_INCLUDE}/toml++/impl/${header} TOML_LIB_MAJOR TOML_LIB_MINOR
                            TOML_LIB_PATCH)
  endif()
endforeach()
if(NOT toml_version OR toml_version VERSION_LESS 3.3)
  megalith_missing_required("toml++ 3.3 or newer (found version '${toml_version}')" libtomlplusplus-dev)
endif()
add_library(megalith_toml INTERFACE)
target_include_directories(megalith_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
add_library(megalith::toml ALIAS megalith_toml)
megalith_note_library("toml++" "${toml_version}" TRUE "required")

find_path(XXHASH_INCLUDE xxhash.h)
if(NOT XXHASH_INCLUDE)
  megalith_missing_required("xxHash 0.8 or newer" libxxhash-dev)
endif()
megalith_header_version(xxhash_version ${XXHASH_INCLUDE}/xxhash.h XXH_VERSION_MAJOR XXH_VERSION_MINOR
                        XXH_VERSION_RELEASE)
if(NOT xxhash_version OR xxhash_version VERSION_LESS 0.8)
  megalith_missing_required("xxHash 0.8 or newer (found version '${xxhash_version}')" libxxhash-dev)
endif()
add_library(megalith_xxhash INTERFACE)
target_include_directories(megalith_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
add_library(megalith::xxhash ALIAS megalith_xxhash)
megalith_note_library("xxHash" "${xxhash_version}" TRUE "required")

# megalith_optional_library(NAME TITLE MINIMUM HEADER VERSION_HEADER LIBRARY LOST MACRO...)
# Found by header and library name, so that neither pkg-config nor the library's own CMake files are needed.
function(megalith_optional_library name title minimum header version_header library lost)
  if(name IN_LIST MEGALITH_WITHOUT OR "all" IN_LIST MEGALITH_WITHOUT)
    megalith_note_library("${title}" "left out" FALSE "${lost}")
    return()
  endif()
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE ${header})
  find_library(${upper}_LIBRARY NAMES ${library})
  if(NOT ${upper}_INCLUDE OR NOT ${upper}_LIBRARY)
    megalith_note_library("${title}" "" FALSE "${lost}")
    return()
  endif()
  foreach(candidate IN LISTS version_header)
    megalith_header_version(version ${${upper}_INCLUDE}/${candidate} ${ARGN})
    if(version)
      break()
    endif()
  endforeach()
  if(NOT version OR version VERSION_LESS minimum)
    megalith_note_library("${title}" "${version}, older than ${minimum}" FALSE "${lost}")
    return()
  endif()
  add_library(megalith_lib_${name} INTERFACE)
  target_include_directories(megalith_lib_${name} SYSTEM INTERFACE ${${upper}_INCLUDE})
  target_link_libraries(megalith_lib_${name} INTERFACE ${${upper}_LIBRARY})
  target_compile_definitions(megalith_lib_${name} INTERFACE MEGALITH_HAVE_${upper})
  add_library(megalith::${name} ALIAS megalith_lib_${name})
  megalith_note_library("${title}" "${version}" TRUE "${lost}")
endfunction()

if(NOT MEGALITH_USE_ONEDNN)
  list(APPEND MEGALITH_WITHOUT onednn)
endif()
if(NOT MEGALITH_USE_OPENMP)
  list(APPEND MEGALITH_WITHOUT openmp)
endif()
megalith_optional_library(
  onednn "oneDNN" 2.6 oneapi/dnnl/dnnl.hpp oneapi/dnnl/dnnl_version.h dnnl
  "bfloat16 matrix products in float32 arithmetic, slower on processors with AMX"
  DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH)
megalith_optional_library(
  hwy "Highway" 1.0 hwy/highway.h "hwy/base.h;hwy/highway.h" hwy
  "no vectorised kernels on the cpu device"
  HWY_MAJOR HWY_MINOR HWY_PATCH)

if("openmp" IN_LIST MEGALITH_WITHOUT OR "all" IN_LIST MEGALITH_WITHOUT)
  megalith_note_library("OpenMP" "left out" FALSE "CPU loops run on the built-in thread pool")
else()
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    add_library(megalith_openmp INTERFACE)
    target_link_libraries(megalith_openmp INTERFACE OpenMP::OpenMP_CXX)
    target_compile_definitions(megalith_openmp INTERFACE MEGALITH_HAVE_OPENMP)
    add_library(megalith::openmp ALIAS megalith_openmp)
  endif()
  if(NOT OpenMP_CXX_VERSION)
    set(OpenMP_CXX_VERSION "of unknown version")
  endif()
  megalith_note_library("OpenMP" "${OpenMP_CXX_VERSION}" "${OpenMP_CXX_FOUND}"
                        "CPU loops run on the built-in thread pool")
endif()

megalith_optional_library(
  pcre2 "PCRE2" 10.40 pcre2.h pcre2.h pcre2-8
  "no byte-level BPE tokenizer: text cannot be tokenized, tokenized data still trains"
  PCRE2_MAJOR PCRE2_MINOR)
megalith_optional_library(
  zlib "zlib" 1.2 zlib.h zlib.h z "no reading of .gz text, no PNG from megalith plot"
  ZLIB_VERSION)
megalith_optional_library(
  zstd "zstd" 1.4 zstd.h zstd.h zstd "no reading of .zst text"
  ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE)
