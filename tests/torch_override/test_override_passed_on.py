"""Correct calls that are not ours: PyTorch's results, counted with their reason, and named in the log."""

import logging

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from exact_network import assert_same, integers  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy.memo.bounded import ENTRY_BYTES  # noqa: E402

pytestmark = pytest.mark.torch

aten, functional = torch.ops.aten, torch.nn.functional
X, W, B = integers(-3, 3, 2, 4, 6, 5), integers(-3, 3, 6, 4, 3, 3), integers(-3, 3, 6)
UP = integers(-3, 3, 4, 2, 3, 3)


class Subclass(torch.Tensor):
    pass


class Image(Subclass):
    """A tensor that takes part in PyTorch's own way of extending operators."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return super().__torch_function__(function, types, arguments, keywords)


def convolution(x, w, bias=None, transposed=False):
    return aten.convolution(x, w, bias, [1], [0], [1], transposed, [0], 1)


def backward(x, w, dy):
    return aten.convolution_backward(dy, x, w, None, [1], [0], [1], False, [0], 1, [True, True, False])


FORWARD, BACKWARD = "_convolution", "convolution_backward"
#: Call -> (function, the operator that is passed on, part of the reason).
PASSED_ON = {
    "int64": (lambda: functional.conv2d(X.long(), W.long()), FORWARD, "torch.int64"),
    "int32": (lambda: functional.conv2d(X.int(), W.int(), B.int()), FORWARD, "torch.int32"),
    "int64, transposed": (lambda: functional.conv_transpose2d(X.long(), UP.long()), FORWARD, "torch.int64"),
    "an empty batch": (lambda: functional.conv2d(X[:0], W, B), FORWARD, "without elements"),
    "an empty batch, transposed": (lambda: functional.conv_transpose2d(X[:0], UP), FORWARD, "without elements"),
    "an empty batch, backward": (lambda: backward(X[:0], W, X.new_ones(0, 6, 4, 3)), BACKWARD, "without elements"),
    "a subclass": (lambda: functional.conv2d(X.as_subclass(Subclass), W), FORWARD, "Subclass"),
    "a subclass of that": (lambda: functional.conv2d(X.as_subclass(Image), W), FORWARD, "Image"),
    "a filter of a subclass": (lambda: functional.conv2d(X, W.as_subclass(Subclass)), FORWARD, "Subclass"),
    "a bias of a subclass": (lambda: functional.conv2d(X, W, B.as_subclass(Subclass)), FORWARD, "Subclass"),
    "a parameter of a subclass": (
        lambda: functional.conv2d(X, torch.nn.Parameter(W.as_subclass(Subclass), requires_grad=False)),
        FORWARD,
        "Subclass",
    ),
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_results_reasons_and_the_log(name, caplog):
    call, operator, reason = PASSED_ON[name]
    theirs = call()
    before = override.status()
    with override.enabled(), caplog.at_level(logging.DEBUG, "convgrad_cy.torch"):
        ours = call()
        call()
    after = override.status()
    assert_same(ours, theirs)
    for one, other in zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]:
        assert type(one) is type(other)
    assert after.computed == before.computed
    (key,) = [key for key, count in after.passed_on.items() if count != before.passed_on.get(key, 0)]
    assert key[0] == operator and reason in key[1]
    assert after.passed_on[key] == before.passed_on.get(key, 0) + 2
    assert [(record.name, record.levelname) for record in caplog.records] == [("convgrad_cy.torch", "DEBUG")] * 2
    for record in caplog.records:
        assert record.getMessage() == f"aten::{operator} went to PyTorch: {key[1]}"


def test_log_is_silent_unless_asked(caplog):
    with override.enabled(), caplog.at_level(logging.INFO):
        functional.conv2d(X.long(), W.long())
    assert not caplog.records


def unaligned(tensor):
    """A tensor of equal numbers, one byte beyond a multiple of four."""
    raw = bytearray(1 + 4 * tensor.numel())
    raw[1:] = tensor.numpy().tobytes()
    moved = torch.frombuffer(raw, dtype=tensor.dtype, offset=1).reshape(tensor.shape)
    assert moved.data_ptr() % 4
    return moved


def test_addresses_that_are_not_ours():
    """A plan must compute a call at usual addresses, and pass on one at unaligned addresses."""
    x, reason = unaligned(X), "not a multiple of its element size"
    theirs = functional.conv2d(X, W)
    before = override.status()
    with override.enabled():
        for given in (X, x, X, x):
            assert_same(functional.conv2d(given, W), theirs)
    after = override.status()
    assert after.computed[FORWARD] == before.computed[FORWARD] + 2
    (key,) = [key for key, count in after.passed_on.items() if count != before.passed_on.get(key, 0)]
    assert reason in key[1] and after.passed_on[key] == before.passed_on.get(key, 0) + 2


#: Calls that PyTorch turns into others before any kernel. The others are ours.
RESOLVED = {
    "complex": lambda: functional.conv2d(torch.complex(X, X + 1), torch.complex(W, W - 1), torch.complex(B, B)),
    "a conjugate view": lambda: functional.conv2d(torch.complex(X, X + 1).conj(), torch.complex(W, W - 1)),
    "a negative view": lambda: functional.conv2d(torch.complex(X, X + 1).conj().imag, W),
    "a filter that is a negative view": lambda: functional.conv2d(X, torch.complex(W, W).conj().imag),
    "an inference tensor": lambda: functional.conv2d(torch.inference_mode()(lambda: X + 0)(), W),
    "a lazy copy": lambda: functional.conv2d(torch._lazy_clone(X), W),
    "shared memory": lambda: functional.conv2d(X.clone().share_memory_(), W),
    "an array of NumPy's": lambda: functional.conv2d(torch.from_numpy(X.numpy().copy()), W),
    "a buffer": lambda: functional.conv2d(torch.nn.Buffer(X), W),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_what_pytorch_resolves_is_ours(name):
    theirs = RESOLVED[name]()
    before = override.status()
    with override.enabled():
        ours = RESOLVED[name]()
    after = override.status()
    assert_same(ours, theirs)
    assert after.computed[FORWARD] > before.computed[FORWARD] and after.passed_on == before.passed_on


def test_a_conjugate_of_the_operator():
    """aten's operator itself with complex tensors must do whatever PyTorch does: error or result."""

    def call():
        try:
            return convolution(torch.complex(X, X + 1).conj(), torch.complex(W, W - 1))
        except RuntimeError as error:
            return str(error)

    theirs = call()
    with override.enabled():
        ours = call()
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert_same(ours, theirs)


def test_many_shapes_are_not_all_remembered(monkeypatch):
    """The number of known calls must be bounded. A call that was forgotten must be planned again."""
    from convgrad_cy.torch import kernels

    for known in kernels._KNOWN:
        known.clear()
        monkeypatch.setattr(known, "most", 8 * ENTRY_BYTES)
    with override.enabled():
        for _ in range(2):
            for length in range(3, 40):
                ours = functional.conv1d(torch.ones(1, 1, length), torch.ones(1, 1, 3))
                assert ours.tolist() == [[[3] * (length - 2)]]
                assert max(map(len, kernels._KNOWN)) <= 7
