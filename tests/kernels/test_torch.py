"""All six operations against PyTorch in float64, on random geometries and integer-valued data: no difference at all.

CONVGRAD_CY_DIFFERENTIAL is the number of geometries (200). CONVGRAD_CY_SEED is the seed of the first one (1). Every
failure names its seed.
"""

import os
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import _repeat, calls
from convgrad_cy.cpu.plan.job import Job
from convgrad_cy.memo.bounded import Bounded

pytestmark = pytest.mark.torch

GEOMETRIES = int(os.environ.get("CONVGRAD_CY_DIFFERENTIAL", "200"))
SEED = int(os.environ.get("CONVGRAD_CY_SEED") or 1)
#: Geometries in one test: there are enough tests to locate a failure, and not one for each geometry.
CHUNK = 50


@pytest.fixture(autouse=True)
def team():
    """At least two threads, although PyTorch may have one: a source build shares PyTorch's OpenMP and its setting.

    If PyTorch has several threads, take as many: a shared team then keeps its size.
    """
    import torch

    with cg.num_threads(max(2, torch.get_num_threads())):
        yield


@dataclass(frozen=True)
class Geometry:
    """A convolution whose x may have a rest, and a transposed one with output_padding."""

    batch: int
    groups: int
    x_channels: int
    y_channels: int
    x: tuple
    kernel: tuple
    stride: tuple
    dilation: tuple
    padding: tuple
    output_padding: tuple
    data_format: str
    filter_format: str

    @property
    def keywords(self):
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
            "data_format": self.data_format,
            "filter_format": self.filter_format,
        }

    def data(self, array):
        """A tensor in NCX, in the data format of the geometry; and back."""
        return array if self.data_format == "NCX" else np.moveaxis(array, 1, -1)

    def undata(self, array):
        return array if self.data_format == "NCX" else np.moveaxis(array, -1, 1)

    def filter(self, array):
        return array if self.filter_format == "OIX" else np.moveaxis(array, (0, 1), (-1, -2))

    def unfilter(self, array):
        return array if self.filter_format == "OIX" else np.moveaxis(array, (-1, -2), (0, 1))


def draw(random):
    """A random geometry: small, odd, and legal for conv and conv_transpose alike."""
    rank = random.choice((1, 2, 2, 2, 3))
    most = {1: 24, 2: 10, 3: 6}[rank]
    groups = random.choice((1, 1, 1, 2, 3, 5))
    per_group = [random.choice((1, 1, 2, 3, 4, 7, 17, 33) if rank < 3 else (1, 2, 3, 5)) for _ in range(2)]
    axes = []
    for _ in range(rank):
        kernel, stride, dilation = random.randint(1, 5), random.randint(1, 4), random.choice((1, 1, 2, 3))
        extent = (kernel - 1) * dilation + 1
        padding = (random.randint(0, 4), random.randint(0, 4)) if random.random() < 0.7 else (0, 0)
        # At least the size with one output in conv, and with one input in conv_transpose's result.
        x = random.randint(max(1, extent - sum(padding)), max(most, extent))
        axes.append((x, kernel, stride, dilation, padding, random.randrange(max(stride, dilation))))
    return Geometry(
        random.randint(1, 3),
        groups,
        groups * per_group[0],
        groups * per_group[1],
        *zip(*axes, strict=True),
        random.choice(("NCX", "NXC")),
        random.choice(("OIX", "XIO")),
    )


def integers(random, shape):
    return np.random.default_rng(random.randrange(2**32)).integers(-9, 10, shape).astype(np.float64)


def padded(tensor, padding):
    """The tensor padded by torch.nn.functional.pad, which takes the last axis first and allows two unequal sides."""
    import torch

    return torch.nn.functional.pad(tensor, [size for pair in reversed(padding) for size in pair])


def torch_conv(geometry, x, w):
    import torch

    function = getattr(torch.nn.functional, f"conv{len(geometry.x)}d")
    keywords = {"stride": geometry.stride, "dilation": geometry.dilation, "groups": geometry.groups}
    return function(padded(x, geometry.padding), w, **keywords)


def torch_conv_transpose(geometry, x, w):
    """A transposed convolution without padding, then cropped by it. This is the meaning of its padding."""
    import torch

    function = getattr(torch.nn.functional, f"conv_transpose{len(geometry.x)}d")
    keywords = {"stride": geometry.stride, "dilation": geometry.dilation, "groups": geometry.groups}
    # PyTorch's padding only shortens the end; output_padding lengthens it with the results of the taps there.
    whole = function(x, w, output_padding=geometry.output_padding, **keywords)
    return padded(whole, [(-begin, -end) for begin, end in geometry.padding])


def gradients(function, geometry, x, w, random):
    """The output, a gradient for it, and the gradients of both operands, all as arrays in NCX and OIX."""
    import torch

    x, w = torch.from_numpy(x).requires_grad_(), torch.from_numpy(w).requires_grad_()
    y = function(geometry, x, w)
    dy = integers(random, tuple(y.shape))
    dx, dw = torch.autograd.grad(y, (x, w), torch.from_numpy(dy))
    return y.detach().numpy(), dy, dx.numpy(), dw.numpy()


