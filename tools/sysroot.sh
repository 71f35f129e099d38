#!/usr/bin/env bash
# Unpacks a Debian for ARM into .wheels/aarch64/sysroot: what cmake/aarch64.cmake compiles beside. No
# program of it runs, and nothing of this machine's system is changed. It needs mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

place=.wheels/aarch64
system=$place/sysroot
[ ! -e "$place/sysroot.done" ] || exit 0
rm -rf "$system" && mkdir -p "$place"
packages="python3 libc6-dev libstdc++-12-dev $(grep -E -- '-dev$' tools/packages.txt)"
mmdebstrap --quiet --variant=extract --architectures=arm64 \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$(echo $packages | tr ' ' ,)" \
  bookworm "$system"
# A link to /lib means this machine's, as long as the system is a folder of it.
find "$system" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln --symbolic --relative --force --no-dereference "$system$(readlink "$link")" "$link"
done
touch "$place/sysroot.done"
