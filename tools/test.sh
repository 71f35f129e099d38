#!/usr/bin/env bash
# Every check of the project; see --help. Ends with 'N passed, N failed'.
set -euo pipefail
source "$(dirname "$0")/stage.sh"

if [ "${1:-}" = --help ]; then
  echo "usage: tools/test.sh [--fast]     --fast: the tests labelled fast, in the release build only"
  exit 0
fi

# Threads of OpenMP that spin while they wait would keep the tests beside them from the processors.
export OMP_WAIT_POLICY=passive

# ThreadSanitizer of g++ 12 does not start where the kernel shuffles addresses by more than 28 bits.
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_addresses=(setarch "$(uname -m)" -R); fi

lint_python() {
  local files
  mapfile -t files < <(our_files '*.py' '*.pyi')
  .venv/bin/ruff check "${files[@]}" && .venv/bin/ruff format --check "${files[@]}" || return 1
  # Folder by folder: each has scripts of its own that import their neighbours, e.g. a run.py.
  local folder
  for folder in $(dirname "${files[@]}" | sort -u); do
    [[ $folder/ != python/gossamer/* ]] || continue  # a package, not scripts
    MYPYPATH=$folder .venv/bin/mypy "$folder"/*.py || return 1
  done
  MYPYPATH=python .venv/bin/mypy -p gossamer
}

# failed_tests LOG: the lines of ctest or pytest that name a failed test.
failed_tests() {
  grep -E '^(FAILED|ERROR) |^[[:space:]]+[0-9]+ - .*\((Failed|Timeout|Not Run|SEGFAULT|Subprocess)' \
    "$1" | sed -E 's/^[[:space:]]+/FAILED /' | cut -c -300 || true
}

passed=0 failed=0 failures=""
# count_tests LOG: adds what ctest or pytest counted.
count_tests() {
  local text good bad total
  text=$(tail -n 40 "$1")
  if [[ $text =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    bad=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} good=$((total - bad))
  else
    good=0 bad=0
    if [[ $text =~ ([0-9]+)\ passed ]]; then good=${BASH_REMATCH[1]}; fi
    if [[ $text =~ ([0-9]+)\ failed ]]; then bad=${BASH_REMATCH[1]}; fi
  fi
  passed=$((passed + good)) failed=$((failed + bad))
}

# A stage whose failure does not keep the later ones from running; a failure without a count is one.
test_stage() {
  local before=$failed log=$logs/${1// /-}.log status=0
  stage "$@" || status=$?
  count_tests "$log"
  if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then failed=$((failed + 1)); fi
  if [ "$status" -ne 0 ]; then failures+=$(failed_tests "$log")$'\n'; fi
}

# A stage that has no tests of its own: it is one.
check_stage() {
  if stage "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && return 1; fi
}

run_ctest() {
  local folder=$1
  shift
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "$@"
}

# Long runs that are made for their numbers; what they run is run by shorter tests, too.
for_their_numbers='^Figures\.(Stationary|Corrections|DmSgd|GlobalAverage)|^PosterRows\.'
for_their_numbers+='|^PlanCommand\.PublishedCases'

# One thread at a time, thousands of turns; another case runs one such job under sanitizers, and
# StopAgreement runs the last step among those left.
for_their_numbers+='|^Simulation\.(Whoever|Faults)|^StopAmongLeft\.'

# Of one thread, in which the thread sanitizer has nothing to see.
of_one_thread='^(CodecTables|KernelTables|Digest)'

sanitizer() {
  local without=$for_their_numbers
  if [ "$1" = tsan ]; then without+="|$of_one_thread"; fi
  check_stage "build $1" "${@:2}" bash -c 'source tools/stage.sh && configure_and_build "$0"' "$1" ||
    return 0
  test_stage "test $1" "${@:2}" ctest --test-dir "build/$1" --output-on-failure \
    --no-tests=error --exclude-regex "$without" -j "$jobs"
}

# beside COMMAND: runs the command's stages beside those that follow, until `join`. What they count
# goes through a file: they run in a shell of their own.
beside_pids=() beside_found=()
beside() {
  local found=$logs/beside-$1
  set -m  # a process group of its own, which ends with this script
  (
    stage_names=() stage_results=() stage_seconds=() stage_cpu=() passed=0 failed=0 failures=""
    "$1"
    for i in "${!stage_names[@]}"; do
      printf 'stage_names+=(%q) stage_results+=(%q) stage_seconds+=(%q) stage_cpu+=(%q)\n' \
        "${stage_names[i]}" "${stage_results[i]}" "${stage_seconds[i]}" "${stage_cpu[i]}"
    done >"$found"
    printf 'passed=$((passed + %d)) failed=$((failed + %d)) failures+=%q\n' \
      "$passed" "$failed" "$failures" >>"$found"
  ) &
  beside_pids+=($!)
  beside_found+=("$found")
  set +m
  trap 'for pid in "${beside_pids[@]}"; do kill -- -"$pid" 2>/dev/null || true; done' EXIT
}

join() {
  local i
  for i in "${!beside_pids[@]}"; do
    if ! wait "${beside_pids[i]}"; then
      failed=$((failed + 1)) failures+="the stages beside the others ended early"$'\n'
      continue
    fi
    # shellcheck disable=SC1090  # written by `beside`
    source "${beside_found[i]}"
  done
  trap - EXIT
}

# Both mostly wait for each other and for sockets, which leaves the processors to the compiler.
# What makes hosts of its own, or starts whole programs, is in one of them.
whole_programs=(tests/python/test_{benches,cluster,clusters,cut_off,examples_*,faults,package_*}.py
  tests/python/test_{prediction_bench,probe,processes,programs_bench,training_comparison,transformers}.py)

# Ray starts a dozen processes, which wait for each other some seconds at most: it is tried alone.
alone=tests/python/test_examples_ray.py

test_package() {
  test_stage "test python" .venv/bin/python -m pytest --durations=20 tests/python \
    "${whole_programs[@]/#/--ignore=}"
  test_stage "test train" .venv/bin/python -m pytest tests/train
}

test_programs() {
  test_stage "test programs" .venv/bin/python -m pytest --durations=20 "${whole_programs[@]}" \
    --deselect "$alone"
  test_stage "test experiments" .venv/bin/python -m pytest tests/experiments
}

summary() {
  local i
  printf '\n%-28s%-8s%6s%8s\n' stage result time cpu
  for i in "${!stage_names[@]}"; do
    printf '%-28s%-8s%4d s%6d s\n' "${stage_names[i]}" "${stage_results[i]}" \
      "${stage_seconds[i]}" "${stage_cpu[i]}"
  done
  printf '%-36s%4d s\n\n' total "$SECONDS"
  if [ -n "$failures" ]; then printf '%s\n' "$failures"; fi  # last, where everybody looks
  printf '%d passed, %d failed\n' "$passed" "$failed"
}

tools/setup.sh
if [ "${1:-}" = --fast ]; then
  check_stage "build release" configure_and_build release &&
    test_stage "test fast" run_ctest build -L fast
else
  check_stage "lint python" lint_python || true  # first: it takes seconds
  built=yes
  check_stage "build release" configure_and_build release || built=no
  beside test_package
  beside test_programs
  if [ $built = yes ]; then test_stage "test release" run_ctest build; fi
  test_stage "test structure" .venv/bin/python -m pytest --durations=10 tests/structure
  sanitizer asan
  sanitizer tsan "${fixed_addresses[@]}"
  join
  test_stage "test ray" .venv/bin/python -m pytest "$alone"
fi
summary
[ "$failed" -eq 0 ]
