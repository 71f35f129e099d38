#!/usr/bin/env bash
# Looks with clang's libFuzzer for inputs that a reader of files or of the wire takes wrongly; see
# --help. Ends with 1 where it has found some.
set -euo pipefail
source "$(dirname "$0")/stage.sh"

usage() {
  cat <<'END'
usage: tools/fuzz.sh [TARGET] [SECONDS]   one target, or all; 60 seconds each without a number
       tools/fuzz.sh --list               the targets
       tools/fuzz.sh --keep [TARGET]      adds to the seeds, tests/fuzz/TARGET/, what covers more
                                          than they do and is short
Findings are in build/fuzz/findings/TARGET/; to run one again:
  GOSSAMER_FUZZ_TARGET=TARGET build/fuzz/bin/gossamer_fuzz FILE
END
}

keeps="" lists="" target="" seconds=60
for word in "$@"; do
  case $word in
    --help) usage && exit 0 ;;
    --keep) keeps=yes ;;
    --list) lists=yes ;;
    [0-9]*) seconds=$word ;;
    *) target=$word ;;
  esac
done

# The newest clang++ with the library of its fuzzer.
compiler=""
while read -r name; do
  folder=$("$name" -print-resource-dir)
  if compgen -G "$folder/lib/*/libclang_rt.fuzzer*" >/dev/null; then compiler=$name; fi
done < <(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -uV)
if [ -z "$compiler" ]; then
  echo "[fuzz] there is no clang++ with libFuzzer; on Debian or Ubuntu:" \
    "apt-get install clang-19 libclang-rt-19-dev llvm-19" >&2
  exit 1
fi

program=build/fuzz/bin/gossamer_fuzz
build() {
  cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" &&
    cmake --build --preset fuzz --target gossamer_fuzz -j "$jobs"
}
exec 3>&1
[ -z "$lists" ] || exec 1>&2
tools/setup.sh
stage "build fuzz" build
exec 1>&3
if [ -n "$lists" ]; then GOSSAMER_FUZZ_TARGET=list $program 2>/dev/null && exit 0; fi
targets=$target
if [ -z "$target" ]; then targets=$(GOSSAMER_FUZZ_TARGET=list $program 2>/dev/null); fi

# Inputs that are files are written in memory where that can be.
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# number WORD LOG: the number that libFuzzer says last behind the word.
number() { grep -oE "$1[: ]+[0-9]+" "$2" | tail -n 1 | grep -oE '[0-9]+$' || echo 0; }

# keep TARGET: of what was found, what covers more than the seeds, the largest first.
most_kept=24
keep() {
  local found=build/fuzz/corpus/$1 merged before after
  merged=$(mktemp -d) before=$(find "tests/fuzz/$1" -name '*.seed' | wc -l)
  [ -d "$found" ] || return 0
  cp "tests/fuzz/$1"/*.seed "$merged"
  GOSSAMER_FUZZ_TARGET=$1 $program -set_cover_merge=1 -use_counters=0 -max_len=512 "$merged" \
    "$found" >"$logs/fuzz-$1.log" 2>&1
  find "$merged" -type f ! -name '*.seed' -printf '%s %p\n' | sort -rn | head -n "$most_kept" |
    while read -r _ file; do
      name=$(basename "$file")
      cp "$file" "tests/fuzz/$1/found-${name:0:12}.seed"
    done
  rm -r "$merged"
  after=$(find "tests/fuzz/$1" -name '*.seed' | wc -l)
  printf '%-16s%6d seeds, %d new\n' "$1" "$after" $((after - before))
}

failed=0
# run TARGET: one line of what was found.
run() {
  local log=$logs/fuzz-$1.log found=build/fuzz/findings/$1 dictionary=() status=0
  mkdir -p "build/fuzz/corpus/$1" "$found"
  [ ! -f "tests/fuzz/$1.dict" ] || dictionary=("-dict=tests/fuzz/$1.dict")
  GOSSAMER_FUZZ_TARGET=$1 $program -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 \
    -malloc_limit_mb=1000 -print_final_stats=1 -reload=0 -artifact_prefix="$found/" \
    "${dictionary[@]}" "build/fuzz/corpus/$1" "tests/fuzz/$1" >"$log" 2>&1 || status=$?
  printf '%-16s%12d executions%7d edges%6d s%4d findings\n' "$1" \
    "$(number stat::number_of_executed_units "$log")" "$(number cov "$log")" "$seconds" \
    "$(find "$found" -type f | wc -l)"
  [ "$status" -eq 0 ] || failed=1
  if [ "$status" -ne 0 ]; then grep -E 'ERROR|what\(\)|runtime error|Test unit' "$log" || true; fi
}

for name in $targets; do
  if [ -n "$keeps" ]; then keep "$name"; else run "$name"; fi
done
exit $failed
