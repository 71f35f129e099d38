#!/usr/bin/env bash
# Formats every C++ and Python file of the project in place.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/setup.sh
our_files '*.h' '*.cpp' | xargs -r .venv/bin/clang-format -i
our_files '*.py' '*.pyi' | xargs -r .venv/bin/ruff check --fix --quiet
our_files '*.py' '*.pyi' | xargs -r .venv/bin/ruff format --quiet
