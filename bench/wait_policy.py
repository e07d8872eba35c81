"""``python -m bench.wait_policy``: training steps of JAX for each OMP_WAIT_POLICY, the way in which threads wait.

XLA computes on its own threads. OpenMP's threads that spin after a convolution may take processors from them. Threads
that sleep at once have to be woken for the next convolution. A process reads the variable when it starts, so each
policy has its own process, in turn.
"""

import argparse
import os
import sys
import tempfile
from statistics import median

from bench import models
from bench.__main__ import listed
from bench.peers import OURS
from bench.training import FRAMEWORKS, summary
from bench.training import __main__ as training

NAME = "OMP_WAIT_POLICY"
POLICIES = (None, "active", "passive")
DTYPES, LAYOUTS, MODES = FRAMEWORKS["jax"][1:]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m bench.wait_policy", description=__doc__.splitlines()[0])
    add = parser.add_argument
    names = models.names("jax")
    add("--models", type=listed(names), default=names, help=f"of {', '.join(names)} (all)")
    add("--seconds", type=float, default=15.0, help="of timed steps of each policy in each round (%(default)s)")
    add("--rounds", type=int, default=2, help="times that each policy has its turn (%(default)s)")
    add("--threads", type=int, default=os.cpu_count(), help="of XLA and of ours (%(default)s)")
    add("--small", action="store_true", help="small networks: whether all runs, not how fast")
    return parser.parse_args(argv)


def measured(options, folder, model, policy, reference):
    """A row of ``bench.training`` from a process with a policy; None leaves the variable unset."""
    before = os.environ.pop(NAME, None)
    if policy is not None:
        os.environ[NAME] = policy
    try:
        how = {"model": model, "dtype": DTYPES[0], "layout": LAYOUTS[0], "mode": MODES[0], "small": options.small}
        expected = {"exact": reference["exact"], "allowed": reference["allowed"][DTYPES[0]]}
        return training.asked(folder, options, "measure", **how, **expected, seconds=options.seconds, pairs=2)
    finally:
        os.environ.pop(NAME, None)
        if before is not None:
            os.environ[NAME] = before


def main(argv=None):
    options = arguments(argv)
    options.framework, status = "jax", 0
    print(
        f"{'median step, ms':<24}" + "".join(f"{policy or 'unset':>20}" for policy in POLICIES) + "   unset to better"
    )
    with tempfile.TemporaryDirectory(prefix="convgrad_wait_policy_") as folder:
        for model in options.models:
            reference = training.asked(folder, options, "reference", model=model, small=options.small)
            seconds = {policy: {"jax": [], OURS: []} for policy in POLICIES}
            trouble = summary.trouble(reference)
            for policy in POLICIES * options.rounds if trouble is None else ():
                row = measured(options, folder, model, policy, reference)
                if trouble := summary.trouble(row):
                    break
                for side, times in row["seconds"].items():
                    seconds[policy][side] += times
            title = models.MODELS[model].title
            if trouble:
                print(f"{title:<24}{trouble}", flush=True)
                status = 1
                continue
            ours = {policy: median(seconds[policy][OURS]) for policy in POLICIES}
            cells = (
                f"{1e3 * ours[policy]:.1f} (XLA {1e3 * median(seconds[policy]['jax']):.1f})" for policy in POLICIES
            )
            ratio = ours[None] / min(ours["active"], ours["passive"])
            print(f"{title:<24}" + "".join(f"{cell:>20}" for cell in cells) + f"{ratio:>18.3f}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
