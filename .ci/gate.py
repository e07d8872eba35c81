"""Runs the stages of stages.sh one after the other, and prints their seconds: see .ci/run."""

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: Seconds that the gate may take on two quiet cores. More is said, and is no failure: other users slow a machine down.
BUDGET = 1500


class Stage(NamedTuple):
    """A function of stages.sh. ``gate`` and ``whole`` are its variables in the gate and in ``all``.

    A share is the part of each test's parameters that runs, at least one: 0.1 is a tenth. Names decide which, and
    --seed: one commit runs the same tests each time.
    """

    name: str
    budget: int  # seconds on two quiet cores
    about: str
    gate: str | None = ""  # None: runs by name only
    whole: str = ""
    needs: tuple[str, ...] = ()  # of BESIDE


#: In the order in which they run.
STAGES = [
    Stage("lint", 20, "ruff, cython-lint, clang-format, zizmor; words, commit subjects, the size of the repository"),
    Stage("demo", 150, "README's first command: builds this machine's best instruction set, trains a small network"),
    Stage("suite", 345, "README's second command: the whole suite with all cores"),
    Stage("fast", 60, "each test with a few of its parameters", None, "SHARE=0.02"),
    Stage("threads", 75, "kernels with one thread", "SHARE=0.03", "SHARE=1"),
    Stage("isas", 285, "the other instruction sets: build, kernels", "SHARE=0.03", "SHARE=1"),
    Stage("wheel", 50, "sdist and repaired wheel; check and demo with the wheel alone, the demo with the oldest NumPy"),
    Stage("types", 60, "mypy, pyright and stubtest: a user's program, the documents' examples, the stubs"),
    Stage(
        "site", 25, "the documentation's site, where every warning is an error", "GALLERY=0", "GALLERY=1", ("get_site",)
    ),
    Stage(
        "peers",
        220,
        "with PyTorch, JAX, onnx and Dask; the examples of docs",
        "SHARE=0.03 SLOW_SHARE=0",
        "SHARE=1 SLOW_SHARE=1",
        ("get_peers",),
    ),
    Stage(
        "watch",
        80,
        "allocations that fail, guard pages, random calls, hard data, memory: more than the suite does",
        "SHARE=0.15 SLOW_SHARE=0.1 FUZZ_CALLS=3000",
        "SHARE=1 SLOW_SHARE=1 FUZZ_CALLS=0",  # 0: as many as --slow has
    ),
    Stage("emulator", 100, "x86_64_v4 on Bochs, where the processor lacks it", "SHARE=0.02", "SHARE=0.1"),
    Stage("amx", 150, "bfloat16 on a model of AMX's tile registers", None, "SHARE=0.3"),
    Stage("mutants", 80, "mistakes in planner and kernels that the tests must see", "EVERY=48", "EVERY=1"),
    Stage(
        "gpu",
        140,
        "the GPU's kernels without a GPU: run on the CPU, compiled by NVRTC",
        "SHARE=0.03 SLOW_SHARE=0.01 WHOLE_SHARE=0.02 MORE=--ignore=tests/gpu/test_sanitizers.py",
        "SHARE=1 SLOW_SHARE=1 WHOLE_SHARE=1",
        ("get_gpu",),
    ),
    Stage(
        "newest",
        150,
        "README's second command in the sdist, by the newest Python here",
        "SHARE=0.01 MORE=--ignore=tests/gpu",
        "SHARE=1",
    ),
    Stage("plain", 10, "kernels without OpenMP, by clang at -O1", "SHARE=0.1", "SHARE=1", ("build_plain",)),
    Stage(
        "sanitize",
        140,
        "kernels under AddressSanitizer and UndefinedBehaviorSanitizer: the widest vectors, and NARROW of the others",
        "SHARE=0.02 NARROW=0.003",
        "SHARE=1 NARROW=0.2 WHOLE=1",
        ("build_sanitized",),
    ),
    Stage(
        "arm", 60, "the kernels for arm64 on an emulated processor", "SHARE=0.004", "SHARE=1 WHOLE=1", ("build_arm",)
    ),
]
BY_NAME = {stage.name: stage for stage in STAGES}
#: Functions of stages.sh that run at the same time as the stages: they wait for the network, or compile at low
#: priority. Each begins after the stage that is named here, if that is to run; the kernels' translation exists then.
BESIDE = {
    "get_peers": None,
    "get_gpu": None,
    "get_site": "suite",
    "build_plain": "suite",
    "build_sanitized": "suite",
    "build_arm": "suite",
}

CLOSING = re.compile(r"\b\d+ (?:passed|failed|error|mutants).*?(?= in [\d.]+s|$)")


