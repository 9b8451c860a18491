#!/bin/bash
# Makes the .tar.gz and, where Debian's tools are there, the .deb; unpacks each into a folder and runs the program.
#   package_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
grep -q '^MEGALITH_SANITIZE:STRING=.' "$build/CMakeCache.txt" && { echo "skipped: a sanitizer build is not packaged"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
generators=TGZ
if command -v dpkg-shlibdeps > /dev/null && command -v dpkg-deb > /dev/null; then
  generators="TGZ;DEB"
else
  echo "no dpkg-shlibdeps (package dpkg-dev): only the .tar.gz is tested"
fi
(cd "$build" && cpack -G "$generators" -B "$folder/packages" > "$folder/log" 2>&1) || { cat "$folder/log"; exit 1; }

check() {  # $1: unpacked prefix
  "$1/bin/megalith" --version
  [ -s "$1/share/doc/megalith/LICENSE" ] || { echo "no LICENSE in $1"; exit 1; }
  for page in megalith megalith-doctor; do
    [ -n "$(find "$1/share/man" -name "$page.1*" 2> /dev/null)" ] || { echo "no man page $page in $1"; exit 1; }
  done
  for completion in bash-completion/completions/megalith zsh/vendor-completions/_megalith \
                    fish/vendor_completions.d/megalith.fish; do
    [ -s "$1/share/$completion" ] || { echo "no completion $completion in $1"; exit 1; }
  done
}

mkdir "$folder/tar" "$folder/deb"
tar -xzf "$folder"/packages/*.tar.gz -C "$folder/tar" --strip-components=1
prefix=$folder/tar
[ -d "$prefix/usr" ] && prefix=$prefix/usr
check "$prefix"
if [ "$generators" != TGZ ]; then
  dpkg-deb -x "$folder"/packages/*.deb "$folder/deb"
  check "$folder/deb/usr"
  depends=$(dpkg-deb -f "$folder"/packages/*.deb Depends)
  echo "Depends: $depends"
  case $depends in *libstdc++6*) ;; *) echo "the .deb does not depend on the libraries it uses"; exit 1 ;; esac
fi
cmake --install "$build" --prefix "$folder/installed" > /dev/null
check "$folder/installed"
