#!/bin/bash
# Installs what the tests need, builds, runs them, and ends with one line: N passed, N failed, N skipped.
usage() {
  cat <<'END'
Usage: scripts/test.sh [fast|ci|full|oracles] [--no-install]
  fast     the fast tests: under 2 minutes after the build
  ci       (default) what continuous integration runs, under 25 minutes on 2 cores: fast and slow tests, the outside
           implementations that are small, formatting, clang-tidy, the sanitizers, short fuzzing, oneDNN's other version
  full     ci, and the thread sanitizer, clang without sanitizers, longer fuzzing, the long tests, clang-tidy on all
  oracles  outside implementations from PyPI, each in an environment of its own under ~/.cache/megalith, made from a
           lock file with exact versions and hashes; those with PyTorch want 12 GB free, and are skipped otherwise
  --no-install  use what is installed
Builds stand in build-dev, build-fuzz and so on, and are kept. The status is 0 where nothing failed.
END
}
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

mode=ci
install=yes
for argument in "$@"; do
  case $argument in
    fast | ci | full | oracles) mode=$argument ;;
    --no-install) install=no ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

passed=0
failed=0
skipped=0
failures=()
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
started=$SECONDS
cores=$(nproc)
# clang's OpenMP library keeps memory of its own to the end of the process.
export LSAN_OPTIONS=suppressions=$PWD/tests/build/leaks.txt:print_suppressions=0
# A request for impossible memory must come back as an error of ours.
export ASAN_OPTIONS=allocator_may_return_null=1
# Waiting threads of one test must not take a core from another.
export OMP_WAIT_POLICY=passive

