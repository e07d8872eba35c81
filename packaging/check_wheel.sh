#!/usr/bin/env bash
# A wheel where a user has it: bash packaging/check_wheel.sh WHEEL [ARGUMENT OF pytest...]
#
# In an environment of its own, with no compiler on the path and away from the checkout, it runs the demo and the tests.
# Those that read the sources, or need g++, are skipped and say so. PYTHON=python3.12 chooses the interpreter.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
# --only-binary: a package without a wheel would need a compiler, and this environment must work without one.
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${wheel}[test]"
mkdir "$work/elsewhere"
beside=(tests bench docs packaging README.md CHANGELOG.md CONTRIBUTING.md LICENSE pyproject.toml)
cp -R "${beside[@]/#/$root/}" "$work/elsewhere"
cd "$work/elsewhere"

ln -s "$(command -v sh)" "$work/venv/bin/sh" # tests of the command line start it
clean() { env -i HOME="$work" LANG=C.UTF-8 PATH="$work/venv/bin" "$@"; }
if clean python -c 'import shutil, sys; sys.exit(not any(map(shutil.which, ("cc", "gcc", "g++", "clang"))))'; then
    echo "check_wheel.sh: there is a compiler on the path" >&2
    exit 1
fi
clean python -m convgrad_cy info
clean python -m convgrad_cy demo
clean python -m pytest -q -n auto -rs "$@"
