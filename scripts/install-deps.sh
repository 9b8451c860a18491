#!/bin/bash
# Installs the packages that Megalith needs, from the system's own archive: no prompts, no recommended extras.
# Quick, and without any network, where nothing is missing.
usage() {
  cat <<'END'
Usage: scripts/install-deps.sh [build|test|dev] [--print]
  build    (default) compiler, CMake, libraries, and the text that scripts/quickstart.sh trains on
  test     also what scripts/test.sh needs
  dev      also clang 19 with its formatter and linter
  --print  only print the packages
Tested on Debian 12 and Debian 13. Ubuntu 24.04: not tested.
END
}
set -euo pipefail

mode=build
print=no
for argument in "$@"; do
  case $argument in
    build | test | dev) mode=$argument ;;
    --print) print=yes ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install-deps.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# MEGALITH_OS_RELEASE ("debian 12") replaces /etc/os-release, for the test of this script.
if [ -n "${MEGALITH_OS_RELEASE:-}" ]; then
  system=$MEGALITH_OS_RELEASE
elif [ -r /etc/os-release ]; then
  system=$(. /etc/os-release; echo "${ID:-unknown} ${VERSION_ID:-}")
else
  system=unknown
fi

# The package table. "required" and "optional" are needed to build: without the optional ones parts of the program are
# missing (scripts/build.sh says which). The other lists are per mode. A name in "wanted" is left out, with a message,
# where the archive lacks it.
required="g++ cmake make nlohmann-json3-dev libtomlplusplus-dev libxxhash-dev"
optional="ninja-build libdnnl-dev libhwy-dev libpcre2-dev zlib1g-dev libzstd-dev"
quickstart="bible-kjv"
test="git ccache libgtest-dev libgmock-dev python3 python3-numpy python3-torch python3-venv dpkg-dev file"
dev="clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev libomp-19-dev"
wanted=""
case $system in
  "debian 12") required="$required libfmt-dev" ;;  # g++ 12 has no <format>
  "debian 13") ;;
  "ubuntu 24.04")
    # Not tested: a name that its archive lacks is left out.
    wanted="$optional $quickstart $test $dev"
    echo "Ubuntu 24.04: not tested. A package that is missing there is left out." >&2 ;;
  *)
    cat >&2 <<END
install-deps.sh: no package table for this system ($system); Debian 12, Debian 13 and Ubuntu 24.04 have one.
Install these yourself, then run scripts/build.sh:
  required: g++ 12 or clang 19 or newer, CMake 3.25, nlohmann-json 3.11, toml++ 3.3, xxHash 0.8, and {fmt} 9.1 where
            the compiler has no <format>
  optional: Ninja, oneDNN 2.6 or 3.x, Highway 1.0, PCRE2 10.40, zlib, zstd, and for scripts/quickstart.sh bible-kjv
  tests:    GoogleTest 1.12, Python 3 with numpy and PyTorch
END
    exit 1 ;;
esac

packages="$required $optional $quickstart"
[ "$mode" = build ] || packages="$packages $test"
[ "$mode" != dev ] || packages="$packages $dev"
if [ $print = yes ]; then
  tr -s ' ' '\n' <<< "$packages"
  exit 0
fi

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
}
missing=()
for package in $packages; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "All packages are there ($mode)."
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if [ -z "${MEGALITH_NO_SUDO:-}" ] && command -v sudo > /dev/null; then
    as_root=(sudo)
  else
    echo "install-deps.sh: ${#missing[@]} packages are missing, and there is neither root nor sudo. Run as root:" >&2
    echo "  apt-get update && apt-get install --yes --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {  # apt-get without questions; its output only where it fails
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o Dpkg::Use-Pty=0 \
       -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" \
       > "$log" 2>&1 < /dev/null; then
    tail -n 30 "$log" >&2
    echo "install-deps.sh: apt-get $1 failed" >&2
    exit 1
  fi
}
echo "Installing ${#missing[@]} packages: ${missing[*]}"
apt update
chosen=()
for package in "${missing[@]}"; do
  if [[ " $wanted " == *" $package "* ]] && ! apt-cache show "$package" > /dev/null 2>&1; then
    echo "left out: $package (this system's archive has none)" >&2
  else
    chosen+=("$package")
  fi
done
[ ${#chosen[@]} -eq 0 ] || apt install --no-install-recommends "${chosen[@]}"
echo "Installed."
