"""A small network of integers, whose results are exact in any order of sums, and the count of its calls."""

import torch

import convgrad_cy.torch as override

#: Calls of each operator in one pass.
LAYERS = 3


def integers(least, most, *shape):
    return torch.randint(least, most + 1, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


class Network(torch.nn.Module):
    """A padding that PyTorch computes, groups with a stride, and a transposed convolution.

    With x from -2 to 2 and weights from -1 to 1, results are at most 30 * 2 + 1 = 61, 2 * 9 * 61 = 1098, and
    6 * 4 * 1098 = 26,352, and gradients, sums over 3 images, below 2**21: exact in float32. In bfloat16, each result is
    rounded once, except the biased ones, which are exact.
    """

    def __init__(self):
        super().__init__()
        self.same = torch.nn.Conv2d(2, 4, (5, 3), padding="same")
        self.strided = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, bias=False)
        self.up = torch.nn.ConvTranspose2d(6, 2, 4, stride=2, padding=1, bias=False)
        for parameter in self.parameters():
            parameter.data = integers(-1, 1, *parameter.shape)

    def forward(self, x):
        return self.up(torch.relu(self.strided(torch.relu(self.same(x)))))


X = integers(-2, 2, 3, 2, 8, 8)
DY = integers(-1, 1, 3, 2, 8, 8)


def train(network, x=X):
    """The output, and the gradients of the input and of all parameters."""
    network.zero_grad()
    x = x.detach().requires_grad_()
    y = network(x)
    (y * DY).sum().backward()
    return y.detach(), x.grad, *(parameter.grad.clone() for parameter in network.parameters())


def counted(run):
    """The result with our kernels, and the numbers of calls (forward, backward) that they computed; none passed on."""
    before = override.status()
    with override.enabled():
        result = run()
    after = override.status()
    assert after.passed_on == before.passed_on
    names = "_convolution", "convolution_backward"
    return result, tuple(after.computed[name] - before.computed[name] for name in names)


def assert_same(ours, theirs, strides=True):
    """Equal numbers, types and strides, in tensors and in containers of them."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, check_stride=strides)
