"""Wrong calls: PyTorch's own type of error, and its own words."""

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy.calls import prepared  # noqa: E402
from convgrad_cy.torch import kernels  # noqa: E402

pytestmark = pytest.mark.torch

aten, functional = torch.ops.aten, torch.nn.functional
X, W, B = torch.ones(2, 4, 5, 5), torch.ones(6, 4, 3, 3), torch.ones(6)
UP = torch.ones(4, 2, 3, 3)
DY = torch.ones(2, 6, 3, 3)
LISTS = [1, 1], [0, 0], [1, 1]


def convolution(
    *, x=X, w=W, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, extra=(0, 0), groups=1
):
    return aten.convolution(x, w, bias, stride, padding, dilation, transposed, extra, groups)


def backward(*, dy=DY, x=X, w=W, sizes=None, stride=(1, 1), extra=(0, 0), groups=1, mask=(True, True, False)):
    return aten.convolution_backward(dy, x, w, sizes, stride, (0, 0), (1, 1), False, extra, groups, mask)


WRONG = {
    "fewer channels in the filter": lambda: functional.conv2d(X, W[:, :3]),
    "fewer channels in the filter, transposed": lambda: functional.conv_transpose2d(X, UP[:3]),
    "a kernel larger than x": lambda: functional.conv2d(X, torch.ones(6, 4, 7, 7)),
    "a dilated kernel larger than x": lambda: functional.conv2d(X, W, dilation=3),
    "a kernel of no elements": lambda: functional.conv2d(X, W[..., :0]),
    "no output channels": lambda: functional.conv2d(X, W[:0]),
    "no input channels": lambda: functional.conv2d(X[:, :0], W[:, :0]),
    "an image of no elements": lambda: functional.conv2d(X[..., :0], W),
    "negative padding": lambda: functional.conv2d(X, W, padding=-1),
    "negative padding, transposed": lambda: functional.conv_transpose2d(X, UP, padding=(0, -1)),
    "a stride of 0": lambda: functional.conv2d(X, W, stride=0),
    "a negative stride": lambda: functional.conv2d(X, W, stride=(1, -1)),
    "a dilation of 0": lambda: functional.conv2d(X, W, dilation=(0, 1)),
    "a negative dilation": lambda: functional.conv2d(X, W, dilation=-1),
    "groups of 0": lambda: functional.conv2d(X, W, groups=0),
    "negative groups": lambda: functional.conv2d(X, W, groups=-1),
    "groups that do not divide": lambda: functional.conv2d(X, W, groups=3),
    "outputs that groups do not divide": lambda: functional.conv2d(X, W[:5, :2], groups=2),
    "a stride beyond all memory": lambda: functional.conv2d(X, W, stride=2**62),
    "a dilation beyond all memory": lambda: functional.conv2d(X, W, dilation=2**62),
    "a padding beyond all memory": lambda: functional.conv2d(X, W, padding=2**61),
    "a result beyond all memory": lambda: functional.conv2d(X, W, padding=2**28),
    "a transposed result beyond all memory": lambda: functional.conv_transpose2d(X, UP, stride=2**40),
    "same with a stride": lambda: functional.conv2d(X, W, stride=2, padding="same"),
    "a padding of another name": lambda: functional.conv2d(X, W, padding="full"),
    "a bias of another size": lambda: functional.conv2d(X, W, B[:5]),
    "a bias of one": lambda: functional.conv2d(X, W, B[:1]),
    "a bias of two axes": lambda: functional.conv2d(X, W, B[:, None]),
    "a bias of no axis": lambda: functional.conv2d(X, W, B[0]),
    "a bias of another size, transposed": lambda: functional.conv_transpose2d(X, UP, B),
    "x and w of two types": lambda: functional.conv2d(X, W.double()),
    "x of a smaller type": lambda: functional.conv2d(X.bfloat16(), W),
    "a bias of another type": lambda: functional.conv2d(X, W, B.double()),
    "output_padding as large as the stride": lambda: functional.conv_transpose2d(X, UP, stride=2, output_padding=2),
    "negative output_padding": lambda: functional.conv_transpose2d(X, UP, stride=2, output_padding=-1),
    "transposed, to nothing": lambda: functional.conv_transpose2d(X, UP[..., :1, :1], padding=3),
    "an output of negative size": lambda: functional.conv_transpose2d(X, UP, padding=4),
    "too many strides": lambda: functional.conv2d(X, W, stride=(1, 1, 1)),
    "too many paddings": lambda: convolution(padding=[0, 0, 0]),
    "too many dilations": lambda: convolution(dilation=[1, 1, 1]),
    "no strides": lambda: convolution(stride=[]),
    "x of 5 axes and w of 4": lambda: functional.conv2d(X[None], W),
    "x of 2 axes": lambda: functional.conv2d(X[0, 0], W),
    "w of 3 axes": lambda: functional.conv2d(X, W[0]),
    "an operator with x of 3 axes": lambda: convolution(x=X[0]),
    "an operator with four axes in space": lambda: convolution(
        x=torch.ones(1, 1, 2, 2, 2, 2), w=torch.ones(1, 1, 1, 1, 1, 1), stride=[1], padding=[0], dilation=[1], extra=[0]
    ),
    "an operator with none": lambda: convolution(
        x=X[:, :, 0, 0], w=W[:, :, 0, 0], stride=[], padding=[], dilation=[], extra=[]
    ),
    "a sparse tensor": lambda: functional.conv2d(X.to_sparse(), W),
    "a sparse filter": lambda: functional.conv2d(X, W.to_sparse()),
    "another device": lambda: functional.conv2d(X, W.to("meta")),
    "booleans": lambda: functional.conv2d(X.bool(), W.bool()),
    "types of 8 bits": lambda: functional.conv2d(X.to(torch.float8_e4m3fn), W.to(torch.float8_e4m3fn)),
    "names": lambda: functional.conv2d(X.rename("n", "c", "h", "w"), W),
    "quantised": lambda: functional.conv2d(torch.quantize_per_tensor(X, 0.5, 0, torch.quint8), W),
    "dy of another type": lambda: backward(dy=DY.double()),
    "dy of 3 axes": lambda: backward(dy=DY[0]),
    "backward with groups of 0": lambda: backward(groups=0),
    "backward with a stride of 0": lambda: backward(stride=(0, 1)),
    "backward with too many strides": lambda: backward(stride=(1, 1, 1)),
    "backward with another number of channels": lambda: backward(w=W[:, :3]),
    "dy of fewer axes": lambda: backward(dy=DY[..., 0]),
}


