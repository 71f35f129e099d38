#!/usr/bin/env bash
# Runs the experiments, all or those named, and goes on where an earlier call stopped. Arguments are
# those of experiments/run_grids.py, e.g. tools/experiments.sh translation --seeds 1
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/build.sh

status=0
.venv/bin/python experiments/run_grids.py "$@" || status=$?
if [[ $# -eq 0 ]]; then
    .venv/bin/python experiments/detection.py || status=$?
    .venv/bin/python experiments/detection_figure.py
fi
.venv/bin/python experiments/tables.py --write-docs
.venv/bin/python experiments/figures.py
printf '\nresults, a line per run: experiments/results/*.jsonl\n'
printf 'tables:                  docs/results/tables/\n'
printf 'figures:                 experiments/figures/\n'
exit "$status"
