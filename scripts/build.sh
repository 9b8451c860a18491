#!/bin/bash
# Builds build/megalith. Needs a compiler and CMake; says which devices and libraries it found and what each missing
# one costs.
usage() {
  cat <<'END'
Usage: scripts/build.sh [--folder DIR] [-D...]
  --folder DIR  build there instead of build/
  -D...         handed to CMake, for example -DMEGALITH_WITHOUT=onednn
  CXX           (environment) the compiler; the folder keeps the one it was first built with
Uses Ninja and ccache where they are there. Required headers that are not installed (nlohmann-json, toml++, xxHash, and
{fmt} where the compiler has no <format>) are taken from the system's package archive and unpacked into the build
folder, which needs no root; nothing is installed.
END
}
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=build
settings=()
while [ $# -gt 0 ]; do
  case $1 in
    --folder) [ $# -ge 2 ] || { usage >&2; exit 2; }; folder=$2; shift ;;
    -D*) settings+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) echo "build.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

command -v cmake > /dev/null || {
  echo "build.sh: CMake is missing. Run scripts/install-deps.sh, or install CMake 3.25 or newer." >&2
  exit 1
}
compiler=${CXX:-}
for candidate in c++ g++ clang++ clang++-19; do
  [ -n "$compiler" ] || compiler=$(command -v $candidate || true)
done
[ -n "$compiler" ] || {
  echo "build.sh: no C++ compiler. Run scripts/install-deps.sh, or install g++ 12, clang 19 or newer." >&2
  exit 1
}

# Headers without which nothing can be built, and their packages in Debian and Ubuntu.
missing=()
has_header() { "$compiler" -std=c++20 -E -x c++ -include "$1" /dev/null > /dev/null 2>&1; }
has_header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
has_header toml++/toml.h || missing+=(libtomlplusplus-dev)
has_header xxhash.h || missing+=(libxxhash-dev)
if ! echo '#include <format>
#ifndef __cpp_lib_format
#error "none"
#endif' | "$compiler" -std=c++20 -E -x c++ - > /dev/null 2>&1; then
  has_header fmt/format.h || missing+=(libfmt-dev)
fi
if [ ${#missing[@]} -gt 0 ]; then
  headers=$PWD/$folder/headers
  for package in "${missing[@]}"; do
    if [ ! -e "$headers/$package" ]; then
      mkdir -p "$headers/download"
      if ! (cd "$headers/download" && apt-get --quiet download "$package" && dpkg-deb -x "$package"_*.deb ..) \
           > "$headers/log" 2>&1; then
        echo "build.sh: these are missing, and apt-get could not fetch $package: ${missing[*]}" >&2
        echo "Run scripts/install-deps.sh, or: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
      fi
      touch "$headers/$package"
    fi
  done
  rm -rf "$headers/download"
  echo "Not installed, unpacked into $folder/headers: ${missing[*]}"
  settings+=("-DCMAKE_PREFIX_PATH=$headers/usr")
fi

if [ ! -f "$folder/CMakeCache.txt" ]; then
  if command -v ninja > /dev/null; then
    settings+=(-G Ninja)
  elif command -v make > /dev/null; then
    settings+=(-G "Unix Makefiles")
  else
    echo "build.sh: neither ninja nor make is there. Run scripts/install-deps.sh." >&2
    exit 1
  fi
  if command -v ccache > /dev/null; then
    settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
fi
cmake --log-level=NOTICE -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release "${settings[@]}"
cat "$folder/summary.txt"
cmake --build "$folder" --parallel "$(nproc)"
echo "Built $folder/megalith"
