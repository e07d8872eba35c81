"""Random calls of aten's two operators of convolution, and what PyTorch says of their results."""

from random import Random
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


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
        sizes = None if self.bias is None else [len(self.bias)]
        return aten.convolution_backward(self.dy, self.x, self.w, sizes, *self.geometry, self.mask)

    def results(self):
        """y, dx, dw and the gradient of the bias."""
        return (self.forward(), *self.backward())

    def mapped(self, function):
        """The call with other tensors."""
        tensors = [None if tensor is None else function(tensor) for tensor in self[:4]]
        return self._replace(**dict(zip(self._fields[:4], tensors, strict=True)))

    def exact(self):
        """What float64 and PyTorch's own kernels make of the same numbers."""
        return self.mapped(lambda tensor: tensor.double().contiguous()).results()

    def faked(self):
        """The results' shapes, types and strides, from PyTorch's meta kernels."""
        with FakeTensorMode() as mode:
            return self.mapped(mode.from_tensor).results()


def placed(random, tensor):
    """The same numbers elsewhere in memory: channels last, axes exchanged, with gaps, or one image for all."""
    kind = random.randrange(6)
    if kind == 0 and tensor.dim() in LAST:
        return tensor.to(memory_format=LAST[tensor.dim()])
    if kind == 1:
        return tensor.transpose(-1, 0).contiguous().transpose(-1, 0)
    if kind == 2:
        return tensor.repeat_interleave(2, -1)[..., ::2]
    if kind == 3:
        return tensor[:1].expand(tensor.shape)
    return tensor


def draw(seed):
    """A random call, or None where the geometry drawn has no result."""
    random = Random(seed)
    generator = torch.Generator().manual_seed(seed)
    rank, groups, transposed = random.choice((1, 2, 2, 3)), random.choice((1, 1, 2, 3)), random.random() < 0.35
    per_group = [random.choice((1, 2, 4, 8, 16)) for _ in range(2)]
    kernel, stride = ([random.randint(1, most) for _ in range(rank)] for most in (4, 3))
    dilation, padding = ([random.randint(least, 2) for _ in range(rank)] for least in (1, 0))
    extra = [random.randrange(max(*pair)) if transposed else 0 for pair in zip(stride, dilation, strict=True)]
    x_shape = (random.choice((1, 2, 3)), groups * per_group[0], *(random.randint(1, 12) for _ in range(rank)))
    w_shape = (groups * per_group[0], per_group[1]) if transposed else (groups * per_group[1], per_group[0])
    dtype = random.choice(DTYPES)

    def normal(*shape):
        return torch.randn(shape, generator=generator).to(dtype)

    bias = normal(groups * per_group[1]) if random.random() < 0.5 else None
    if random.random() < 0.2 and len(set(stride)) == 1:
        stride = stride[:1]  # stands for all axes
    geometry = stride, padding, dilation, transposed, extra, groups
    call = Call(None, placed(random, normal(*x_shape)), placed(random, normal(*w_shape, *kernel)), bias, geometry, None)
    try:
        y = call.mapped(lambda tensor: tensor.to("meta")).forward()
    except RuntimeError:  # the kernel is larger than the padded x
        return None
    if y.numel() == 0:
        return None
    mask = [random.random() < 0.8, random.random() < 0.8, bias is not None]
    return call._replace(dy=placed(random, normal(*y.shape)), mask=mask)
