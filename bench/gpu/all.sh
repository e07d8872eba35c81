#!/usr/bin/env bash
# All steps of a machine with a GPU, in three calls below ten minutes: bash bench/gpu/all.sh [FOLDER] [STEP...]
#
#   call  steps                     seconds at most                                               together
#   1     environment smoke tests   environment 30, build 20, smoke 150, tests 200 + 60 + 60           520
#   2     ratio                     build 20, ratio 500                                                520
#   3     sanitize                  build 20, sanitize 490                                             510
#                                                                    26 minutes, plus the start of the calls
#
# Each step stands alone on a bare machine. It uses the copy of convgrad_cy's modules in .gpu/, which bench/gpu/carry.sh
# makes beforehand. If this cannot be imported, the step builds them, in up to 240 seconds. A step gets no more time than
# is left of LIMIT (570 seconds for a call; 1680 without a step, which means all of them). If there is less time, set
# LIMIT: the most important parts come first. Logs and results go to FOLDER (by default $OUT, else .gpu/results).
# gpu_ratio.json may be kept as bench/results/GPU-ratio.json.
#
# smoke      every variant of every kernel (bench/gpu/variants.py); a family that raised is off in ratio
# tests      tests/gpu/test_device_*.py
# ratio      against cuDNN (bench/gpu/ratio.py)
# sanitize   every variant under memcheck and racecheck
#
# A machine that is lent for fifteen minutes has two plans instead of steps. Run them at once, one after the other:
#
#   bash bench/gpu/all.sh FOLDER first      560 s: environment, smoke 75, tests 100, and the rest for ratio
#   bash bench/gpu/all.sh FOLDER second     165 s: sanitize, for the kernels with TMA
#
# "first" smokes 16-bit variants on tensor cores, tests arrays of CuPy, and times rows in this order: channels first,
# forward, layers and types of the groups that were added last, and all others. Should it show a wrong row, call ratio
# with that row instead of "second": RATIO="--match ROW" LIMIT=150 bash bench/gpu/all.sh FOLDER ratio
#
# More or other arguments: VARIANTS for bench.gpu.variants, RATIO for bench.gpu.ratio, TESTS for pytest.
#
# Needs Python with NumPy, CuPy, PyTorch, ml_dtypes, pytest and hypothesis (with pytest-xdist, tests are faster), cython,
# setuptools and a C compiler for a build, and compute-sanitizer. Nothing is downloaded or installed; settings of the GPU
# stay as they are. A step that fails does not stop later steps.
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-${OUT:-.gpu/results}}
shift || true
if [ "$*" = first ]; then
    set -- environment smoke tests ratio
    LIMIT=${LIMIT:-545} SMOKE_SECONDS=${SMOKE_SECONDS:-75} TESTS_SECONDS=${TESTS_SECONDS:-100}
    VARIANTS=${VARIANTS:-"--family mma --dtype bfloat16 --dtype float16"}
    TESTS=${TESTS:-tests/gpu/test_device_cupy.py}
    RATIO=${RATIO:-"--match first --match fprop --match other --match small --match depthwise, --match both --match _"}
elif [ "$*" = second ]; then
    set -- sanitize
    LIMIT=${LIMIT:-150}
    VARIANTS=${VARIANTS:-"--family mma --dtype bfloat16 --match engine"}