stage() { printf '\n== %s (at %d:%02d) ==\n' "$1" $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)); }
record() {  # passed|failed|skipped NAME [REASON]
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)); failures+=("$2") ;;
    skipped) skipped=$((skipped + 1)); echo "skipped: $2${3:+: $3}" ;;
  esac
}
finish() {
  if [ ${#failures[@]} -gt 0 ]; then
    printf '\nFailed:\n'
    printf '  %s\n' "${failures[@]}"
  fi
  printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# build PRESET TARGET [CMAKE ARGUMENT...]: configures and builds; its output only where it fails.
build() {
  local preset=$1 target=$2 log=$results/build-$1.log
  shift 2
  local launcher=()
  command -v ccache > /dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  if cmake --preset "$preset" "${launcher[@]}" "$@" > "$log" 2>&1 &&
     cmake --build --preset "$preset" --target "$target" --parallel "$cores" >> "$log" 2>&1; then
    record passed "build ($preset)"
  else
    record failed "build ($preset)"
    grep -n -E 'error|FAILED|warning' "$log" | head -n 20
    tail -n 30 "$log"
    return 1
  fi
}

# run_tests FOLDER NAME [CTEST ARGUMENT...]: runs CTest and counts what it says.
run_tests() {
  local folder=$1 name=$2 report=$results/$2.xml counts status=0
  shift 2
  ctest --test-dir "$folder" --output-junit "$report" --output-on-failure --no-tests=error --parallel "$cores" "$@" \
    > "$results/$name.log" 2>&1 || status=$?
  counts=$(/usr/bin/python3 - "$report" <<'END'
import sys
import xml.etree.ElementTree as tree
passed, failed, skipped = 0, [], []
for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
    if case.find("failure") is not None or case.get("status") == "fail":
        failed.append(case.get("name"))
    elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        skipped.append(case.get("name"))
    else:
        passed += 1
print(passed, len(failed), len(skipped))
for name in failed: print("failed", name)
for name in skipped: print("skipped", name)
END
  ) || {
    record failed "$name: the tests did not run"
    tail -n 20 "$results/$name.log"
    return
  }
  local more_passed more_failed more_skipped kind test
  read -r more_passed more_failed more_skipped <<< "$counts"
  while read -r kind test; do
    case $kind in
      failed) failures+=("$name: $test") ;;
      skipped) echo "skipped: $test" ;;
    esac
  done <<< "$counts"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  skipped=$((skipped + more_skipped))
  echo "$name: $more_passed passed, $more_failed failed, $more_skipped skipped."
  if [ "$more_failed" -gt 0 ]; then
    sed -n '/^[ 0-9]*\/[0-9]* Test.*\(Failed\|Exception\|Timeout\)/,/^ *Start\|^$/p' "$results/$name.log" | head -n 200
    grep -E 'Failure|error:|ERROR:|SUMMARY:' "$results/$name.log" | sort | uniq -c | sort -rn | head -n 40
  elif [ $status -ne 0 ]; then
    record failed "$name: CTest ended with status $status"
    tail -n 20 "$results/$name.log"
  fi
}

changed_first() {  # every source file, the most recently committed first
  { git log --name-only --pretty=format: -n 60 -- src tests 2> /dev/null; git ls-files src tests; } |
    awk 'NF && !seen[$0]++' | grep -E '\.(h|cpp)$' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done
}

check_format() {
  stage "Formatting"
  command -v clang-format-19 > /dev/null || { record skipped formatting "clang-format-19 is not installed"; return; }
  if changed_first | xargs clang-format-19 --dry-run --Werror > "$results/format" 2>&1; then
    record passed formatting
  else
    record failed formatting
    grep -E 'error' "$results/format" | cut -d: -f1 | sort | uniq -c
    echo "clang-format-19 -i FILE mends a file."
  fi
}

# tidy SECONDS: clang-tidy over the sources, most recently changed first, until the time is used up. Files that were
# clean with the same text, headers and settings are not looked at again.
tidy() {
  stage "clang-tidy (at most $1 s)"
  command -v clang-tidy-19 > /dev/null || { record skipped clang-tidy "clang-tidy-19 is not installed"; return; }
  local clean=${XDG_CACHE_HOME:-$HOME/.cache}/megalith/tidy common
  mkdir -p "$clean" "$results/tidy"
  common=$(cat .clang-tidy $(git ls-files 'src/*.h' 'tests/*.h') | sha256sum)
  local end=$(($(date +%s) + $1))
  export clean common results end
  changed_first | grep '\.cpp$' | grep -v '_fuzz\.cpp$\|replay_main' | xargs -P "$cores" -I FILE bash -c '
    key=$(echo "$common" | cat - "$0" | sha256sum | cut -c1-40)
    name=$(echo "$0" | tr / _)
    if [ -e "$clean/$key" ]; then
      touch "$results/tidy/$name.clean"
    elif [ "$(date +%s)" -ge "$end" ]; then
      touch "$results/tidy/$name.left"
    elif ! grep -q "\"file\": .*/$0\"" build-dev/compile_commands.json; then
      touch "$results/tidy/$name.unbuilt"
    elif clang-tidy-19 --quiet -p build-dev "$0" > "$results/tidy/$name.log" 2> /dev/null; then
      touch "$results/tidy/$name.clean" "$clean/$key"
    else
      touch "$results/tidy/$name.bad"
    fi' FILE
  count() { find "$results/tidy" -name "*.$1" | wc -l; }
  echo "clang-tidy: $(count clean) files clean, $(count bad) with findings, $(count left) not reached in the time."
  if [ "$(count bad)" -gt 0 ]; then
    record failed clang-tidy
    for bad in "$results"/tidy/*.bad; do grep -E '(warning|error):' "${bad%.bad}.log" | head -n 10; done
  elif [ "$(count clean)" -gt 0 ]; then
    record passed clang-tidy
  else
    record skipped clang-tidy "no file was reached"
  fi
}

# oracles small|all: tests/parity/*_parity.py in the environments they name (a line "Environment: requirements-X.txt").
# Scripts that name none run in the ordinary tests. Those whose lock file holds PyTorch are large.
oracles() {
  stage "Outside implementations ($1)"
  local lock folder script name free status
  for lock in tests/parity/requirements-*.txt; do
    [ -e "$lock" ] || continue
    local scripts
    scripts=$(grep -l "Environment: $(basename "$lock")" tests/parity/*_parity.py 2> /dev/null || true)
    [ -n "$scripts" ] || continue
    if grep -q '^torch==' "$lock"; then
      [ "$1" = all ] || continue
      mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}"
      free=$(df -Pk "${XDG_CACHE_HOME:-$HOME/.cache}" | awk 'NR == 2 { print int($4 / 1048576) }')
      if [ "$free" -lt 12 ]; then
        record skipped "$(basename "$lock")" "12 GB are wanted, $free GB are free"
        continue
      fi
    fi
    if ! folder=$(scripts/environment.sh "$lock"); then
      if [ -n "${CI:-}" ]; then record failed "environment $lock"; else record skipped "$lock" "pip could not install it"; fi
      continue
    fi
    for script in $scripts; do
      name=$(basename "$script" .py)
      status=0
      MEGALITH_BINARY=$PWD/build-dev/megalith timeout 1800 "$folder/bin/python" "$script" > "$results/$name.log" 2>&1 ||
        status=$?
      case $status in
        0) record passed "$name"; echo "$name: agreed. $(tail -n 1 "$results/$name.log")" ;;
        77) record skipped "$name" "$(tail -n 1 "$results/$name.log")" ;;
        *) record failed "$name"; tail -n 40 "$results/$name.log" ;;
      esac
    done
  done
}

# The matrix-product adapter against the oneDNN major version that this system does not have.
other_onednn() {
  stage "oneDNN's other version"
  local other=3 folder
  grep -q '^  oneDNN *3' build-dev/summary.txt && other=2
  [ "$(uname -m)" = x86_64 ] || { record skipped "oneDNN $other" "packaged for x86-64 only"; return; }
  if ! folder=$(scripts/environment.sh "tests/build/requirements-onednn$other.txt"); then
    if [ -n "${CI:-}" ]; then record failed "oneDNN $other"; else record skipped "oneDNN $other" "pip could not install it"; fi
    return
  fi
  build other-onednn test_device -DCMAKE_PREFIX_PATH="$folder" || return
  grep -q "^  oneDNN *$other" build-other-onednn/summary.txt ||
    { record failed "oneDNN $other was not the one found"; return; }
  if timeout 600 build-other-onednn/tests/test_device --gtest_brief=1 > "$results/onednn.log" 2>&1; then
    record passed "oneDNN $other"
    tail -n 1 "$results/onednn.log"
  else
    record failed "oneDNN $other"
    tail -n 40 "$results/onednn.log"
  fi
}

if [ $install = yes ]; then
  stage "Packages"
  case $mode in
    ci | full) scripts/install-deps.sh dev || { record failed packages; finish; } ;;
    *) scripts/install-deps.sh test || { record failed packages; finish; } ;;
  esac
fi

[ "$mode" = fast ] || [ "$mode" = oracles ] || check_format

stage "Build"
build dev all || finish
cat build-dev/summary.txt

case $mode in
  fast)
    stage "Fast tests"
    run_tests build-dev fast -L fast ;;
  oracles)
    oracles all ;;
  ci | full)
    stage "Tests"
    if [ $mode = full ]; then
      run_tests build-dev tests -LE '^fuzz$'
    else
      run_tests build-dev tests -LE '^(full|fuzz)$'
    fi
    oracles "$([ $mode = full ] && echo all || echo small)"
    other_onednn
    if command -v clang++-19 > /dev/null; then
      stage "clang 19 with address and undefined-behaviour sanitizers"
      if build fuzz all; then
        run_tests build-fuzz sanitized -L fast
        stage "Fuzzing"
        if [ -n "$(find tests -name '*_fuzz.cpp' -print -quit)" ]; then
          MEGALITH_FUZZ_SECONDS=$([ $mode = full ] && echo 60 || echo 8) run_tests build-fuzz fuzz -L fuzz
        else
          record skipped fuzzing "no target"
        fi
      fi
    else
      stage "Address and undefined-behaviour sanitizers"
      record skipped fuzzing "clang++-19 is not installed"
      build asan all && run_tests build-asan sanitized -L fast
    fi
    if [ $mode = full ]; then
      stage "Thread sanitizer"
      build tsan all && run_tests build-tsan thread-sanitizer -L fast
      if command -v clang++-19 > /dev/null; then
        stage "clang 19"
        build clang all && run_tests build-clang clang -L fast
      fi
      tidy 7200
    else
      tidy 180
    fi ;;
esac
finish