#: In PyTorch 2.9.1 each of these ends the process, with and without us. In 2.12.1 they do not.
FATAL = ("a stride beyond all memory", "a transposed result beyond all memory", "backward with groups of 0")
if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12):
    WRONG = {name: call for name, call in WRONG.items() if name not in FATAL}


def message(call):
    """The type and text of an exception; None if the call raises none."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.filterwarnings("ignore:Named tensors", "ignore:.*quantize")
@pytest.mark.parametrize("name", WRONG)
def test_the_error_is_pytorchs(name):
    """The error must be PyTorch's. Some calls are errors only in some releases, so PyTorch is asked first."""
    theirs = message(WRONG[name])
    with override.enabled():
        ours = message(WRONG[name])
        again = message(WRONG[name])  # the second call is a known one
    assert ours == theirs
    assert again == theirs


def test_most_are_errors():
    assert sum(message(call) is not None for call in WRONG.values()) > 0.8 * len(WRONG)


def test_after_errors():
    """A wrong call must leave nothing behind."""
    expected = functional.conv2d(X, W)
    with override.enabled():
        for call in WRONG.values():
            message(call)
            assert torch.equal(functional.conv2d(X, W), expected)


class WithoutMemory:
    """Work that finds no memory for any part."""

    def run(self, *tensors):
        raise MemoryError("no 5 bytes")


def test_too_little_memory(monkeypatch):
    """Our error must name the result."""
    with override.enabled(), monkeypatch.context() as patched:
        patched.setattr(prepared, "prepare", lambda *arguments: WithoutMemory())
        kernels.forget()
        needs = "needs more memory than there is for a result of shape"
        with pytest.raises(MemoryError, match=rf"^conv {needs} \(2, 6, 3, 3\) and dtype float32: no 5 bytes$"):
            functional.conv2d(X, W)
        with pytest.raises(MemoryError, match=rf"^conv_backward_filter {needs} \(6, 4, 3, 3\) and dtype bfloat16: no"):
            aten.convolution_backward(
                *(tensor.bfloat16() for tensor in (DY, X, W)), None, *LISTS, False, [0, 0], 1, (False, True, False)
            )
    kernels.forget()
