"""Whether the installed wheel and the installed PyTorch work together on macOS: ``python packaging/check_libomp.py``.

Each brings a libomp there. Two of them can end the process, or wait for each other. Each order of imports runs in a
process of its own, with a limit of time.
"""

import subprocess
import sys

CALLS = """
import sys
for name in sys.argv[1:]:
    __import__(name)
import numpy, torch, convgrad_cy
x, w = numpy.ones((4, 64, 28, 28), "f4"), numpy.ones((64, 64, 3, 3), "f4")
elements = torch.randn(400_000)
for _ in range(100):
    y = convgrad_cy.conv(x, w, padding=1, algorithm="direct")
    torch.relu(elements)
assert y[0, 0, 1, 1] == 576 and convgrad_cy.get_num_threads() > 1, (y[0, 0, 1, 1], convgrad_cy.get_num_threads())
print(sys.argv[1], "first: both compute, with", convgrad_cy.get_num_threads(), "threads")
"""


def main():
    for order in (("convgrad_cy", "torch"), ("torch", "convgrad_cy")):
        subprocess.run([sys.executable, "-c", CALLS, *order], check=True, timeout=120)


if __name__ == "__main__":
    main()
