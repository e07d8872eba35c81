#!/usr/bin/env bash
# The stages of .ci/run, a function each. gate.py starts them, each in a process of its own, with these variables:
# CI_ROOT (the checkout), CI_SCRATCH (a folder that all stages share), CI_SEED, and the stage's shares.
set -euo pipefail

fail() { printf '%s\n' "$*" >&2; exit 1; }

scratch=${CI_SCRATCH:-}
checkout=$scratch/checkout
python=$checkout/.venv/bin/python
SHARE=${SHARE:-0.02}
read -ra pytest <<< "-m pytest -q -n auto --seed ${CI_SEED:-0}"
[ "${CI_SEED:-0}" = 0 ] || pytest+=("--hypothesis-seed=$CI_SEED")

kernel_tests=(tests/kernels/test_{values,nonfinite,adjoint,winograd,winograd_range,orders,phases,pairs}.py)
kernel_tests+=(tests/kernels/test_{segments,zones,sliding,patches,packing,columns,exchanged,spread,long_filters,long_sums}.py)

# --- What several stages need: made by the first that asks. ---

once() { # NAME: runs make_NAME, unless it has succeeded before; another stage waits for the lock
    (
        flock 9
        [ -e "$scratch/$1.made" ] || { "make_$1"; touch "$scratch/$1.made"; }
    ) 9> "$scratch/$1.lock"
}

make_build() {
    python3 -m venv "$checkout/.venv"
    "$python" -m pip install -e '.[test]'
}

make_isas() {
    once build
    CONVGRAD_CY_BUILD_ISAS=all "$python" -m pip install -e '.[test]'
}

make_dist() { # this machine's instruction set only: the stage isas builds the others
    once build
    local isa epoch
    isa=$(chosen_isa)
    epoch=$(git -C "$CI_ROOT" log -1 --format=%ct) # the copy has no .git
    SOURCE_DATE_EPOCH=$epoch CONVGRAD_CY_BUILD_ISAS=$isa PYTHON=$python bash packaging/build.sh "$scratch/dist" \
        > "$scratch/dist.log" 2>&1 || { tail -50 "$scratch/dist.log"; return 1; }
}

chosen_isa() { "$python" -c 'from convgrad_cy import cpu; print(cpu.isa)'; }

runnable_isas() { # the first one has the narrowest vectors
    (cd "$checkout" && "$python" -c 'from convgrad_cy import _cpu_features; print(*_cpu_features.supported())')
}

is_linux() { [ "$(uname -s)" = Linux ]; }

unpacked() { # NAME: a fresh copy of the checkout, without the builds of other stages
    mkdir "$scratch/$1"
    tar -xf "$scratch/checkout.tar" -C "$scratch/$1"
    cd "$scratch/$1"
    python3 -m venv .venv
}

# --- What runs at the same time as the stages. ---

get_peers() {
    local checkers
    mapfile -t checkers < <(grep -oE '(mypy|basedpyright)==[^"]+' pyproject.toml)
    python3 -m venv "$scratch/peers"
    timeout 900 "$scratch/peers/bin/pip" download --dest "$scratch/peers/wheels" \
        torch==2.13.0 'jax<0.11' onnx expecttest tqdm 'dask[array]' distributed zarr "${checkers[@]}" ||
        touch "$scratch/no_peers"
    # For docs/examples: in a folder of their own, because they may want an older NumPy.
    timeout 300 "$scratch/peers/bin/pip" install --only-binary :all: --target "$scratch/examples" \
        matplotlib tqdm autograd pytensor sigpy || rm -rf "$scratch/examples"
}

get_gpu() { # the extra [ctk] has more than the headers, which CuPy needs, and NVRTC of the version that the tests know
    python3 -m venv "$scratch/gpu"
    "$scratch/gpu/bin/pip" install numpy pytest pytest-xdist hypothesis threadpoolctl 'ml_dtypes>=0.4' 'cupy-cuda13x>=14' \
        'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*' nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm
    local version
    for version in 12.4 12.8 12.9; do # PyTorch for CUDA 12 pins one of these
        "$scratch/gpu/bin/pip" install --no-deps --target "$scratch/nvrtcs/$version" "nvidia-cuda-nvrtc-cu12==$version.*"
    done
}

get_site() {
    once build
    python3 -m venv "$scratch/site"
    "$python" -c '
from importlib.metadata import requires
print(*(line.split(";")[0] for line in requires("convgrad_cy") if line.endswith("extra == \"docs\"")), sep="\n")' \
        > "$scratch/site.txt"
    [ -s "$scratch/site.txt" ] || fail "pyproject.toml has no extra docs"
    "$scratch/site/bin/pip" install numpy --requirement "$scratch/site.txt"
}

