"""Whether the installed wheel and the installed PyTorch share OpenMP's threads, whichever is imported first.

``python packaging/check_torch.py [--most-ratio 1.3]``, with the Python that has both. It exits with status 1 where two
runtimes are loaded, where ``torch.set_num_threads(1)`` is not obeyed, or, with ``--most-ratio``, where calls in turn
take more than that many times the sum of both alone. On a machine with other users the times mean little.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ORDERS = {"convgrad_cy": ("convgrad_cy", "torch"), "torch": ("torch", "convgrad_cy")}


def interfaces(path):
    """The versions of its interface that a libgomp has."""
    command = ["readelf", "--version-info", "--wide", path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\b(?:GOMP|OMP|GOACC|OACC)_[\d.]*\d", printed))


def runtimes():
    """The files of OpenMP runtimes that this process has loaded."""
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    return sorted(path for path in paths if re.search(r"/lib(g|i)?omp[^/]*$", path))


def calls():
    """A small threaded convolution and a small threaded call of PyTorch."""
    import torch

    import convgrad_cy

    random = np.random.default_rng(0)
    x = random.standard_normal((2, 64, 28, 28), dtype=np.float32)
    w = random.standard_normal((64, 64, 3, 3), dtype=np.float32)
    elements = torch.randn(400_000)
    return lambda: convgrad_cy.conv(x, w, padding=1), lambda: torch.relu(elements)


def microseconds(function, count):
    """The times of some calls."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def check_threads(conv, relu):
    """Check that PyTorch and convgrad_cy use the same number of threads, and only the caller's thread if it is one."""
    import torch

    from convgrad_cy import cpu
    from convgrad_cy.settings import threads

    torch.set_num_threads(1)
    before = len(os.listdir("/proc/self/task"))
    assert cpu.threads() == 1, f"set_num_threads(1) leaves {cpu.threads()} threads to convgrad_cy"
    time.sleep(0.2)  # a pool that exists spins for a while
    own, all_threads = time.thread_time(), time.process_time()
    for _ in range(200):
        conv()
        relu()
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads
    assert all_threads < 1.1 * own, f"other threads worked, too: {all_threads:.3f} s of processors in {own:.3f} s"
    assert len(os.listdir("/proc/self/task")) == before, "set_num_threads(1) does not keep threads from being started"
    torch.set_num_threads(2)
    assert cpu.threads() == min(2, threads._quota or 2)


def check(first, most_ratio):
    """All checks of one order of imports, in this process."""
    for name in ORDERS[first]:
        __import__(name)
    import convgrad_cy

    conv, relu = calls()
    check_threads(conv, relu)  # before there is a pool
    conv(), relu()
    loaded = runtimes()
    bundled = Path(convgrad_cy.__file__).parents[1] / "convgrad_cy.libs" / "libgomp.so.1"
    assert bundled.exists(), f"{convgrad_cy.__file__} is not from a repaired wheel"
    assert len(loaded) == 1, f"{len(loaded)} OpenMP runtimes: {', '.join(loaded)}"
    theirs = Path(sys.modules["torch"].__file__).parent / "lib" / "libgomp.so.1"
    if theirs.exists():
        assert interfaces(theirs), f"{theirs} names no version of its interface"
        missing = interfaces(theirs) - interfaces(bundled)
        assert not missing, f"PyTorch's libgomp is newer than the wheel's, which lacks {', '.join(sorted(missing))}"
    check_threads(conv, relu)  # with calls that are known, and a pool that sleeps

    alone, pairs = ([], []), []
    for _ in range(30):  # in turn, so that whatever else the machine does meets all alike
        for times, function in zip(alone, (conv, relu), strict=True):
            times += microseconds(function, 40)[10:]
        pairs += microseconds(lambda: (conv(), relu()), 40)[10:]
    conv_time, relu_time, pair_time = map(statistics.median, (*alone, pairs))
    ratio = pair_time / (conv_time + relu_time)
    print(
        f"{first} first: one runtime, {loaded[0]}; set_num_threads(1) obeyed\n"
        f"    median µs: conv {conv_time:.0f}, relu {relu_time:.0f}, in turn {pair_time:.0f}: "
        f"{ratio:.2f} times the sum"
    )
    assert most_ratio is None or ratio <= most_ratio, f"more than {most_ratio} times the sum"


def main():
    """Each order in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most-ratio", type=float, help="fail where in turn takes more than this many times the sum")
    parser.add_argument("--first", choices=ORDERS, help="check this order alone, in this process")
    options = parser.parse_args()
    if options.first:
        check(options.first, options.most_ratio)
        return 0
    arguments = [] if options.most_ratio is None else ["--most-ratio", str(options.most_ratio)]
    return max(subprocess.run([sys.executable, __file__, "--first", first, *arguments]).returncode for first in ORDERS)


if __name__ == "__main__":
    sys.exit(main())
