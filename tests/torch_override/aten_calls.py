"""Random calls of aten's two operators of convolution, and PyTorch's facts about their results."""

from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
RESULTS = ("y", "dx", "dw", "db")


@contextmanager
def one_thread():
    """One thread for small calls of PyTorch: on a busy machine its threads wait for each other 100x as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Call(NamedTuple):
    """The arguments of both operators."""

    dy: Any
    x: Any
    w: Any
    bias: Any
    geometry: tuple  # stride, padding, dilation, transposed, output_padding, groups
    mask: list

    def forward(self):
        return aten.convolution(self.x, self.w, self.bias, *self.geometry)

    def backward(self):
        sizes = None if self.bias is None else list(self.bias.shape)
        return aten.convolution_backward(self.dy, self.x, self.w, sizes, *self.geometry, self.mask)

    def mapped(self, function):
        """The call with other tensors."""
        tensors = [None if tensor is None else function(tensor) for tensor in self[:4]]
        return self._replace(**dict(zip(self._fields[:4], tensors, strict=True)))

    def wide(self, function=torch.clone):
        """The call in float64 and contiguous, with a function of the numbers. PyTorch computes this correctly.

        Some of its kernels crash for 16-bit or three-dimensional calls whose filters are not contiguous.
        """
        return self.mapped(lambda tensor: function(tensor.double().contiguous()))

    def exact(self):
        """(exact result, sum of its terms' magnitudes, number of terms) for each of y, dx, dw and db."""
        calls = self.wide(), self.wide(torch.abs), self.wide(torch.ones_like)
        with one_thread():
            return list(zip(*((call.forward(), *call.backward()) for call in calls), strict=True))

    def fakes(self):
        """The results of PyTorch's meta kernels.

        aten::_convolution has none in older releases, where its own kernel would get tensors of zeros, so it is not
        called.
        """
        with FakeTensorMode() as mode:
            call = self.mapped(mode.from_tensor)
            return call.forward(), *call.backward()


def placed(random, tensor):
    """The numbers elsewhere in memory. The last two kinds repeat the first image, or one number."""
    kind = random.choice(("as it is",) * 3 + ("last",) * 2 + ("swapped", "gaps", "cut", "images", "sum"))
    if kind == "last" and tensor.dim() in LAST:
        return tensor.to(memory_format=LAST[tensor.dim()])
    if kind == "swapped":
        return tensor.transpose(-1, 0).contiguous().transpose(-1, 0)
    if kind == "gaps":
        return tensor.repeat_interleave(2, -1)[..., ::2]
    if kind == "cut":  # the middle of a larger one: another offset, and rows further apart
        larger = torch.nn.functional.pad(tensor, (1, 2) * tensor.dim())
        return larger[(slice(1, -2),) * tensor.dim()]
    if kind == "images":
        return tensor[:1].expand(tensor.shape)
    if kind == "sum":  # as in the gradient of y.sum()
        return tensor.flatten()[0].expand(tensor.shape)
    return tensor


def numbers(random, shape, dtype):
    """Normal, uniform, all positive, or integer numbers."""
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    kind = random.choice(("normal", "normal", "uniform", "positive", "integers"))
    if kind == "normal":
        return torch.randn(shape, generator=generator).to(dtype)
    if kind == "integers":
        return torch.randint(-4, 5, shape, generator=generator).to(dtype)
    drawn = torch.rand(shape, generator=generator)
    return (drawn if kind == "positive" else 2 * drawn - 1).to(dtype)


def shortened(random, values):
    """The values, sometimes as a list of one entry that stands for all axes."""
    return values[:1] if len(set(values)) == 1 and random.random() < 0.3 else values


def geometry(random, rank):
    """(x's extents, w's extents, the geometry)."""
    transposed = random.random() < 0.4
    groups = random.choice((1, 1, 1, 2, 3, 8))
    kernel = [random.choice((1, 2, 3, 3, 4, 5) if rank < 3 else (1, 2, 3)) for _ in range(rank)]
    stride = [random.choice((1, 1, 2, 3)) for _ in range(rank)]
    dilation = [random.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    padding = [random.choice((0, 1, 1, 2)) for _ in range(rank)]
    extra = [random.randrange(max(pair)) if transposed else 0 for pair in zip(stride, dilation, strict=True)]
    extents = [random.randint(1, {1: 40, 2: 14, 3: 7}[rank]) for _ in range(rank)]
    lists = [shortened(random, values) for values in (stride, padding, dilation, extra)]
    return extents, kernel, (*lists[:3], transposed, lists[3], groups)


def draw(seed):
    """A random call, or None if its geometry has no result."""
    random = Random(seed)
    rank, dtype = random.choice((1, 2, 2, 3)), random.choice(DTYPES)
    extents, kernel, arguments = geometry(random, rank)
    transposed, groups = arguments[3], arguments[5]
    most = (1, 2, 3, 4, 8, 16, 17) if groups < 8 else (1, 1, 2)
    x_channels, y_channels = random.choice(most), random.choice(most)
    x_shape = (random.choice((1, 1, 2, 3, 5)), groups * x_channels, *extents)
    w_shape = (groups * x_channels, y_channels) if transposed else (groups * y_channels, x_channels)
    x, w = (placed(random, numbers(random, shape, dtype)) for shape in (x_shape, (*w_shape, *kernel)))
    bias = placed(random, numbers(random, (groups * y_channels,), dtype)) if random.random() < 0.5 else None
    if random.random() < 0.3:
        w = torch.nn.Parameter(w, requires_grad=False)
    mask = [random.random() < 0.75, random.random() < 0.75, bias is not None and random.random() < 0.75]
    call = Call(None, x, w, bias, arguments, mask)
    try:
        y = call.mapped(lambda tensor: tensor.to("meta")).forward()
    except RuntimeError:  # the kernel is larger than the padded x
        return None
    return call._replace(dy=placed(random, numbers(random, y.shape, dtype))) if y.numel() else None
