"""A user's program with arrays of PyTorch and JAX, like ``program.py``."""

from pathlib import Path

import jax
import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import assert_type

import convgrad_cy as cg
import convgrad_cy.jax
import convgrad_cy.torch


def right(x: torch.Tensor, layer: torch.nn.Conv2d, a: jax.Array, b: jax.Array) -> None:
    w = layer.weight.detach()
    y = assert_type(cg.conv(x, w, padding="same"), torch.Tensor)
    assert_type(cg.conv_backward_data(y, w, x.shape, out=x), torch.Tensor)
    assert_type(cg.conv_backward(y, x, w, out=[x, None]), tuple[torch.Tensor, torch.Tensor])
    assert_type(cg.conv_transpose(a, b, stride=2), jax.Array)
    assert_type(cg.conv_transpose_backward(a, a, b), tuple[jax.Array, jax.Array])
    cg.explain(cg.conv, [x, w], padding=1)
    convgrad_cy.torch.enable("direct", cuda=True)
    convgrad_cy.torch.enable(benchmark=True)
    convgrad_cy.torch.enable("auto", Path("choices.json"))
    with convgrad_cy.torch.enabled(cuda="all"), convgrad_cy.jax.enabled(algorithm="auto"):
        assert_type(convgrad_cy.torch.status().passed_on, dict[tuple[str, str], int])
        assert_type(convgrad_cy.jax.status().lowered, dict[str, int])
    with convgrad_cy.torch.enabled(benchmark="choices.json"):
        benchmark = convgrad_cy.torch.status().benchmark
        if benchmark is not None:
            assert_type(benchmark.shapes, dict[tuple[str, str], int])
            assert_type(benchmark.microseconds, dict[str, float])


def wrong(x: torch.Tensor, a: jax.Array, n: NDArray[np.float32]) -> None:
    cg.conv(x, a)  # wrong
    cg.conv(n, x)  # wrong
    cg.conv(a, n)  # wrong
    cg.conv(a, a, out=a)  # wrong
    cg.conv(x, x, out=n)  # wrong
    cg.conv_backward(x, x, x, out=x)  # wrong
    convgrad_cy.torch.enable("winograd")  # wrong
    convgrad_cy.torch.enable(cuda="some")  # wrong
    convgrad_cy.torch.enable("auto", True, True)  # wrong
    convgrad_cy.torch.enable(benchmark=3)  # wrong
    convgrad_cy.jax.enable(1)  # wrong
