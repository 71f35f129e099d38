#!/usr/bin/env bash
# Builds SentencePiece from the source archive of its Python package, into .cache/sentencepiece:
# what Debian 12 has reads models of strangers unsafely (CVE-2026-1260, before 0.2.1). PYTHON: the
# interpreter whose pip fetches the archive; that of .venv if it is not set. TARGET: another folder,
# TOOLCHAIN: a file of CMake, for another machine.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.2.1  # later archives lack abseil, which they fetch
sha256=8138cec27c2f2282f4a34d9a016e3374cd40e5c6e9cb335063db66a0a3b71fad
target=${TARGET:-.cache/sentencepiece}
work=.cache/sentencepiece-build

rm -rf "$work" "$target" "$target.new" && mkdir -p "$work" "$target.new"
"${PYTHON:-.venv/bin/python}" -m pip download --disable-pip-version-check --no-deps --no-binary :all: \
  --dest "$work" "sentencepiece==$version"
archive=$work/sentencepiece-$version.tar.gz
if ! echo "$sha256  $archive" | sha256sum --check --quiet; then
  printf '[setup] the archive of SentencePiece %s is not the one that was looked at; %s\n' \
    "$version" "set its sum in tools/sentencepiece.sh if it is right" >&2
  exit 1
fi
tar -xzf "$archive" -C "$work"
source=$work/sentencepiece-$version/sentencepiece
launcher=$(command -v ccache || true)
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF \
  ${TOOLCHAIN:+--toolchain "$PWD/$TOOLCHAIN"} ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher}
cmake --build "$work/build" -j "$(nproc)" --target sentencepiece-static sentencepiece_train-static
mkdir -p "$target.new/include" "$target.new/lib/pkgconfig"
cp "$source"/src/sentencepiece_{processor,trainer}.h "$target.new/include"
cp "$work"/build/src/libsentencepiece{,_train}.a "$target.new/lib"
cp "$work/build/sentencepiece.pc" "$target.new/lib/pkgconfig"
cp "$source/LICENSE" "$target.new"
echo "$version" >"$target.new/version"
mv "$target.new" "$target" && rm -rf "$work"
