"""Another package that registers kernels in our place, before or after us, each in an interpreter of its own."""

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402

pytestmark = pytest.mark.torch

OTHER = '''
import warnings

warnings.simplefilter("ignore")  # PyTorch warns of each kernel above another
import torch
import convgrad_cy.torch as override

X, W = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
OPERATORS = ("_convolution", "convolution_backward")


class Other:
    """A package that counts its calls and calls the kernel below, in place of one such as FlagGems."""

    def __init__(self):
        self.calls = dict.fromkeys(OPERATORS, 0)
        self.keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        self.library = torch.library.Library("aten", "IMPL")
        for operator in OPERATORS:
            below = torch.library.get_kernel(f"aten::{operator}", "CPU")

            def kernel(*call, operator=operator, below=below):
                self.calls[operator] += 1
                return below.call_boxed(self.keys, *call)

            self.library.impl(operator, kernel, "CPU", **override.switch._OVERRIDING)

    def leave(self):
        self.library._destroy()


def step():
    x = X.clone().requires_grad_()
    torch.conv1d(x, W).sum().backward()
    assert x.grad.tolist() == [[[1, 2, 2, 1]]], x.grad


def passed_on():
    """A call that we do not compute."""
    y = torch.conv1d(X.long(), W.long())
    assert y.tolist() == [[[2, 2, 2]]], y


def show(function=step):
    """Print how often the other package computed each operator, and how often we did."""
    counts = [[*one.calls.values(), *override.status().computed.values()]]
    function()
    counts.append([*one.calls.values(), *override.status().computed.values()])
    print(*(after - before for before, after in zip(*counts)))
'''

BEFORE = """
one = Other()
show()
with override.enabled():
    show()
    show(passed_on)
show()
override.enable()
show()
one.leave()
show()
show(passed_on)
override.disable()
show()
show(passed_on)
"""

AFTER = """
override.enable()
one = Other()
show()
override.disable()
show()
override.enable()
show()
one.leave()
show()
override.disable()
show()
"""


def test_another_package_before_us(tmp_path):
    """Our kernels must be above its kernels. These get the calls that we pass on, until the package removes them."""
    assert scripts.run(tmp_path, OTHER + BEFORE) == [
        "1 1 0 0",
        "0 0 1 1",
        "1 0 0 0",
        "1 1 0 0",
        "0 0 1 1",
        "0 0 1 1",
        "0 0 0 0",
        "0 0 0 0",
        "0 0 0 0",
    ]


def test_another_package_after_us(tmp_path):
    """Its kernels must stay above ours, and find ours below, however often we are switched."""
    assert scripts.run(tmp_path, OTHER + AFTER) == ["1 1 1 1", "1 1 0 0", "1 1 1 1", "0 0 1 1", "0 0 0 0"]
