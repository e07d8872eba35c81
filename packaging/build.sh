#!/usr/bin/env bash
# A release for this machine: bash packaging/build.sh [--sdist] [FOLDER]
#
# The sdist from this checkout, the wheel from that sdist alone and, on Linux, repaired; with --sdist no wheel.
# PYTHON=python3.12 chooses the interpreter. SYSROOT=FOLDER links with the libraries of packaging/sysroot.sh instead of
# this machine's, so that the wheel also runs on older systems. The same commit, tools and compiler give the same bytes,
# whatever the folders are called.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=1
if [ "${1:-}" = --sdist ]; then
    wheel=0
    shift
fi
out=${1:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

# Every file of the archives has the time of the last commit, and the rights that no umask of ours has a part in.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022

"${PYTHON:-python3}" -m venv "$work/tools"
PATH=$work/tools/bin:$PATH
# Each file by its hash, and no sdist: building one would bring tools that have none.
python -m pip install --quiet --require-hashes --only-binary :all: --requirement packaging/build-requirements.txt

python -m build --no-isolation --sdist --outdir "$work/sdist" .
sdist=$(basename "$work"/sdist/*.tar.gz)
tar -xf "$work/sdist/$sdist" -C "$work"
source=$work/${sdist%.tar.gz}

# setuptools has the time of today and the owner's name in a sdist.
python - "$source" "$out/$sdist" <<'PYTHON'
import gzip
import os
import sys
import tarfile
from pathlib import Path

source, target = map(Path, sys.argv[1:])


def plain(entry):
    entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


with gzip.GzipFile("", "wb", fileobj=target.open("wb"), mtime=0) as packed:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(source, source.name, filter=plain)  # sorted by name
PYTHON

[ "$wheel" = 1 ] || exit 0

if [ -n "${SYSROOT:-}" ]; then
    libraries=$(cd "$SYSROOT" && pwd)/usr/lib/$(uname -m)-linux-gnu
    # GCC searches its own folders before the sysroot, but after the folder of -B.
    export CC="gcc --sysroot=$(cd "$SYSROOT" && pwd) -B$libraries" LIBGOMP=$libraries/libgomp.so.1
fi
python -m build --no-isolation --wheel --outdir "$work/wheel" "$source"
if [ "$(uname -s)" = Linux ]; then
    bash "$source/packaging/repair.sh" "$work"/wheel/*.whl "$out"
else
    cp "$work"/wheel/*.whl "$out"
fi
