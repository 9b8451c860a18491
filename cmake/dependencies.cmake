# Every library outside the standard one. docs/dependencies.md says why each was chosen.
# Targets made here: megalith::format, megalith::json, megalith::toml (required);
# megalith::pcre2, megalith::zlib, megalith::zstd, megalith::hwy, megalith::onednn, megalith::openmp (optional:
# the target exists only where the library was found).
include(CheckCXXSourceCompiles)

function(megalith_missing_required what package)
  message(FATAL_ERROR "${what} was not found. It is needed to build Megalith. "
                      "Run scripts/install-deps.sh, or install it (Debian: apt-get install ${package}).")
endfunction()

# Text formatting: the standard library's where it has it, else {fmt}.
add_library(megalith_format INTERFACE)
check_cxx_source_compiles("#include <format>\nint main() { return static_cast<int>(std::format(\"{}\", 1).size()) - 1; }"
                          MEGALITH_HAVE_STD_FORMAT)
if(NOT MEGALITH_HAVE_STD_FORMAT)
  find_package(fmt 9.1 QUIET)
  if(NOT fmt_FOUND)
    megalith_missing_required("{fmt} 9.1 or newer (this compiler has no <format>)" libfmt-dev)
  endif()
  target_link_libraries(megalith_format INTERFACE fmt::fmt)
  target_compile_definitions(megalith_format INTERFACE MEGALITH_FORMAT_IS_FMT)
endif()
add_library(megalith::format ALIAS megalith_format)

find_package(nlohmann_json 3.11 QUIET)
if(NOT nlohmann_json_FOUND)
  megalith_missing_required("nlohmann-json 3.11 or newer" nlohmann-json3-dev)
endif()
add_library(megalith_json INTERFACE)
target_link_libraries(megalith_json INTERFACE nlohmann_json::nlohmann_json)
add_library(megalith::json ALIAS megalith_json)

find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE)
  megalith_missing_required("toml++ 3.3 or newer" libtomlplusplus-dev)
endif()
add_library(megalith_toml INTERFACE)
target_include_directories(megalith_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
add_library(megalith::toml ALIAS megalith_toml)

find_package(PkgConfig QUIET)

# megalith_optional_library(NAME HEADER LIBRARY...): by header and library name, so that pkg-config is not needed.
function(megalith_optional_library name header)
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE ${header})
  find_library(${upper}_LIBRARY NAMES ${ARGN})
  if(${upper}_INCLUDE AND ${upper}_LIBRARY)
    add_library(megalith_lib_${name} INTERFACE)
    target_include_directories(megalith_lib_${name} SYSTEM INTERFACE ${${upper}_INCLUDE})
    target_link_libraries(megalith_lib_${name} INTERFACE ${${upper}_LIBRARY})
    string(TOUPPER "MEGALITH_HAVE_${name}" definition)
    target_compile_definitions(megalith_lib_${name} INTERFACE ${definition})
    add_library(megalith::${name} ALIAS megalith_lib_${name})
  endif()
endfunction()

megalith_optional_library(zlib zlib.h z)
megalith_optional_library(zstd zstd.h zstd)
megalith_optional_library(pcre2 pcre2.h pcre2-8)
megalith_optional_library(hwy hwy/highway.h hwy)
if(MEGALITH_USE_ONEDNN)
  megalith_optional_library(onednn oneapi/dnnl/dnnl.hpp dnnl)
endif()
if(MEGALITH_USE_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    add_library(megalith_openmp INTERFACE)
    target_link_libraries(megalith_openmp INTERFACE OpenMP::OpenMP_CXX)
    target_compile_definitions(megalith_openmp INTERFACE MEGALITH_HAVE_OPENMP)
    add_library(megalith::openmp ALIAS megalith_openmp)
  endif()
endif()
