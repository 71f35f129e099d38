#!/usr/bin/env bash
# The documentation as a site in build/site, which works from a folder and without a network.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/setup.sh
.venv/bin/python tools/site.py "$@"
