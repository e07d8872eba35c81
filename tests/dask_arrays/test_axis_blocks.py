"""The blocks of one axis: each reads exactly the elements that its positions reach, and no position is left out."""

from itertools import product

import pytest

from convgrad_cy.blocks import backward_blocks, backward_halo, forward_blocks, forward_halo
from convgrad_cy.problem import conv_size, dilated_size


def axes():
    """(x, y, kernel, stride, dilation, pad_begin) of many axes."""
    for kernel, stride, dilation in product((1, 2, 3, 5), (1, 2, 3), (1, 2)):
        extent = dilated_size(kernel, dilation)
        for begin, end in product({0, extent // 2, extent - 1}, repeat=2):
            for x in (6 * stride, 6 * stride + 1, 9 * stride + 2):
                y = conv_size(x, kernel, stride, dilation, (begin, end))
                if y >= 1:
                    yield (x, y, kernel, stride, dilation, begin)


AXES = list(axes())


def reads(p, x, kernel, stride, dilation, begin):
    """Elements of x that position p of y reads."""
    every = (p * stride + t * dilation - begin for t in range(kernel))
    return {q for q in every if 0 <= q < x}


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_forward(chunk):
    """Each block must read all elements of its positions, and its padding must give it their number and place."""
    for x, y, *rest in AXES:
        kernel, stride, dilation, _ = rest
        edges = sorted({*range(0, x, chunk * stride), x})
        before, after = forward_halo(x, y, *rest)
        blocks, first = [*forward_blocks(edges, x, y, *rest)], 0
        for low, high, block in zip(edges, edges[1:], blocks, strict=False):
            if block.size == 0:
                continue
            low, high = max(low - before, 0), min(high + after, x)
            part = range(low + block.begin, low + block.end)
            assert part.stop <= high
            pads = block.pad_begin, block.pad_end
            assert min(pads) >= 0 and conv_size(len(part), kernel, stride, dilation, pads) == block.size
            for p in range(block.size):
                inside = {q + part.start for q in reads(p, len(part), kernel, stride, dilation, block.pad_begin)}
                assert inside == reads(first + p, x, *rest)
            first += block.size
        assert first == y == sum(block.size for block in blocks)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_backward(chunk):
    """Each element of dx must meet the same positions and taps in its block as in the whole."""
    for x, y, *rest in AXES:
        kernel, stride, dilation, begin = rest
        edges = sorted({*range(0, y, chunk), y})
        before, after = backward_halo(x, y, *rest)
        blocks, first = [*backward_blocks(edges, x, y, *rest)], 0
        for low, high, block in zip(edges, edges[1:], blocks, strict=False):
            if block.size == 0:
                continue
            low, high = max(low - before, 0), min(high + after, y)
            part = range(low + block.begin, low + block.end)
            assert block.begin >= 0 and part.stop <= high
            assert min(block.pad_begin, block.pad_end) >= 0
            pads = block.pad_begin, block.pad_end
            assert conv_size(block.size, kernel, stride, dilation, pads) == len(part)
            for p, t in product(range(y), range(kernel)):
                q = p * stride + t * dilation - begin - first
                if 0 <= q < block.size:
                    assert p in part
                    assert q == (p - part.start) * stride + t * dilation - block.pad_begin
            first += block.size
        assert first == x == sum(block.size for block in blocks)
