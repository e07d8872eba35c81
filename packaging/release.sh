#!/usr/bin/env bash
# All files of a release that this machine can make: bash packaging/release.sh [--rehearsal] [FOLDER]
#
# The sdist, the wheel for this Python, and SHA256SUMS, in FOLDER (default: dist). It refuses a commit that is not ready
# (check_release.py); --rehearsal only prints the reasons. On Debian and Ubuntu the wheel is linked with older libraries
# (sysroot.sh), for manylinux_2_28. PYTHON=python3.12 chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

rehearsal=0
if [ "${1:-}" = --rehearsal ]; then
    rehearsal=1
    shift
fi
out=${1:-dist}
[ ! -e "$out" ] || [ -z "$(ls "$out")" ] || { echo "release.sh: $out is not empty" >&2; exit 1; }

tag=$(git describe --exact-match --tags 2> /dev/null || true)
[ -z "$(git status --porcelain)" ] || { echo "release.sh: commit the changes of the checkout first" >&2; exit 1; }
python3 packaging/check_release.py "$tag" || [ "$rehearsal" = 1 ] || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(uname -s)" = Linux ] && command -v apt-get > /dev/null; then
    bash packaging/sysroot.sh "$work/sysroot"
    export SYSROOT=$work/sysroot
fi
bash packaging/build.sh "$out"

python3 -m venv "$work/checks"
"$work/checks/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    --requirement packaging/release-requirements.txt
"$work/checks/bin/twine" check --strict "$out"/*
"$work/checks/bin/check-wheel-contents" "$out"/*.whl
if [ -n "${SYSROOT:-}" ]; then
    ls "$out" | grep -E 'manylinux_2_(17|2[0-8])_' > /dev/null || { echo "release.sh: no wheel for manylinux_2_28" >&2; exit 1; }
fi
(cd "$out" && sha256sum -- *.tar.gz *.whl | tee SHA256SUMS)
