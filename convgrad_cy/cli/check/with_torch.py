"""One training step of a small network in PyTorch, by its own kernels and after ``convgrad_cy.torch.enable()``."""

from . import frameworks


def _network(torch):
    """Ordinary, depthwise, strided and transposed convolutions."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.Tanh(),
        torch.nn.Conv2d(32, 32, 3, padding=1, groups=32),
        torch.nn.Conv2d(32, 48, 3, stride=2, padding=1),
        torch.nn.Tanh(),
        torch.nn.ConvTranspose2d(48, 3, 4, stride=2, padding=1),
    )


def _step(torch):
    """Name -> array: the output, and the gradient of each parameter and of the input."""
    network = _network(torch)
    images = torch.randn(4, 3, 24, 24, requires_grad=True)
    output = network(images)
    (output - 1).square().sum().backward()
    gradients = {f"gradient of {name}": parameter.grad for name, parameter in network.named_parameters()}
    arrays = {"output": output.detach(), "gradient of the input": images.grad, **gradients}
    return {name: array.double().numpy() for name, array in arrays.items()}


def records():
    try:
        import torch
    except ImportError:
        yield frameworks.missing("PyTorch", "not installed")
        return
    own = _step(torch)
    try:
        from ... import torch as switch
    except ImportError as error:  # too old
        yield frameworks.missing("PyTorch", f"not checked: {error}")
        return
    switch.enable()
    ours = _step(torch)
    status = switch.status()
    yield frameworks.record("PyTorch", torch.__version__, own, ours, sum(status.computed.values()))