def arguments():
    parser = argparse.ArgumentParser(prog="bash .ci/run", description="The tests that a change has to pass.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="the gate's without any; quick; all")
    parser.add_argument("--list", action="store_true", help="print the stages")
    parser.add_argument("--keep-going", action="store_true", help="run the stages after one that fails, as all does")
    parser.add_argument("--seed", type=int, help="draw with this: 0 by default, for all the date")
    asked = parser.parse_args()
    if unknown := [name for name in asked.stages if name not in (*BY_NAME, "quick", "all")]:
        parser.error(f"there is no stage {unknown[0]!r}: --list prints all")
    if "quick" in asked.stages and len(asked.stages) > 1:
        parser.error("quick runs alone")
    return asked


def print_list():
    for stage in STAGES:
        note = "by name only" if stage.gate is None else stage.gate
        print(f"{stage.name:<9} {stage.budget:>4} s  {stage.about}{f' [{note}]' if note else ''}")


class Commands:
    """Starts functions of stages.sh, each in a group of processes that can be ended as a whole."""

    def __init__(self, scratch, seed):
        self.scratch = scratch
        self.running = {}  # name: process
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("CONVGRAD_CY_") and name not in ("OMP_NUM_THREADS", "PYTHONPATH")
        }
        self.variables = kept | {
            "CI_ROOT": str(ROOT),
            "CI_SCRATCH": str(scratch),
            "CI_SEED": str(seed),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_QUIET": "2",
            # Each of pytest's processes has a thread for each core: one that waits must not use a core.
            "OMP_WAIT_POLICY": "passive",
            "CONVGRAD_SIMULATOR_CACHE": str(scratch / "simulator"),
            "CONVGRAD_CY_OBJECTS": os.environ.get("CONVGRAD_CY_OBJECTS", str(scratch / "objects")),
        }

    def start(self, name, stdout, variables="", nice=0):
        process = subprocess.Popen(
            ["nice", "-n", str(nice), "bash", HERE / "stages.sh", name],
            env=self.variables | dict(pair.split("=", 1) for pair in variables.split()),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.running[name] = process
        return process

    def start_beside(self, name):
        with open(self.log(name), "w") as log:
            self.start(name, log, nice=10)

    def wait_beside(self, name):
        """Whether it has succeeded."""
        passed = self.running[name].wait() == 0
        if not passed:
            print(f"{name} has failed:", *self.log(name).read_text().splitlines()[-50:], sep="\n", flush=True)
        return passed

    def log(self, name):
        return self.scratch / f"{name}.log"

    def end(self):
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Outcome(NamedTuple):
    seconds: float
    cpu_seconds: float  # of all cores, including the jobs that the stage has waited for
    passed: bool
    closing: str


def cpu_seconds():
    """Those of all processes that have ended: on a busy machine they say more than the time."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_stage(stage, variables, commands):
    """Run a stage, print its output, and return its seconds, whether it passed, and the tests' closing lines."""
    print(f"\n=== {stage.name}: {stage.about} {variables}", flush=True)
    began, cpu_began, found = time.monotonic(), cpu_seconds(), []
    passed = all(commands.wait_beside(name) for name in stage.needs)
    if passed:
        process = commands.start(stage.name, subprocess.PIPE, variables)
        for line in process.stdout:
            print(line, end="", flush=True)
            found += CLOSING.findall(line)
            if line.startswith("SKIPPED"):
                found.append(line.strip())
        passed = process.wait() == 0
    return Outcome(time.monotonic() - began, cpu_seconds() - cpu_began, passed, "; ".join(found))


def print_table(stages, outcomes, seconds):
    """The seconds of each stage and of the whole, and where they are more than planned."""
    line = "{:<10}{:>8}{:>8}{:>9}  {}".format
    print(f"\n{line('stage', 'seconds', 'budget', 'of CPUs', '')}")
    for stage in stages:
        if outcome := outcomes.get(stage.name):
            notes = ["FAILED"] * (not outcome.passed) + ["OVER BUDGET"] * (outcome.seconds > stage.budget)
            notes = "  ".join([*notes, outcome.closing])
            print(line(stage.name, round(outcome.seconds), stage.budget, round(outcome.cpu_seconds), notes))
        else:
            print(line(stage.name, "not run", stage.budget, "", ""))
    print(line("whole", round(seconds), BUDGET, round(cpu_seconds()), "OVER BUDGET" if seconds > BUDGET else ""))


def run_stages(stages, is_all, keep_going, seed):
    """Run them, until one fails or to the end; the names of those that have failed."""
    began, outcomes, failed = time.monotonic(), {}, []
    with tempfile.TemporaryDirectory(prefix="convgrad_cy-ci-", ignore_cleanup_errors=True) as folder:
        commands = Commands(Path(folder), seed)
        try:
            if commands.start("copy", None).wait() != 0:
                return ["copy"]
            waiting = {name: BESIDE[name] for stage in stages for name in stage.needs}
            waiting = {name: after if after in [s.name for s in stages] else None for name, after in waiting.items()}
            for stage in stages:
                for name in [name for name, after in waiting.items() if after is None or after in outcomes]:
                    commands.start_beside(name)
                    del waiting[name]
                variables = stage.whole if is_all or stage.gate is None else stage.gate
                outcomes[stage.name] = run_stage(stage, variables, commands)
                if not outcomes[stage.name].passed:
                    failed.append(stage.name)
                    if not keep_going:
                        break
        finally:
            commands.end()
    print_table(stages, outcomes, time.monotonic() - began)
    return failed


def main():
    asked = arguments()
    if asked.list:
        return print_list()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("FAILED: ended by SIGTERM"))
    if asked.stages == ["quick"]:
        os.chdir(ROOT)
        os.execvp("bash", ["bash", str(HERE / "stages.sh"), "quick"])
    if shutil.which("git") is None:
        sys.exit("FAILED: git is not installed")
    is_all = "all" in asked.stages
    seed = asked.seed if asked.seed is not None else int(date.today().strftime("%Y%m%d")) if is_all else 0
    print(f"the tests are drawn with --seed {seed}")
    named = set(asked.stages) - {"all"}
    stages = [stage for stage in STAGES if (stage.name in named if named else stage.gate is not None)]
    if failed := run_stages(stages, is_all, is_all or asked.keep_going, seed):
        print(f"FAILED: {', '.join(failed)}")
        sys.exit(1)
    print("\n=== all passed")


if __name__ == "__main__":
    main()
