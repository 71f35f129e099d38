#!/usr/bin/env bash
# Installs what a bare Debian or Ubuntu lacks: system packages, Python packages in .venv, and
# SentencePiece in .cache. A call that finds everything in place takes a fraction of a second and says
# nothing. `programs`: only what the two programs are built with.
set -euo pipefail
source "$(dirname "$0")/stage.sh"

wanted_packages() { grep -v '^#' tools/packages.txt; }

missing_packages() {
  local package
  for package in $(wanted_packages); do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

# The words to put before a command that needs the rights of root; fails where there is no way.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then return 0; fi
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || [ -t 0 ] || return 1
  echo sudo
}

install_packages() {
  local prefix=$1
  shift
  $prefix apt-get update && $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

set_up_system() {
  if ! command -v dpkg-query >/dev/null; then
    # Not a Debian: nothing to ask and nothing to install, CMake will say what it misses.
    return 0
  fi
  local missing prefix
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if ! prefix=$(as_root); then
    printf '[setup] system packages are missing and neither root nor sudo is available; run:\n' >&2
    printf '  apt-get install %s\n' "$(echo "$missing" | paste -sd ' ')" >&2
    return 1
  fi
  # shellcheck disable=SC2086  # one word per package
  stage "system packages" install_packages "$prefix" $missing
}

find_python() {
  local name
  for name in python3.11 python3; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$name"
      return 0
    fi
  done
  printf '[setup] Python 3.10 or newer is needed, got %s; install python3.11\n' \
    "$(python3 --version 2>/dev/null || echo none)" >&2
  return 1
}

# What .venv was made from: another answer means that it must be made again.
venv_key() {
  { cat tools/requirements.txt; "$1" --version; echo "$root"; } | sha256sum | cut -d ' ' -f 1
}

make_venv() {
  rm -rf .venv && "$1" -m venv .venv && echo "$2" >.venv/made-from
}

# Modules are compiled when they are imported first: most of what is installed never is.
install_python_packages() {
  .venv/bin/python -m pip install --disable-pip-version-check --no-compile "$@"
}

set_up_venv() {
  local python key
  python=$(find_python)
  key=$(venv_key "$python")
  [ "$(cat .venv/made-from 2>/dev/null || true)" != "$key" ] || return 0
  case $python in
    *python3.11) ;;
    *) printf 'python3.11 is not here, using %s\n' "$("$python" --version)" ;;
  esac
  stage ".venv" make_venv "$python" "$key"
}

# set_up_python all|programs: the packages of all checks, or what the programs are built with.
set_up_python() {
  [ ! -e .venv/has-all ] || return 0
  if [ "$1" = all ]; then
    stage "python packages" install_python_packages -r tools/requirements.txt
    touch .venv/has-all
  elif [ ! -e .venv/has-programs ]; then
    stage "torch" install_python_packages "$(grep '^torch==' tools/requirements.txt)"
    touch .venv/has-programs
  fi
}

set_up_sentencepiece() {
  [ tools/sentencepiece.sh -nt .cache/sentencepiece/version ] || return 0
  stage "sentencepiece" tools/sentencepiece.sh
}

set_up_system
set_up_venv
set_up_sentencepiece &  # beside packages, whose installation takes one processor
beside=$!
set_up_python "${1:-all}"
wait "$beside"
