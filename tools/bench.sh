#!/usr/bin/env bash
# Runs the quick benchmarks; each writes build/bench/<name>.json. Arguments choose by name, e.g.
# tools/bench.sh kernels_bench
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/build.sh

results=build/bench
mkdir -p "$results"
wanted() { [ "$#" -eq 1 ] || [[ " ${*:2} " == *" $1 "* ]]; }

shopt -s nullglob
for program in build/bin/*_bench; do
  name=$(basename "$program")
  wanted "$name" "$@" || continue
  printf '\n== %s\n' "$name"
  "$program" --benchmark_out="$results/$name.json" --benchmark_out_format=json \
    --benchmark_min_time=0.2
done
for script in bench/*/run.py; do
  name=$(basename "$(dirname "$script")")
  wanted "$name" "$@" || continue
  printf '\n== %s\n' "$name"
  options=()
  if [ "$name" = training ]; then options=(--quick); fi  # all of it takes an hour
  .venv/bin/python "$script" "${options[@]}" --json "$results/$name.json"
done
printf '\nresults in %s/\n' "$results"