fi
LIMIT=${LIMIT:-$(($# ? 570 : 1680))}
[ $# -gt 0 ] || set -- environment smoke tests ratio sanitize
python=${PYTHON:-python3}
deadline=$(($(date +%s) + LIMIT))
export python deadline VARIANTS=${VARIANTS:-}
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} CUPY_CACHE_DIR=${CUPY_CACHE_DIR:-$PWD/.gpu_cache}
export CONVGRAD_CY_CACHE_DIR=${CONVGRAD_CY_CACHE_DIR:-$CUPY_CACHE_DIR}
mkdir -p "$folder" "$CUPY_CACHE_DIR"
failed=()

# The seconds that a step may take: $1, or the rest of the call if this is less.
seconds() {
    local left=$((deadline - $(date +%s)))
    echo $(($1 < left ? $1 : left > 0 ? left : 0))
}

# Run a command for at most $1 seconds.
within() {
    local most
    most=$(seconds "$1")
    shift
    if [ "$most" -lt 5 ]; then
        echo "no time is left for: $*"
        return 1
    fi
    timeout --kill-after 5 "$most" "$@"
}

environment() {
    within 10 nvidia-smi || return
    within 10 "$python" -m pip list 2> /dev/null | grep -iE '^(numpy|cupy|torch|nvidia|ml.dtypes|cython|pytest|hypothesis)' || true
    within 10 "$python" - <<'PYTHON'
import cupy

print("CuPy", cupy.__version__, "NVRTC", cupy.cuda.nvrtc.getVersion(), "driver", cupy.cuda.runtime.driverGetVersion())
print({name: value for name, value in cupy.cuda.Device().attributes.items() if "Shared" in name or "Processor" in name})
PYTHON
}

# Whether the CPU's kernels are there for this Python and this machine.
built() {
    "$python" -c 'import numpy, convgrad_cy; convgrad_cy.conv(numpy.ones((1, 1, 3)), numpy.ones((1, 1, 2)))' 2> /dev/null
}

# One instruction set of the CPU is enough here.
build() {
    local so copies=()
    built && return
    for so in .gpu/*.so; do
        [ -e "$so" ] && cp "$so" convgrad_cy/ && copies+=("convgrad_cy/${so##*/}")
    done
    built && return
    [ ${#copies[@]} -eq 0 ] || rm "${copies[@]}"
    CONVGRAD_CY_BUILD_ISAS=${CONVGRAD_CY_BUILD_ISAS:-x86_64_v3} \
        within 240 "$python" setup.py -q build_ext --inplace -j "$(nproc)" && built
}

# A failing launch must fail at once. All families and types run in parallel: most of the time is spent on compiling.
smoke() {
    local status file=$folder/gpu_variants.json
    # shellcheck disable=SC2086
    CUDA_LAUNCH_BLOCKING=1 within "${SMOKE_SECONDS:-150}" "$python" -m bench.gpu.variants \
        --jobs 20 --seconds "$(($(seconds "${SMOKE_SECONDS:-150}") - 25))" --out "$file" $VARIANTS
    status=$?
    [ ! -e "$file" ] || cp "$file" "$CUPY_CACHE_DIR"
    return $status
}

# Warnings are not errors here: the machine's packages give some, and CI checks the others.
device_tests() {
    local most=$1
    shift
    within "$most" "$python" -m pytest -q -rs -W default -p no:cacheprovider -p no:benchmark --durations 5 "$@"
}

# The large arrays want the memory of the GPU for themselves.
tests() {
    local parallel=() status=0 here=tests/gpu/test_device
    "$python" -c "import xdist" 2> /dev/null && parallel=(-n "$(($(nproc) < 12 ? $(nproc) : 12))")
    if [ -n "${TESTS:-}" ]; then
        # shellcheck disable=SC2086
        device_tests "${TESTS_SECONDS:-320}" "${parallel[@]}" $TESTS
        return
    fi
    device_tests 200 "${parallel[@]}" ${here}_values.py || status=1
    device_tests 90 ${here}_cupy.py ${here}_cupy_cudnn.py ${here}_torch.py || status=1
    device_tests 60 ${here}_large.py || status=1
    return $status
}

# The families whose variants did not raise in the last smoke step; nothing, which means all of them, if there was none.
families() {
    local place
    for place in "$folder" "$CUPY_CACHE_DIR" .gpu; do
        if [ -e "$place/gpu_variants.json" ]; then
            "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["families"])' "$place/gpu_variants.json"
            return
        fi
    done
}

ratio() {
    local most
    most=$(($(seconds 500) - 50)) # for the last row, and the report
    CONVGRAD_CY_GPU=${CONVGRAD_CY_GPU:-$(families)}
    export CONVGRAD_CY_GPU
    echo "families: ${CONVGRAD_CY_GPU:-all}"
    # shellcheck disable=SC2086
    within 500 "$python" -m bench.gpu.ratio \
        --out "$folder" --minutes "$(printf '%d.%02d' $((most / 60)) $((most % 60 * 100 / 60)))" ${RATIO:-}
}

# A tool on a family and a type. The line that it prints last is the proof that it looked.
sanitized() {
    local log=$logs/$1-$2-$3 status summary
    # shellcheck disable=SC2086
    within 160 compute-sanitizer --tool "$1" --error-exitcode 1 "$python" -m bench.gpu.variants \
        $VARIANTS --here "$2" "$3" --seconds 110 > "$log" 2>&1
    status=$?
    summary=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY:' "$log" | tail -n 1)
    case "$status $summary" in
        [04]\ *" ERROR SUMMARY: 0 errors"* | [04]\ *" RACECHECK SUMMARY: 0 hazards"*)
            echo "clean: $1 $2 $3$([ $status -eq 0 ] || grep 'No time was left' "$log")" > "$log.result"
            ;;
        *)
            {
                echo "FAILED: $1 $2 $3, status $status, ${summary:-no summary}"
                grep -E '^=+' "$log" | head -n 40
                grep -vE '^=+' "$log" | tail -n 10
            } > "$log.result"
            ;;
    esac
}

sanitize() {
    local logs tool
    logs=$(mktemp -d)
    export logs
    export -f sanitized within seconds
    for tool in memcheck racecheck; do
        # shellcheck disable=SC2086
        "$python" -m bench.gpu.variants --list $VARIANTS | sed "s/^/$tool /"
    done > "$logs/all"
    xargs -P "$(nproc)" -n 3 bash -c 'sanitized "$@"' bash < "$logs/all"
    cat "$logs"/*.result
    [ "$(cat "$logs"/*.result | grep -c '^clean: ')" -eq "$(grep -c . "$logs/all")" ]
}

for step in "$@"; do
    case $step in environment | smoke | tests | ratio | sanitize) ;; *)
        echo "bench/gpu/all.sh: a step must be one of environment, smoke, tests, ratio, sanitize, was $step" >&2
        exit 2
        ;;
    esac
done
for step in "$@"; do
    printf '\n=== %s (%d s)\n' "$step" "$SECONDS"
    {
        if [ "$step" = environment ] || build; then "$step"; else false; fi
    } 2>&1 | tee "$folder/gpu_$step.log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$step")
done
printf '\n=== finished after %d s; failed: %s\n' "$SECONDS" "${failed[*]:-none}"
[ ${#failed[@]} -eq 0 ]
