#!/usr/bin/env bash
# The demonstration behind `make demo`; arguments are passed on. Builds what it runs, and no more.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
build_programs() {
  cmake --preset release &&
    cmake --build --preset release -j "$jobs" --target gossamer gossamer-train
}
[ -x build/bin/gossamer-train ] || printf 'The first time takes some minutes: %s\n' \
  "packages, torch, and a build of two programs."
tools/setup.sh programs
stage "build the programs" build_programs
exec build/bin/gossamer demo "$@"
