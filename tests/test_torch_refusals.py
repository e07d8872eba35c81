"""Calls that are wrong, and calls that are not ours: PyTorch's own errors and results."""

import pytest

torch = pytest.importorskip("torch")

import convgrad_cy.torch as override  # noqa: E402

pytestmark = pytest.mark.torch

X, W = torch.randn(1, 4, 5, 5), torch.randn(6, 4, 3, 3)
functional = torch.nn.functional

WRONG = {
    "channels": lambda: torch.conv2d(X, torch.randn(6, 3, 3, 3)),
    "kernel larger than x": lambda: torch.conv2d(X, torch.randn(6, 4, 7, 7)),
    "negative padding": lambda: torch.conv2d(X, W, padding=-1),
    "stride of 0": lambda: torch.conv2d(X, W, stride=0),
    "dilation of 0": lambda: torch.conv2d(X, W, dilation=0),
    "bias": lambda: torch.conv2d(X, W, torch.ones(5)),
    "bias of two axes": lambda: torch.conv2d(X, W, torch.ones(6, 1)),
    "two types": lambda: torch.conv2d(X, W.double()),
    "type of the bias": lambda: torch.conv2d(X, W, torch.ones(6, dtype=torch.float64)),
    "groups": lambda: torch.conv2d(X, torch.randn(6, 2, 3, 3), groups=3),
    "groups of 0": lambda: torch.conv2d(X, W, groups=0),
    "output_padding": lambda: torch.conv_transpose2d(X, torch.randn(4, 2, 3, 3), stride=2, output_padding=2),
    "transposed, to nothing": lambda: torch.conv_transpose2d(X, torch.randn(4, 2, 1, 1), padding=3),
    "too many entries": lambda: torch.ops.aten.convolution(X, W, None, [1] * 3, [0] * 2, [1] * 2, False, [0] * 2, 1),
    "axes": lambda: torch.ops.aten.convolution(X[0], W, None, [1], [0], [1], False, [0], 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_is_pytorchs(name):
    with pytest.raises(Exception) as theirs:
        WRONG[name]()
    with override.enabled(), pytest.raises(type(theirs.value)) as ours:
        WRONG[name]()
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


class Subclass(torch.Tensor):
    pass


NOT_OURS = {
    "int32": lambda: torch.conv2d(X.round().int(), W.round().int()),
    "int64": lambda: torch.conv2d(X.round().long(), W.round().long()),
    "an empty batch": lambda: torch.conv2d(X[:0], W),
    "a subclass": lambda: torch.conv2d(X.as_subclass(Subclass), W),
    "mkldnn": lambda: torch.conv2d(X.to_mkldnn(), W).to_dense(),
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_the_result_is_pytorchs(name):
    expected = NOT_OURS[name]()
    computed = override.status().computed["_convolution"]
    with override.enabled():
        result = NOT_OURS[name]()
    assert type(result) is type(expected)
    assert torch.equal(result, expected)
    assert result.stride() == expected.stride()
    assert override.status().computed["_convolution"] == computed


def test_a_gradient_of_an_empty_batch():
    w = W.clone().requires_grad_()
    with override.enabled():
        (dw,) = torch.autograd.grad(torch.conv2d(X[:0], w).sum(), w)
    assert torch.equal(dw, torch.zeros_like(W))


def test_complex_numbers():
    """PyTorch makes real convolutions of them, and these are ours."""
    x, w = torch.complex(X, X + 1), torch.complex(W, W - 1)
    expected = torch.conv2d(x.to(torch.complex128), w.to(torch.complex128))
    with override.enabled():
        y = torch.conv2d(x, w)
    # Of four sums, each is off by 2e-5 of its greatest element, which is no greater than the sum of all magnitudes.
    most = torch.conv2d(X.abs().double() + 1, W.abs().double() + 1).max()
    assert ((y - expected).abs() <= 4 * 2e-5 * most).all()


def test_negative_and_conjugate_views():
    """PyTorch resolves them before any kernel."""
    z = torch.complex(X, X + 1)
    expected = torch.conv2d(z.conj().imag.clone(), W)
    with override.enabled():
        torch.testing.assert_close(torch.conv2d(z.conj().imag, W), expected)


def test_memory_that_is_not_aligned():
    """One byte off: PyTorch's own kernel computes it."""
    numbers = torch.arange(1 * 1 * 8, dtype=torch.float32)
    raw = bytearray(1 + 4 * 8)
    raw[1:] = bytes(numbers.untyped_storage())
    x = torch.frombuffer(raw, dtype=torch.float32, offset=1).reshape(1, 1, 8)
    w = torch.ones(1, 1, 3)
    if x.data_ptr() % 4 == 0:
        pytest.skip("PyTorch has copied it")
    with override.enabled():
        assert torch.conv1d(x, w).tolist() == torch.conv1d(numbers.reshape(1, 1, 8), w).tolist()
        assert torch.conv1d(x, w).tolist() == [[[3, 6, 9, 12, 15, 18]]]


def test_unbatched_and_lists_of_one():
    with override.enabled():
        assert torch.equal(torch.conv2d(X[0], W), torch.conv2d(X, W)[0])
        short = torch.ops.aten.convolution(X, W, None, [2], [1], [1], False, [0], 1)
        assert torch.equal(short, torch.conv2d(X, W, stride=2, padding=1))


def test_the_gradient_of_a_sum():
    """It is one number with strides of 0."""
    x, w, b = (tensor.clone().requires_grad_() for tensor in (X, W, torch.ones(6)))
    with override.enabled():
        torch.conv2d(x, w, b, padding=1).sum().backward()
    ours = x.grad, w.grad, b.grad
    x, w, b = (tensor.detach().double().requires_grad_() for tensor in (x, w, b))
    torch.conv2d(x, w, b, padding=1).sum().backward()
    for one, other in zip(ours, (x.grad, w.grad, b.grad), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-5 * float(other.abs().max()))


def test_channels_last_stays():
    x, w = X.to(memory_format=torch.channels_last), W.to(memory_format=torch.channels_last)
    with override.enabled():
        assert torch.conv2d(x, w).is_contiguous(memory_format=torch.channels_last)