build_plain() { # clang on Linux has no OpenMP of its own, as on a Mac
    once build
    unpacked plain
    local clang isas
    clang=$(command -v clang || true)
    isas=$(runnable_isas)
    env ${clang:+CC=clang} CONVGRAD_CY_NO_OPENMP=1 CONVGRAD_CY_OPTIMIZE=1 CONVGRAD_CY_BUILD_ISAS="${isas%% *}" \
        .venv/bin/pip install -e '.[test]'
}

build_sanitized() {
    once build
    unpacked sanitized
    local isas widest wide=0
    isas=$(runnable_isas)
    widest=${isas##* }
    # The widest vectors reach the furthest beyond an array: a processor without AVX-512 can still run their shape.
    case $widest in x86_64_v[23]) wide=1 ;; esac
    # Optimising takes longer than a share of the tests.
    export CONVGRAD_CY_SANITIZE=address,undefined CONVGRAD_CY_OPTIMIZE=0
    CONVGRAD_CY_WIDE=$wide CONVGRAD_CY_BUILD_ISAS=$widest .venv/bin/pip install -e '.[test]'
    if [ "$isas" != "$widest" ]; then # the gate has the narrowest vectors, too, and "all" every one
        CONVGRAD_CY_BUILD_ISAS=${isas%% *} .venv/bin/pip install -e '.[test]'
    fi
}

build_arm() { # 77: the compiler, the emulator or an arm64 Python cannot be had
    once build
    local status=0
    CONVGRAD_CY_OPTIMIZE=1 PYTHON=$python bash tests/arm build || status=$?
    [ "$status" != 77 ] || touch "$scratch/no_arm"
    [ "$status" = 0 ] || [ "$status" = 77 ]
}

# --- The stages. ---

copy() { # the files that git tracks or would track
    mkdir "$checkout"
    cd "$CI_ROOT"
    git ls-files --cached --others --exclude-standard -z | tar --null --ignore-failed-read -T - -cf "$scratch/checkout.tar"
    tar -xf "$scratch/checkout.tar" -C "$checkout"
}

lint() {
    local size
    size=$(find . -type f -not -path './.venv/*' -print0 | xargs -0 cat | wc -c)
    [ "$size" -le $((8 << 20)) ] || fail "the files that git tracks have $size bytes, more than 8 MiB"
    python3 -m venv "$scratch/lint"
    lint_with "$scratch/lint/bin"
}

lint_with() { # FOLDER of an environment's commands
    local tools
    mapfile -t tools < <(sed -nE 's/^ *"((ruff|cython-lint|clang-format|zizmor)[^"]*)",$/\1/p' pyproject.toml)
    [ "${#tools[@]}" -eq 4 ] || fail "pyproject.toml names ${#tools[@]} tools, not 4"
    "$1/pip" install "${tools[@]}" pytest
    "$1/ruff" check .
    "$1/ruff" format --check .
    # The words, by nothing but pytest: neither the package nor the settings of the suite are there.
    "$1/python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir . --noconftest -W ignore tests/project/test_prose.py
    "$1/zizmor" --offline --no-progress --quiet .github
    PATH=$1:$PATH cython-lint pyx # it looks for pycodestyle on the path
    find pyx convgrad_cy tests/amx tests/gpu/sim tests/emulator tests/watch -not -path '*/build/*' \
        \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.?pp' \) \
        -exec "$1/clang-format" --dry-run -Werror {} +
}

readme_command() { # NUMBER: a command that README.md tells a newcomer to type
    local commands
    # shellcheck disable=SC2016 # the marks of a block
    mapfile -t commands < <(sed -n '/^```sh$/,/^```$/p' README.md | grep '^python3 -m venv')
    [ "${#commands[@]}" -eq 2 ] || fail "README.md has ${#commands[@]} commands that start with 'python3 -m venv', not 2"
    printf '%s\n' "${commands[$1 - 1]}"
}

typed() { # COMMAND
    printf '%s\n' "$1"
    bash -euo pipefail -c "$1"
}

demo() {
    local command
    command=$(readme_command 1)
    typed "$command"
}

suite() {
    local command
    command=$(readme_command 2)
    typed "$command"
    touch "$scratch/build.made"
}

fast() {
    once build
    "$python" "${pytest[@]}" --share "$SHARE"
}

kernels_with() { # VARIABLE=VALUE...
    printf '%s\n' "$*"
    env "$@" "$python" "${pytest[@]}" --share "$SHARE" "${kernel_tests[@]}" \
        tests/kernels/test_nontemporal.py tests/plan/test_algorithm.py tests/threads/test_invariance.py
}

