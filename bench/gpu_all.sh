#!/usr/bin/env bash
# All that a machine with a GPU can tell, in one go: bash bench/gpu_all.sh [FOLDER] [STEP...]
#
# Steps: environment build tests sanitize ratio (all of them without a name); each leaves its log in FOLDER (by default $OUT,
# else bench/results). All take about 20 minutes on an H200, none more than 10: where a command may not take longer, name
# "environment build tests" in the first, "sanitize" in the second and "ratio" in the third.
#
# Needs Python with cython, setuptools, NumPy, CuPy, PyTorch, ml_dtypes, pytest and hypothesis (with pytest-xdist, tests are
# faster), a C compiler, and compute-sanitizer for that step. Nothing is downloaded or installed; settings of the GPU stay as
# they are. A step that fails does not stop those after it.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=${1:-${OUT:-bench/results}}
shift || true
[ $# -gt 0 ] || set -- environment build tests sanitize ratio
mkdir -p "$folder"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD
python=${PYTHON:-python3}
failed=()

environment() {
    nvidia-smi || return
    "$python" -m pip list 2> /dev/null | grep -iE '^(numpy|cupy|torch|nvidia|ml.dtypes|cython|pytest|hypothesis) ?' || true
    "$python" - <<'PYTHON'
import cupy

print("CuPy", cupy.__version__, "NVRTC", cupy.cuda.nvrtc.getVersion(), "driver", cupy.cuda.runtime.driverGetVersion())
print({name: value for name, value in cupy.cuda.Device().attributes.items() if "Shared" in name or "Processor" in name})
PYTHON
}

# One instruction set of the CPU is enough here.
build() {
    CONVGRAD_CY_BUILD_ISAS=${CONVGRAD_CY_BUILD_ISAS:-x86_64_v3} "$python" setup.py -q build_ext --inplace -j "$(nproc)" \
        && "$python" -m convgrad_cy info
}

# Most of the time goes into compiling kernels. The large arrays want the memory of the GPU for themselves.
tests() {
    local parallel="" status=0
    "$python" -c "import xdist" 2> /dev/null && parallel="-n 8"
    # shellcheck disable=SC2086
    timeout 420 "$python" -m pytest -q -rs --durations 10 $parallel tests/gpu/test_device_values.py tests/gpu/test_device_cupy.py \
        || status=1
    timeout 120 "$python" -m pytest -q -rs tests/gpu/test_device_large.py || status=1
    return $status
}

# The first run, of the families that are preferred, is without a tool, so that kernels are compiled at full speed.
sanitize() {
    local tool family status=0
    "$python" -m bench.gpu_small || status=1
    for family in gather simt depthwise mma; do
        "$python" -m bench.gpu_small $family || status=1
        for tool in memcheck racecheck; do
            echo "--- $tool, $family"
            timeout 120 compute-sanitizer --tool $tool --error-exitcode 1 "$python" -m bench.gpu_small $family || status=1
        done
    done
    return $status
}

ratio() {
    timeout 570 "$python" -m bench.gpu_ratio --out "$folder"
}

for step in "$@"; do
    case $step in environment | build | tests | sanitize | ratio) ;; *)
        echo "gpu_all.sh: a step must be one of environment, build, tests, sanitize, ratio, was $step" >&2
        exit 2
        ;;
    esac
    printf '\n=== %s (%d s)\n' "$step" "$SECONDS"
    "$step" 2>&1 | tee "$folder/gpu_$step.log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$step")
done
printf '\n=== finished after %d s; failed: %s\n' "$SECONDS" "${failed[*]:-none}"
[ ${#failed[@]} -eq 0 ]
