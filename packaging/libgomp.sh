#!/usr/bin/env bash
# The libgomp.so.1 that a wheel bundles, into a folder: bash packaging/libgomp.sh FOLDER
#
# It is the compiler's own if GCC is version 12 or newer. The image manylinux_2_28 is an exception: its compiler comes from
# gcc-toolset-14, but links the system's libgomp of GCC 8.5, whose threads scale badly on ARM. There the script builds
# libgomp from the source of GCC 14. This takes half a minute, because no other part of GCC is needed.
set -euo pipefail
mkdir -p "$1"
target=$(cd "$1" && pwd)/libgomp.so.1

own=$(gcc -print-file-name=libgomp.so.1)
if readelf --version-info --wide "$own" | grep 'GOMP_5\.1' > /dev/null; then
    ln -sf "$(realpath "$own")" "$target" # a link, so that its package is known
    exit
fi

version=14.2.0
url=https://ftp.gnu.org/gnu/gcc/gcc-$version/gcc-$version.tar.xz
sha256=a7b39bc69cbf9e25826c5a60ab26477001f7c08d85cec04bc0e29cabed6f3cc9
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
curl --fail --silent --show-error --location --retry 3 --remote-name "$url"
echo "$sha256  gcc-$version.tar.xz" | sha256sum --check
tar -xf "gcc-$version.tar.xz"
mkdir build
cd build
log=$work/build.log
{ "../gcc-$version/libgomp/configure" --disable-multilib --disable-static --disable-werror && make -j"$(nproc)"; } > "$log" 2>&1 \
    || { tail -50 "$log"; exit 1; }
cp --dereference .libs/libgomp.so.1 "$target"
echo "pkg:generic/gcc@$version?checksum=sha256:$sha256&download_url=$url" > "$target.purl"
