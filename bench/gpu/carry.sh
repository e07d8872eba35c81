#!/usr/bin/env bash
# Builds the CPU's kernels into .gpu/ for a machine with a GPU, which then need not build: bash bench/gpu/carry.sh
#
# Builds for Python 3.12, as such machines have it (or another: PYTHON=python3.13). It is searched for on the path and,
# with its latest patch, in pyenv. Needs a C compiler and pip; takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3.12}
if command -v pyenv > /dev/null; then
    PYENV_VERSION=$(pyenv versions --bare | grep -E "^${python#python}\.[0-9]+$" | sort -V | tail -n 1 || true)
    if [ -n "$PYENV_VERSION" ]; then export PYENV_VERSION; else unset PYENV_VERSION; fi
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -c '
import tomllib

with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["build-system"]["requires"], sep="\n")
' > "$scratch/requirements"
"$scratch/venv/bin/pip" -q --disable-pip-version-check install -r "$scratch/requirements"
mkdir -p .gpu "$scratch/copy" # the build of the checkout's own Python stays unchanged
git ls-files --cached --others --exclude-standard -z -- setup.py pyproject.toml README.md LICENSE pyx convgrad_cy \
    | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$scratch/copy"
(
    cd "$scratch/copy"
    CONVGRAD_CY_BUILD_ISAS=${CONVGRAD_CY_BUILD_ISAS:-x86_64_v3} "$scratch/venv/bin/python" setup.py -q build_ext --inplace
)
rm -f .gpu/*.so
cp "$scratch"/copy/convgrad_cy/*.so .gpu/
ls -l .gpu
