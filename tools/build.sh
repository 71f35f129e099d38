#!/usr/bin/env bash
# Builds everything, as users run it: build/bin/gossamer and its companions. Python of .venv then
# imports gossamer from build/python, unless one is installed there.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/setup.sh
stage "build release" configure_and_build release
[ -L .venv ] || echo "$root/build/python" \
  >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/gossamer-build.pth"
