"""Test whether the tests see mistakes in the CPU's planner and kernels: ``python tests/mutants``.

Each mutant has one mistake, and some of the tests have to fail with it. All mutants are built at once, into a copy of
the package in a temporary folder. Then each is tested in a process of its own. The failed tests run once more without a
mistake, and must not fail.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS, ROOT = HERE.parent, HERE.parents[1]
sys.path[0] = str(TESTS)

from mutants.build import build  # noqa: E402
from mutants.tables import MUTANTS  # noqa: E402


def parsed():
    parser = argparse.ArgumentParser(prog="python tests/mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="those with this in name or file")
    parser.add_argument("--every", metavar="N", type=int, default=1, help="each N-th of them")
    parser.add_argument(
        "--first", metavar="K", type=int, default=0, help="with --every: begin with the K-th (default: 0)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: all cores)")
    parser.add_argument("--list", action="store_true", help="print each mutant, how it was killed, and by which test")
    parser.add_argument("--folder", help="build here, and keep the build; an existing build is used unchanged")
    return parser.parse_args()


def chosen_isa():
    """The instruction set that the package in the checkout takes."""
    command = [sys.executable, "-c", "from convgrad_cy import cpu; print(cpu.isa)"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def missing(machine):
    """Which of ``Mutant.needs`` this machine lacks."""
    return {"pairs": not machine.multiplies_pairs, "lines": machine.vector_bytes < 64, "": False}


def teller(mutants, listed):
    """A function that prints the outcome of a mutant, if all are to be listed or the mutant survives."""

    def tell(number, outcome):
        if number and (listed or not outcome.killed):
            mutant = mutants[number]
            how = f"{outcome.how}, {outcome.test}" if outcome.killed else f"NOT KILLED ({outcome.how})"
            print(f"{outcome.seconds:6.1f} s  {mutant.file}: {mutant.name}: {how}", flush=True)

    return tell


def report(mutants, outcomes, skipped):
    """Print the numbers. Return whether all mutants are killed."""
    killed, right = sum(outcomes[number].killed for number in mutants), outcomes.get(0)
    if right and right.how != "passed":
        print(f"without a mutant a test has not passed either ({right.how}): {right.test}")
    others = f"; {skipped} need another machine" if skipped else ""
    print(f"{len(mutants)} mutants, {killed} killed, {len(mutants) - killed} not killed{others}")
    return killed == len(mutants) and (right is None or right.how == "passed")


def main():
    """Build, test, print, and return the exit status."""
    asked, began = parsed(), time.monotonic()
    every = dict(enumerate(MUTANTS, 1))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # there is a fork
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(asked.folder or scratch)
        if not (folder / "convgrad_cy").exists():
            isa = chosen_isa()
            build(ROOT, folder, every.values(), isa)
            print(f"built for {isa} in {time.monotonic() - began:.0f} s", flush=True)
        sys.path.insert(0, str(folder))
        os.chdir(scratch)
        from mutants.session import run

        from convgrad_cy import _mutant, cpu

        assert _mutant.names == [mutant.name for mutant in MUTANTS], f"{folder} was built from another table"
        lacks = missing(cpu.this_machine())
        wanted = {k: one for k, one in every.items() if any(text in f"{one.file}: {one.name}" for text in asked.only)}
        wanted = {k: one for k, one in wanted.items() if k % asked.every == asked.first % asked.every}
        mutants = {k: one for k, one in wanted.items() if not lacks[one.needs]}
        if not mutants:
            sys.exit(f"there is no mutant with {' or '.join(map(repr, asked.only))} for this machine")
        outcomes = run(mutants, TESTS, scratch, asked.jobs, teller(mutants, asked.list))
        passed = report(mutants, outcomes, len(wanted) - len(mutants))
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
