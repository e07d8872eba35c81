#!/usr/bin/env bash
# Check that one built wheel works with several releases of JAX: bash packaging/check_jax.sh WHEEL [VERSION...]
set -euo pipefail

wheel=$(realpath "$1")
checks=$(realpath "$(dirname "$0")/check_jax.py")
shift
[ "$#" -gt 0 ] || set -- 0.7.2 '0.8.*' '0.9.*' '0.10.*'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" # away from the checkout, so that the wheel is imported
for version in "$@"; do
    python3 -m venv --clear environment
    environment/bin/pip install --quiet "jax==$version" "$wheel"
    JAX_PLATFORMS=cpu environment/bin/python -W error "$checks"
done
