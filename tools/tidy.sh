#!/usr/bin/env bash
# Runs clang-tidy over the torch-free sources, with the flags of the dev build.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
if ! command -v clang-tidy >/dev/null; then
  echo "[tidy] clang-tidy is not installed; on Debian or Ubuntu: apt-get install clang-tidy" >&2
  exit 1
fi
tools/setup.sh
[ -f build/dev/compile_commands.json ] || stage "configure dev" cmake --preset dev
our_files '*.cpp' | grep -vE '^gossamer/(torch|train|cli/train)/' |
  xargs -r -n 4 -P "$jobs" clang-tidy -p build/dev --quiet