site() { # in the checkout, where the kernels are built
    "$scratch/site/bin/python" -m sphinx -nW -q -D plot_gallery="$GALLERY" docs "$scratch/site/pages"
    echo "$(find "$scratch/site/pages" -name '*.html' | wc -l) pages"
}

threads() {
    once build
    kernels_with OMP_NUM_THREADS=1
}

isas() {
    once isas
    "$python" -m convgrad_cy info
    local isa runnable chosen
    runnable=$(runnable_isas)
    chosen=$(chosen_isa)
    for isa in $runnable; do
        [ "$isa" = "$chosen" ] || kernels_with CONVGRAD_CY_ISA="$isa"
    done
}

wheel() {
    once isas # their size is part of a release's
    once dist
    local chosen oldest
    chosen=$(chosen_isa)
    "$python" .ci/wheel_contents.py "$chosen" "$scratch"/dist/*.whl
    echo "in a clean environment with NumPy alone, away from the checkout:"
    python3 -m venv "$scratch/clean"
    "$scratch/clean/bin/pip" install "$scratch"/dist/*.whl
    oldest=$("$python" -c '
from importlib.metadata import requires
print(next(line for line in requires("convgrad_cy") if line.startswith("numpy>=")).replace(">=", "==") + ".*")')
    mkdir "$scratch/elsewhere"
    cd "$scratch/elsewhere"
    # Without a compiler, and without everything else of this machine.
    env -i PATH="$scratch/clean/bin" python -m convgrad_cy demo
    env -i PATH="$scratch/clean/bin" python -m convgrad_cy check
    "$scratch/clean/bin/python" -W error -c "import convgrad_cy; print(convgrad_cy.__version__, convgrad_cy.__file__)"
    "$scratch/clean/bin/python" -m convgrad_cy info
    if "$scratch/clean/bin/pip" install --only-binary numpy "$oldest" 2> "$scratch/oldest.log"; then
        echo "with $oldest:"
        "$scratch/clean/bin/python" -m convgrad_cy demo
    else
        echo "$oldest has no wheel for this Python: not tested with it"
    fi
}

types() { # the tools look at the wheel, and at the editable install of README's second command
    once build
    once dist
    local wheel=("$scratch"/dist/*.whl)
    python3 -m venv "$scratch/types"
    "$scratch/types/bin/pip" install "${wheel[0]}[types]" pytest pytest-xdist
    local typed=("$scratch/types/bin/pytest" -q -n 2 -p no:cacheprovider -c /dev/null --rootdir . --noconftest -W ignore)
    "${typed[@]}" tests/typed
    echo "the editable install:"
    TYPED_PYTHON=$python "${typed[@]}" tests/typed -k wrong_calls
}

peers() {
    once build
    if [ -e "$scratch/no_peers" ] || ! "$python" -m pip install --no-index "$scratch"/peers/wheels/*; then
        [ "${CI_REQUIRE_PEERS:-0}" != 1 ] || fail "PyTorch, JAX, onnx or Dask could not be installed"
        echo "SKIPPED: PyTorch, JAX, onnx or Dask could not be installed"
        return
    fi
    "$python" "${pytest[@]}" --slow --slow-share "$SLOW_SHARE" --share "$SHARE" -m "torch or jax or onnx or dask"
    [ "$SLOW_SHARE" = 1 ] || "$python" -m pytest -q --slow tests/project/test_scale_examples.py -k larger_than_its_memory
    if [ -d "$scratch/examples" ]; then
        PYTHONPATH=$scratch/examples "$python" "${pytest[@]}" -rs -m examples tests/project/test_examples.py
    else
        echo "SKIPPED: the packages of docs/examples could not be installed"
    fi
    if is_linux; then
        once dist
        echo "the repaired wheel together with PyTorch:"
        "$python" -m pip install --no-deps --target "$scratch/wheel" "$scratch"/dist/*.whl
        PYTHONPATH=$scratch/wheel "$python" packaging/check_torch.py
    fi
}

watch() {
    once build
    "$python" "${pytest[@]}" --slow --slow-share "$SLOW_SHARE" --share "$SHARE" --fuzz-calls "$FUZZ_CALLS" tests/watch
}

emulator() {
    once build
    local runnable
    runnable=$(runnable_isas)
    case "$runnable $(uname -sm)" in
        *"x86_64_v"[23]" Linux x86_64") ;;
        *) echo "SKIPPED: this processor needs no emulation"; return ;;
    esac
    if ! "$python" -m pip install bochscpu-python; then
        echo "SKIPPED: bochscpu-python could not be installed"
        return
    fi
    once isas
    "$python" tests/emulator "${pytest[@]}" -p no:faulthandler --share "$SHARE" "${kernel_tests[@]}" tests/threads/test_invariance.py
}

amx() { # the model replaces instructions that few processors have
    once build
    case "$(runnable_isas) $(uname -s)" in
        *"x86_64_v4 Linux") ;;
        *) echo "SKIPPED: the model needs x86_64_v4 and Linux"; return ;;
    esac
    unpacked amx
    CONVGRAD_CY_TILE_MODEL=1 CONVGRAD_CY_BUILD_ISAS=x86_64_v4 .venv/bin/pip install -e '.[test]'
    CONVGRAD_CY_ISA=x86_64_amx .venv/bin/python "${pytest[@]}" --share "$SHARE" "${kernel_tests[@]}" \
        tests/amx tests/threads/test_{invariance,many_threads,teams,processes}.py
}

mutants() {
    once build
    local chosen
    chosen=$(chosen_isa)
    if is_linux && [ "$chosen" = x86_64_v4 ]; then # the tables are for its vectors and tiles
        "$python" tests/mutants --every "$EVERY"
    else
        echo "SKIPPED: the mutants need x86_64_v4"
    fi
}

gpu() { # in the checkout, where the CPU's kernels are built
    once build
    export CONVGRAD_CY_NVRTCS=$scratch/nvrtcs
    "$scratch/gpu/bin/python" "${pytest[@]}" --slow --slow-share "$SLOW_SHARE" --whole-share "$WHOLE_SHARE" \
        --share "$SHARE" ${MORE:+"$MORE"} -rs tests/gpu
}

newest() {
    local newer
    newer=$(python3 .ci/newest_python.py)
    if [ -z "$newer" ]; then
        echo "SKIPPED: python3 is the newest Python on this machine"
        return
    fi
    once dist
    mkdir "$scratch/newest"
    tar -xf "$scratch"/dist/*.tar.gz -C "$scratch/newest" --strip-components 1
    local command
    command=$(readme_command 2)
    cd "$scratch/newest"
    export CONVGRAD_CY_OPTIMIZE=1 # the interpreter is tested, not the compiler
    typed "${command/#python3/$newer} -q --seed ${CI_SEED:-0} --share $SHARE ${MORE:-}"
}

plain() {
    cd "$scratch/plain"
    .venv/bin/python "${pytest[@]}" --share "$SHARE" tests/kernels/test_values.py tests/project/test_packaging.py
}

sanitize() {
    is_linux || { echo "SKIPPED: Linux only"; return; }
    cd "$scratch/sanitized"
    local isas isa share
    isas=$(runnable_isas)
    if [ "${WHOLE:-0}" = 1 ]; then
        CONVGRAD_CY_SANITIZE=address,undefined CONVGRAD_CY_OPTIMIZE=0 CONVGRAD_CY_BUILD_ISAS=${isas// /,} \
            .venv/bin/pip install -e '.[test]'
    else
        isas=$(printf '%s\n' "${isas%% *}" "${isas##* }" | uniq)
    fi
    for isa in $isas; do
        share=$NARROW
        [ "$isa" != "${isas##* }" ] || share=$SHARE
        echo "$isa, a share of $share"
        CONVGRAD_CY_ISA=$isa LD_PRELOAD="$(${CC:-gcc} -print-file-name=libasan.so)" \
            ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
            .venv/bin/python "${pytest[@]}" --share "$share" "${kernel_tests[@]}"
    done
}

arm() {
    if [ -e "$scratch/no_arm" ]; then
        echo "SKIPPED: $(sed -n 's/^tests.arm: //p' "$scratch/build_arm.log")"
        return
    fi
    local chosen=()
    if [ "${WHOLE:-0}" != 1 ]; then
        export CONVGRAD_CY_OPTIMIZE=1 # optimising takes longer than a share of the tests
        export CPUS=max,pauth-impdef=on
        chosen=(tests/kernels/test_{values,nonfinite,pairs}.py)
    fi
    PYTHON=$python bash tests/arm --seed "${CI_SEED:-0}" --share "$SHARE" "${chosen[@]}"
}

quick() { # in the checkout itself
    [ -d .venv ] || python3 -m venv .venv
    echo "=== lint"
    lint_with "$PWD/.venv/bin"
    echo "=== build of what has changed"
    .venv/bin/pip install -e '.[test]'
    echo "=== each test once, with a few of its parameters; not those that build or train"
    .venv/bin/python "${pytest[@]}" --share "$SHARE" tests/{calls,plan,kernels,threads,arrays,shims,cli,project} \
        --ignore tests/project/test_build.py --ignore tests/project/test_build_steps.py --ignore tests/cli/test_demo.py
    echo "=== passed: bash .ci/run has the rest"
}

case $1 in
    quick) unset "${!CONVGRAD_CY_@}" OMP_NUM_THREADS PYTHONPATH ;;
    copy) ;;
    *) cd "$checkout" ;;
esac
"$1"