def conv_mismatches(g, random):
    x = integers(random, (g.batch, g.x_channels, *g.x))
    w = integers(random, (g.y_channels, g.x_channels // g.groups, *g.kernel))
    y, dy, dx, dw = gradients(torch_conv, g, x, w, random)
    ours = {
        "conv": (g.undata(cg.conv(g.data(x), g.filter(w), **g.keywords)), y),
        "conv_backward_data": (
            g.undata(cg.conv_backward_data(g.data(dy), g.filter(w), g.data(x).shape, **g.keywords)),
            dx,
        ),
        "conv_backward_filter": (
            g.unfilter(cg.conv_backward_filter(g.data(x), g.data(dy), g.filter(w).shape, **g.keywords)),
            dw,
        ),
    }
    return [name for name, (result, expected) in ours.items() if not np.array_equal(result, expected)]


def transpose_mismatches(g, random):
    """The mismatches as above, for an x of these extents if its transposed convolution has a size."""
    sizes = [
        (x - 1) * stride + (kernel - 1) * dilation + 1 + extra - sum(padding)
        for x, kernel, stride, dilation, padding, extra in zip(
            g.x, g.kernel, g.stride, g.dilation, g.padding, g.output_padding, strict=True
        )
    ]
    if min(sizes) < 1:
        return None
    x = integers(random, (g.batch, g.x_channels, *g.x))
    w = integers(random, (g.x_channels, g.y_channels // g.groups, *g.kernel))
    y, dy, dx, dw = gradients(torch_conv_transpose, g, x, w, random)
    keywords = {**g.keywords, "output_padding": g.output_padding}
    shape = g.data(np.broadcast_to(0, y.shape)).shape
    ours = {
        "conv_transpose": (g.undata(cg.conv_transpose(g.data(x), g.filter(w), **keywords)), y),
        "conv_transpose_backward_data": (
            g.undata(cg.conv_transpose_backward_data(g.data(dy), g.filter(w), **keywords)),
            dx,
        ),
        "conv_transpose with output_shape": (
            g.undata(cg.conv_transpose(g.data(x), g.filter(w), output_shape=shape, **g.keywords)),
            y,
        ),
        "conv_transpose_backward_filter": (
            g.unfilter(cg.conv_transpose_backward_filter(g.data(x), g.data(dy), g.filter(w).shape, **g.keywords)),
            dw,
        ),
    }
    return [name for name, (result, expected) in ours.items() if not np.array_equal(result, expected)]


@pytest.mark.parametrize("first", range(0, GEOMETRIES, CHUNK))
def test_no_mismatch(first):
    transposed = 0
    for index in range(first, min(first + CHUNK, GEOMETRIES)):
        seed = SEED + index
        random = Random(seed)
        geometry = draw(random)
        where = f"CONVGRAD_CY_DIFFERENTIAL=1 CONVGRAD_CY_SEED={seed}: {geometry}"
        try:
            plain, backwards = conv_mismatches(geometry, random), transpose_mismatches(geometry, random)
        except Exception as error:
            raise AssertionError(where) from error
        assert plain == [], where
        assert not backwards, where
        transposed += backwards is not None
    assert transposed or GEOMETRIES < CHUNK, "no geometry had a transposed convolution"


#: Geometries that are large enough for several threads; the drawn ones are not.
LARGE = [
    Geometry(2, 1, 32, 48, (20, 21), (3, 3), (1, 1), (1, 1), ((1, 1), (0, 2)), (0, 0), "NCX", "OIX"),
    Geometry(3, 1, 33, 40, (30, 31), (3, 4), (2, 2), (1, 1), ((1, 1), (1, 2)), (1, 0), "NXC", "XIO"),
    Geometry(2, 96, 96, 96, (40, 25), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), (0, 0), "NCX", "OIX"),
    Geometry(2, 96, 96, 96, (40, 25), (3, 3), (1, 2), (2, 1), ((2, 2), (1, 1)), (1, 1), "NXC", "XIO"),
    Geometry(2, 2, 32, 32, (8, 9, 10), (3, 3, 3), (1, 1, 1), (1, 1, 1), ((1, 1),) * 3, (0, 0, 0), "NXC", "OIX"),
    Geometry(4, 1, 64, 64, (600,), (5,), (1,), (2,), ((3, 4),), (0,), "NCX", "XIO"),
]


@pytest.mark.parametrize("geometry", LARGE, ids=str)
def test_no_mismatch_of_a_team(geometry, monkeypatch):
    threads = set()
    ready = Job.ready

    def noted(job, numbers):
        threads.add(int(job.plan.blocks[0]))
        return ready(job, numbers)

    monkeypatch.setattr(Job, "ready", noted)
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    random = Random(SEED)
    assert conv_mismatches(geometry, random) == [], SEED
    assert transpose_mismatches(geometry, random) == [], SEED
    assert not _repeat.has_openmp() or threads == {cg.get_num_threads()}


def test_mismatch_is_seen():
    """A different dilation for torch must be seen as a mismatch."""
    random = Random(1)
    geometry = Geometry(1, 1, 2, 3, (9,), (3,), (1,), (2,), ((1, 1),), (0,), "NCX", "OIX")
    assert conv_mismatches(geometry, random) == []
    x, w = integers(random, (1, 2, 9)), integers(random, (3, 2, 3))
    y, *_ = gradients(torch_conv, geometry, x, w, random)
    assert not np.array_equal(cg.conv(x, w, padding=2), y[..., :9])
