#!/usr/bin/env bash
# Lets the tests that compare with golden files write them instead, then renews the stub of the
# extension and the API page; read the diff before you commit.
set -euo pipefail
source "$(dirname "$0")/stage.sh"
tools/build.sh
GOSSAMER_GOLDEN=renew build/bin/cli_test --gtest_brief=1
GOSSAMER_GOLDEN=renew .venv/bin/python -m pytest tests/python/test_gossip_errors.py -k renew
GOSSAMER_GOLDEN=renew .venv/bin/python -m pytest tests/train/test_mistakes.py
.venv/bin/python tools/stubs.py
.venv/bin/python tools/api_docs.py
git status --short -- tests/golden python/gossamer/_core.pyi docs/api.md
