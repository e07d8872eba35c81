"""Single properties of results: bits, threads, memory formats, types, empty batches, gradients of sums."""

import os
import sys

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402
from bounds import contract, excess  # noqa: E402
from exact_network import assert_same, integers  # noqa: E402

import convgrad_cy as cg  # noqa: E402
import convgrad_cy.torch as override  # noqa: E402

pytestmark = pytest.mark.torch

functional = torch.nn.functional


def gradients(convolve, tensors, dy=None):
    """The output and the gradients. Without dy, they are the gradients of a sum."""
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    y = convolve(*tensors)
    if dy is None:
        y.sum().backward()
    else:
        y.backward(dy)
    return y.detach(), *(tensor.grad for tensor in tensors)


#: Layers for several threads, one for each algorithm: Winograd, strides, depthwise, pointwise, transposed, 1-D, 3-D.
LARGE = {
    "3x3": (lambda x, w: functional.conv2d(x, w, padding=1), (2, 32, 28, 28), (32, 32, 3, 3)),
    "stride": (lambda x, w: functional.conv2d(x, w, stride=2), (2, 32, 29, 31), (48, 32, 3, 3)),
    "depthwise": (lambda x, w: functional.conv2d(x, w, padding=1, groups=96), (2, 96, 28, 28), (96, 1, 3, 3)),
    "pointwise": (lambda x, w: functional.conv2d(x, w), (2, 64, 28, 28), (96, 64, 1, 1)),
    "first layer": (lambda x, w: functional.conv2d(x, w, stride=2, padding=3), (2, 3, 64, 64), (32, 3, 7, 7)),
    "transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        (2, 32, 16, 16),
        (32, 32, 4, 4),
    ),
    "1-D": (lambda x, w: functional.conv1d(x, w, dilation=2), (4, 64, 600), (64, 64, 5)),
    "3-D": (lambda x, w: functional.conv3d(x, w, padding=1), (1, 16, 12, 12, 12), (32, 16, 3, 3, 3)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_bits_do_not_depend_on_threads(name, dtype):
    convolve, *shapes = LARGE[name]
    x, w = (torch.randn(shape).to(dtype) for shape in shapes)
    with override.enabled():
        torch.set_num_threads(1)
        dy = torch.randn(convolve(x, w).shape).to(dtype)
        expected = gradients(convolve, (x, w), dy)
        for threads in (2, 3, 1):
            torch.set_num_threads(threads)
            assert override.status().threads == threads
            assert_same(gradients(convolve, (x, w), dy), expected)


def test_bits_are_those_of_the_functions():
    x, w = torch.randn(2, 32, 28, 28), torch.randn(48, 32, 3, 3)
    with override.enabled():
        y, dx, dw = gradients(lambda x, w: functional.conv2d(x, w, padding=1), (x, w), dy := torch.randn(2, 48, 28, 28))
    assert torch.equal(y, cg.conv(x, w, padding=1))
    assert torch.equal(dx, cg.conv_backward_data(dy, w, tuple(x.shape), padding=1))
    assert torch.equal(dw, cg.conv_backward_filter(x, dy, tuple(w.shape), padding=1))


THREADS = """
import os
import torch
import convgrad_cy.torch as override

def threads():
    return len(os.listdir("/proc/self/task"))

x, w = torch.randn(2, 32, 28, 28), torch.randn(32, 32, 3, 3)
override.enable()
for number in map(int, os.environ["NUMBERS"].split()):
    torch.set_num_threads(number)
    before = threads()
    torch.conv2d(x, w)
    print(threads() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the threads that Linux lists")
@pytest.mark.parametrize("numbers, started", [("1 1", ["0", "0"]), ("2 1", ["1", "0"]), ("1 3 2", ["0", "2", "-1"])])
def test_threads_that_are_started(tmp_path, numbers, started):
    """As many threads must start as torch.set_num_threads says, for any number of convgrad_cy: with one, none starts.

    settings/threads.py must give each call its number. libgomp ends threads that a smaller team lacks.
    """
    printed = scripts.run(tmp_path, THREADS, NUMBERS=numbers, OMP_NUM_THREADS="4")
    if started[-1] == "-1":  # it may also keep them
        assert printed[:-1] == started[:-1] and int(printed[-1]) in (-1, 0)
    else:
        assert printed == started


@pytest.mark.parametrize("shape", [(0, 4, 6, 6), (0, 4, 6), (0, 4, 6, 6, 6)])
@pytest.mark.parametrize("transposed", [False, True])
def test_empty_batches(shape, transposed):
    rank = len(shape) - 2
    convolve = getattr(functional, f"conv{'_transpose' * transposed}{rank}d")
    x, w, bias = torch.ones(shape), torch.ones(4, 4, *[3] * rank), torch.ones(4)
    theirs = gradients(convolve, (x, w, bias))
    with override.enabled():
        ours = gradients(convolve, (x, w, bias))
    assert_same(ours, theirs)
    assert ours[0].shape[0] == 0 and not ours[2].any() and not ours[3].any()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_gradient_of_a_sum(rank, transposed):
    """The gradient of a sum must be exact for integers. It is one number with strides of 0."""
    convolve = getattr(functional, f"conv{'_transpose' * transposed}{rank}d")
    tensors = integers(-3, 3, 2, 4, *[7] * rank), integers(-3, 3, 4, 4, *[3] * rank), integers(-3, 3, 4)
    call = lambda x, w, bias: convolve(x, w, bias, stride=2, padding=1)  # noqa: E731
    theirs = gradients(call, tensors)
    with override.enabled():
        ours = gradients(call, tensors)
    assert_same(ours, theirs)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("extra", [0, 1])
def test_second_derivatives_of_transposed_convolutions(rank, extra):
    """Double backward must call both operators again, with x, w and dy exchanged. None may be left to PyTorch.

    The output_padding then belongs to a convolution that is not transposed, where it means nothing.
    """
    convolve = getattr(functional, f"conv_transpose{rank}d")
    tensors = [
        torch.randn(shape, dtype=torch.float64, requires_grad=True)
        for shape in ((2, 4, *[4] * rank), (4, 1, *[3] * rank), (2,))
    ]
    keywords = {"stride": 2, "padding": 1, "output_padding": extra, "groups": 2, "dilation": 2}
    call = lambda x, w, bias: convolve(x, w, bias, **keywords)  # noqa: E731
    before = override.status()
    with override.enabled():
        assert torch.autograd.gradcheck(call, tensors, fast_mode=True)
        assert torch.autograd.gradgradcheck(call, tensors, fast_mode=True)
    assert override.status().passed_on == before.passed_on


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_channels_last_stays(transposed, dtype):
    """The output and all gradients of images must be channels last if x or w or both are."""
    convolve = functional.conv_transpose2d if transposed else functional.conv2d
    tensors = torch.randn(2, 4, 6, 6).to(dtype), torch.randn(4, 4, 3, 3).to(dtype)
    for changed in ((0,), (1,), (0, 1), ()):
        x, w = (
            tensor.to(
                memory_format=torch.channels_last if index in changed else torch.contiguous_format
            ).requires_grad_()
            for index, tensor in enumerate(tensors)
        )
        with override.enabled():
            y = convolve(x, w)
            results = y, *torch.autograd.grad(y, (x, w), torch.randn(y.shape).to(dtype))
        for result in results:
            assert result.is_contiguous(memory_format=torch.channels_last) == bool(changed)
            assert result.is_contiguous() != bool(changed)


BFLOAT16 = """
import sys
sys.modules["ml_dtypes"] = None  # an import of it fails
import torch
import convgrad_cy.torch as override

override.enable()
x = torch.ones(1, 2, 5, 5, dtype=torch.bfloat16, requires_grad=True)
w = torch.ones(3, 2, 3, 3, dtype=torch.bfloat16, requires_grad=True)
y = torch.conv2d(x, w)
y.sum().backward()
print(y.dtype, y.unique().tolist(), w.grad.unique().tolist(), x.grad[0, 0, 2].tolist())
print(override.status().computed, override.status().passed_on)
"""


def test_bfloat16_needs_no_other_package(tmp_path):
    assert scripts.run(tmp_path, BFLOAT16) == [
        "torch.bfloat16 [18.0] [9.0] [9.0, 18.0, 27.0, 18.0, 9.0]",
        "{'_convolution': 1, 'convolution_backward': 1} {}",
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_large_layers_are_within_the_contract(name, dtype):
    """Large layers, which other algorithms compute, must be within the contract, too, without counting terms."""
    convolve, *shapes = LARGE[name]
    x, w = (torch.randn(shape).to(dtype) for shape in shapes)
    with override.enabled():
        dy = torch.randn(convolve(x, w).shape).to(dtype)
        ours = gradients(convolve, (x, w), dy)
    exact = gradients(convolve, (x.double(), w.double()), dy.double())
    for result, right in zip(ours, exact, strict=True):
        assert not excess(result, right, contract(dtype, right, None, None))


def test_nothing_is_read_or_written_beside():
    """NaN around each tensor must reach no result, and the memory around it must stay."""
    frame = [torch.full((4, 6, 10, 10), torch.nan) for _ in range(2)]
    x, w = frame[0][1:3, 1:5, 1:9, 1:9], frame[1][:3, 1:5, 2:5, 3:6]
    x[:], w[:] = integers(-3, 3, *x.shape), integers(-3, 3, *w.shape)
    before = [tensor.clone() for tensor in frame]
    theirs = gradients(functional.conv2d, (x.clone(), w.clone()))
    with override.enabled():
        ours = gradients(functional.conv2d, (x, w))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)
    torch.testing.assert_close(frame, before, rtol=0, atol=0, equal_nan=True)


def test_a_process_limited_to_one_processor(tmp_path):
    """Importing with OMP_NUM_THREADS=1, as torchrun sets it, must allow more threads afterwards."""
    source = THREADS.replace("before = threads()", "before = threads(); assert override.status().threads == number")
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("counts the threads that Linux lists")
    assert scripts.run(tmp_path, source, NUMBERS="1 2", OMP_NUM_THREADS="1") == ["0", "1"]
