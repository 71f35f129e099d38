#!/usr/bin/env bash
# Lets the tests that compare with golden files write them instead; read the diff before you commit.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/build.sh
GOSSAMER_GOLDEN=renew build/bin/cli_test --gtest_brief=1
GOSSAMER_GOLDEN=renew .venv/bin/python -m pytest tests/python/test_gossip_errors.py -k renew
.venv/bin/python tools/api_docs.py
git status --short -- tests/golden docs/api.md
