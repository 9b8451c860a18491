# Proves the layering of src/: a folder includes only itself and the folders before it, the parts of one device are
# seen by device/ alone, and each outside library is seen only where it is wrapped.
#   cmake -DSOURCE=DIR [-DSTAMP=FILE] -P check_layers.cmake
# Run by every build, and by the tests against a bad sample.
cmake_minimum_required(VERSION 3.25)

set(folders core device comm parallel model optim data checkpoint plan generate eval train serve cli)

# "header prefix|place|..." : only files whose path under src/ begins with one of the places may include it.
set(wrapped
    "oneapi/dnnl|device/cpu/onednn/"
    "dnnl|device/cpu/onednn/"
    "hwy/|device/cpu/"
    "omp.h|device/"
    "immintrin.h|device/cpu/"
    "toml++|core/"
    "fmt/|core/format.h"
    "format>|core/format.h"
    "pcre2|data/"
    "zstd|data/"
    "zlib|core/|data/|train/|cli/"
    "xxhash|core/|checkpoint/"
    "png|cli/"
    "nlohmann/|core/|model/|optim/|data/|checkpoint/|plan/|generate/|eval/|train/|serve/|cli/"
    "mpi.h|comm/mpi/"
    "nccl|comm/nccl/"
    "cuda|device/cuda/|comm/nccl/"
    "cublas|device/cuda/"
    "cudnn|device/cuda/"
    "gtest|nowhere in src/"
    "gmock|nowhere in src/")
# Libraries that only one file may include, wherever it is.
set(in_one_file "toml++")

set(errors "")

# Adds "src/FILE:LINE: text" to the errors.
function(report file line_text message)
  file(READ ${SOURCE}/${file} content)
  string(FIND "${content}" "${line_text}" place)
  set(number "?")
  if(place GREATER_EQUAL 0)
    string(SUBSTRING "${content}" 0 ${place} before)
    string(REGEX REPLACE "[^\n]" "" newlines "${before}")
    string(LENGTH "${newlines}" number)
    math(EXPR number "${number} + 1")
  endif()
  string(APPEND errors "src/${file}:${number}: ${message}\n")
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/*.h ${SOURCE}/*.cpp ${SOURCE}/*.cu ${SOURCE}/*.inc)
if(NOT files)
  message(FATAL_ERROR "check_layers: no source file under ${SOURCE}")
endif()
set(count 0)
foreach(file IN LISTS files)
  string(REGEX MATCH "^[^/]+" folder "${file}")
  list(FIND folders "${folder}" rank)
  if(rank EQUAL -1)
    report("${file}" "" "the folder ${folder}/ is not in the list of layers (cmake/check_layers.cmake)")
    continue()
  endif()
  file(STRINGS ${SOURCE}/${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
  foreach(line IN LISTS includes)
    math(EXPR count "${count} + 1")
    string(REGEX MATCH "include[ \t]*([<\"])([^>\"]+)([>\"])" unused "${line}")
    set(opening "${CMAKE_MATCH_1}")
    set(header "${CMAKE_MATCH_2}")
    set(spelled "${CMAKE_MATCH_2}${CMAKE_MATCH_3}")
    foreach(rule IN LISTS wrapped)
      string(REPLACE "|" ";" places "${rule}")
      list(POP_FRONT places prefix)
      string(FIND "${spelled}" "${prefix}" position)
      if(NOT position EQUAL 0)
        continue()
      endif()
      set(allowed FALSE)
      foreach(place IN LISTS places)
        string(FIND "${file}" "${place}" position)
        if(position EQUAL 0)
          set(allowed TRUE)
        endif()
      endforeach()
      if(NOT allowed)
        list(JOIN places ", src/" where)
        report("${file}" "${line}" "${header} may only be included in src/${where}")
      endif()
      if(prefix IN_LIST in_one_file)
        if(DEFINED seen_in AND NOT seen_in STREQUAL file)
          report("${file}" "${line}" "${header} may be included by one file only, and src/${seen_in} does already")
        endif()
        set(seen_in "${file}")
      endif()
    endforeach()
    if(opening STREQUAL "<")
      continue()
    endif()
    if(NOT header MATCHES "/")
      if(NOT header MATCHES "^(dnnl|pcre2|zstd|zlib|xxhash|png|omp|mpi|nccl)")
        report("${file}" "${line}" "\"${header}\": write the path from src/, for example \"${folder}/${header}\"")
      endif()
      continue()
    endif()
    string(REGEX MATCH "^[^/]+" other "${header}")
    list(FIND folders "${other}" other_rank)
    if(other_rank GREATER rank)
      report("${file}" "${line}" "${folder}/ may not use ${other}/, which stands above it (\"${header}\"): a folder uses itself and those before it in the list of docs/architecture.md")
    endif()
    if(header MATCHES "^device/(reference|cpu|cuda)/" AND NOT folder STREQUAL "device")
      report("${file}" "${line}" "\"${header}\" is the inside of one device: ${folder}/ uses device/device.h")
    endif()
  endforeach()
endforeach()

if(errors)
  message("${errors}")
  message(FATAL_ERROR "check_layers: the includes above go against the layers")
endif()
list(LENGTH files file_count)
message(STATUS "check_layers: ${count} includes in ${file_count} files follow the layers")
if(STAMP)
  file(WRITE ${STAMP} "")
endif()
