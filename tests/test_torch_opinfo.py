"""PyTorch's own samples of its convolutions, as its test suite has them: what passes without us passes with us."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's test samples need expecttest")

import convgrad_cy.torch as override  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

NAMES = [f"nn.functional.conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)]


def operators():
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name: op for op in op_db if op.name in NAMES}


@pytest.fixture(scope="module")
def ops():
    return operators()


def passes(check):
    """Whether a check passes; some samples fail in PyTorch itself, for instance for a type that it has not."""
    try:
        check()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_samples(ops, name, dtype):
    """Results and gradients beside PyTorch's in float64; contiguous samples and those that are not."""
    compared = 0
    for sample in ops[name].sample_inputs("cpu", dtype, requires_grad=True):
        for given in (sample, sample.noncontiguous()):
            arguments = (given.input, *given.args)
            tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
            try:
                expected = ops[name].op(*arguments, **given.kwargs)
            except Exception as error:
                with override.enabled(), pytest.raises(type(error)):
                    ops[name].op(*arguments, **given.kwargs)
                continue
            with override.enabled():
                result = ops[name].op(*arguments, **given.kwargs)
                dy = torch.ones_like(result)
                gradients = torch.autograd.grad(result, tensors, dy) if result.numel() else ()
            wide = [
                one.detach().double().requires_grad_() if isinstance(one, torch.Tensor) else one for one in arguments
            ]
            exact = ops[name].op(*wide, **given.kwargs)
            inputs = [one for one in wide if isinstance(one, torch.Tensor)]
            others = torch.autograd.grad(exact, inputs, torch.ones_like(exact)) if result.numel() else ()
            assert result.shape == expected.shape and result.dtype == expected.dtype
            for one, other in zip((result, *gradients), (exact, *others), strict=True):
                close(one, other, dtype)
            compared += 1
    assert compared


def close(result, exact, dtype):
    """Within half a unit in the last place (two, with a bias) and 2e-5 of the greatest result."""
    eps = {torch.float64: 2**-40, torch.float32: 2**-24, torch.bfloat16: 2**-8}[dtype]
    if exact.numel():
        bound = 2e-5 * (dtype is not torch.float64) * exact.abs().max() + 3 * eps * exact.abs().max()
        assert ((result.double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(ops, name):
    """First and second derivatives beside finite differences, and each sample that passes in PyTorch passes here."""
    checked = 0
    for sample in list(ops[name].sample_inputs("cpu", torch.float64, requires_grad=True))[:6]:
        arguments = (sample.input, *sample.args)
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        if sum(one.numel() for one in tensors) > 300:
            continue

        def function(*changed, sample=sample, arguments=arguments):
            given = iter(changed)
            whole = [next(given) if isinstance(one, torch.Tensor) else one for one in arguments]
            return ops[name].op(*whole, **sample.kwargs)

        for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            if passes(lambda check=check, function=function, tensors=tensors: check(function, tensors, fast_mode=True)):
                with override.enabled():
                    assert check(function, tensors, fast_mode=True)
                checked += 1
    assert checked
