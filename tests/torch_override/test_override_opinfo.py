"""PyTorch's own samples of its convolutions, from its wheel: each one that passes without us passes with us."""

import warnings

import pytest

torch = pytest.importorskip("torch", minversion="2.9")
pytest.importorskip("expecttest", reason="PyTorch's samples need expecttest")

from aten_calls import DTYPES, one_thread  # noqa: E402
from bounds import are_few, contract, direct, excess  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # PyTorch warns of its own means: forward derivatives import deprecated scripts, and "same" may copy.
    pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore:Using padding='same'", "ignore:.*vmap.*"),
]

NAMES = [f"nn.functional.conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)]
#: Operators for which PyTorch has wrong samples as well.
WITH_ERRORS = [name for name in NAMES if "transpose" not in name]


@pytest.fixture(scope="module")
def ops():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's tests import deprecated code
        from torch.testing._internal.common_methods_invocations import op_db
    found = {op.name: op for op in op_db if op.name in NAMES}
    assert set(found) == set(NAMES)
    return found


class Sample:
    """A sample of PyTorch, as a function of its tensors."""

    def __init__(self, op, sample):
        self.op, self.arguments, self.keywords = op.op, (sample.input, *sample.args), sample.kwargs
        self.tensors = [one for one in self.arguments if isinstance(one, torch.Tensor)]
        self.where = f"{op.name}: {sample}"

    def __call__(self, *tensors):
        given = iter(tensors)
        return self.op(
            *(next(given) if isinstance(one, torch.Tensor) else one for one in self.arguments), **self.keywords
        )

    def results(self, dy, *tensors):
        """The output, and the gradients of the tensors."""
        tensors = [tensor.detach().requires_grad_() for tensor in tensors]
        y = self(*tensors)
        return y.detach(), *torch.autograd.grad(y, tensors, dy)

    def exact(self, dy, change=torch.clone):
        """The results in float64, of a function of the numbers: all results are sums of products of them."""
        with one_thread():
            return self.results(*(change(tensor.double().contiguous()) for tensor in (dy, *self.tensors)))


def samples(op, dtype):
    """All samples, contiguous and not."""
    for sample in op.sample_inputs("cpu", dtype):
        yield Sample(op, sample), lambda tensor: tensor
        yield Sample(op, sample.noncontiguous()), torch.testing._internal.common_utils.noncontiguous_like


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_samples(ops, name, dtype):
    """Results and gradients must be within the contract, with any strides. None may be left to PyTorch."""
    compared = 0
    for sample, as_sample in samples(ops[name], dtype):
        dy = as_sample(torch.randn(sample(*(tensor.to("meta") for tensor in sample.tensors)).shape).to(dtype))
        before = override.status().passed_on
        with override.enabled():
            results = sample.results(dy, *sample.tensors)
        assert override.status().passed_on == before, sample.where
        exact = zip(*(sample.exact(dy, change) for change in (torch.clone, torch.abs, torch.ones_like)), strict=True)
        x, w, *bias = sample.tensors
        operands = (x, w), (dy, w), (x, dy), (dy, dy)
        for index, (result, of_it) in enumerate(zip(results, exact, strict=True)):
            assert (result.shape, result.dtype) == (of_it[0].shape, dtype), sample.where
            if index == 3:  # the gradient of the bias is PyTorch's own sum
                allowed = direct(dtype, *of_it)
            else:
                few = are_few(result, *operands[index])
                allowed = contract(dtype, *of_it, bias[0] if bias and index == 0 else None, few)
            assert not excess(result, of_it[0], allowed), (sample.where, index)
        compared += 1
    assert compared >= 20


#: The checks. Their tolerances for finite differences are PyTorch's own.
CHECKS = {"first": torch.autograd.gradcheck, "second": torch.autograd.gradgradcheck}


def check(order, op, sample, tensors):
    """Compare derivatives with finite differences: backward, forward, and of several gradients at once by vmap."""
    # Beyond the first derivative, PyTorch's own test suite checks only the modes that the operator supports.
    forward = (
        {"check_forward_ad": op.supports_forward_ad}
        if order == "first"
        else {"check_fwd_over_rev": op.supports_fwgrad_bwgrad}
    )
    return CHECKS[order](
        sample,
        tensors,
        check_batched_grad=op.check_batched_grad if order == "first" else op.check_batched_gradgrad,
        nondet_tol=op.gradcheck_nondet_tol,
        # The slow mode looks at each element, the fast mode at one random combination of them.
        fast_mode=order == "second" or sum(tensor.numel() for tensor in tensors) > 100,
        **forward,
    )


@pytest.mark.parametrize("order", CHECKS)
@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.complex128, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives(ops, name, dtype, order, request):
    """Each sample that passes in PyTorch must pass with us. Without --slow, slow samples are left out."""
    most = 10**6 if request.config.getoption("--slow") else 400
    checked = 0
    for given in ops[name].sample_inputs("cpu", dtype, requires_grad=True):
        sample = Sample(ops[name], given)
        tensors = [tensor.detach().requires_grad_() for tensor in sample.tensors]
        if sum(tensor.numel() for tensor in tensors) > most:
            continue
        with one_thread():
            try:
                check(order, ops[name], sample, tensors)
            except Exception:  # any error here is PyTorch's own
                continue
            with override.enabled():
                assert check(order, ops[name], sample, tensors), sample.where
        checked += 1
    assert checked >= 2


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_errors(ops, name):
    """PyTorch's wrong calls must raise its type of error, with its words."""
    compared = 0
    for wrong in ops[name].error_inputs("cpu"):
        sample = Sample(ops[name], wrong.sample_input)
        with pytest.raises(wrong.error_type, match=wrong.error_regex) as theirs:
            sample(*sample.tensors)
        with override.enabled(), pytest.raises(wrong.error_type) as ours:
            sample(*sample.tensors)
        assert (type(ours.value), str(ours.value)) == (type(theirs.value), str(theirs.value)), sample.where
        compared += 1
    assert compared >= 10
