#!/bin/bash
# The shell scripts: they parse, refuse unknown arguments with status 2, print their usage, and run no apt where
# nothing is missing.
#   scripts_test.sh SOURCE_FOLDER
set -uo pipefail
cd "$1" || exit 1
failed=0
complain() { echo "$1"; failed=1; }

for script in scripts/*.sh .ci/run tests/build/*.sh; do
  bash -n "$script" || complain "$script does not parse"
  [ -x "$script" ] || complain "$script is not executable"
done
for script in install-deps build quickstart test bare-check bench; do
  text=$(scripts/$script.sh --help 2>&1) || complain "scripts/$script.sh --help failed"
  grep -q "scripts/$script.sh" <<< "$text" || complain "scripts/$script.sh --help does not show its usage"
  scripts/$script.sh --no-such-argument > /dev/null 2>&1
  status=$?
  [ $status -eq 2 ] || complain "scripts/$script.sh --no-such-argument ended with status $status, not 2"
done

# A pretended system: dpkg-query knows nothing, there is neither root nor sudo, so the command is printed.
pretended=$(mktemp -d)
trap 'rm -rf "$pretended"' EXIT
for tool in dpkg-query apt-get apt-cache; do
  printf '#!/bin/sh\nexit 1\n' > "$pretended/$tool"
done
printf '#!/bin/sh\necho 1000\n' > "$pretended/id"
chmod +x "$pretended"/*
for release in debian-12 debian-13 ubuntu-24.04; do
  text=$(PATH="$pretended:/usr/bin:/bin" MEGALITH_OS_RELEASE=${release/-/ } MEGALITH_NO_SUDO=1 \
         scripts/install-deps.sh build 2>&1)
  status=$?
  [ $status -eq 1 ] || complain "install-deps.sh without root ended with status $status, not 1 ($release)"
  grep -q 'apt-get install .*cmake' <<< "$text" || complain "install-deps.sh printed no command ($release): $text"
done
text=$(PATH="$pretended:/usr/bin:/bin" MEGALITH_OS_RELEASE="plan 9" scripts/install-deps.sh build 2>&1)
grep -qi 'nlohmann' <<< "$text" || complain "install-deps.sh does not say what an unknown system needs: $text"
exit $failed
