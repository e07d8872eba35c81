"""Random problems far beyond real layers: the driver accepts all launches, and TMA's kernels compute right results.

Each parameter is a seed. Problems with one to three axes, groups, dilations and extreme sizes are drawn.
"""

from math import exp, log, prod
from random import Random

import numpy as np
import pytest
from gpus import DEVICES
from operations import Tensors, dtype_of, reference_kernel
from problems import parse
from simulated import CHANNELS_LAST, FORMATS, H200, OPERATIONS, Case, task_without_memory
from test_launches import gpu as gpu
from test_launches import refusal

from bench.gpu import forced
from convgrad_cy.gpu import families, mma, tiles

TYPES = ("float32", "float16", "bfloat16", "float64", "int32")
#: Bytes of the arrays of a problem at most, and of its workspaces: this multiple of the arrays, or a gigabyte.
MOST_BYTES, MOST_WORKSPACE = 140e9, 20


def size_between(random, low, high):
    """A size whose logarithm is uniformly distributed."""
    return min(high, max(low, round(exp(random.uniform(log(low), log(high))))))


def channels_of(random, kind):
    """Groups, input channels and output channels."""
    if kind == "depthwise":
        groups = size_between(random, 2, 20000)
        return groups, groups, groups * random.choice((1, 1, 2, 3))
    if kind in ("groups", "many groups"):
        groups, most = (size_between(random, 2, 64), 64) if kind == "groups" else (random.randint(60000, 200000), 20)
        return groups, groups * size_between(random, 1, most), groups * size_between(random, 1, most)
    most = 200_000 if kind == "many channels" else 2048
    return 1, size_between(random, 1, most), size_between(random, 1, most)


def line(batch, channels, axes):
    """A problem of ``problems.txt``. Axes are (name, size, kernel, stride, dilation - 1, padding)."""
    groups, ins, outs = channels
    sizes = "".join(f"i{name}{size}" for name, size, *_ in axes)
    walks = "".join(f"k{name}{k}s{name}{s}d{name}{d}p{name}{p}" for name, _, k, s, d, p in axes)
    results = "".join(f"o{name}{(size + 2 * p - (k - 1) * (d + 1) - 1) // s + 1}" for name, size, k, s, d, p in axes)
    return f'mb{batch}{f"g{groups}" if groups > 1 else ""}ic{ins}{sizes}oc{outs}{results}{walks}n"random"'


def axis_of(name, size, kernel, stride, dilation, padding):
    """An axis whose kernel fits into the padded array."""
    if (kernel - 1) * (dilation + 1) + 1 > size + 2 * padding:
        dilation = 0
    if kernel > size + 2 * padding:
        kernel = 1
    return name, size, kernel, stride, dilation, padding


def extreme(random):
    """A problem of any size."""
    kind = random.choice(
        ("dense", "dense", "depthwise", "groups", "many images", "many channels", "long", "many groups")
    )
    rank = random.choice((1, 2, 2, 2, 3))
    longest = 300 if kind != "long" else 10**6 if rank < 3 else 2000
    axes = []
    for name in "dhw"[3 - rank :]:
        size = size_between(random, 1, longest)
        kernel = size_between(random, 1, min(size, random.choice((3, 7, 64, 300))))
        stride, dilation = (size_between(random, 1, random.choice(mosts)) for mosts in ((1, 2, 4, 40), (1, 3, 150)))
        padding = size_between(random, 1, random.choice((1, 3, 200))) - 1
        axes.append(axis_of(name, size, kernel, stride, dilation - 1, padding))
    batch = size_between(random, 10**5, 3 * 10**9) if kind == "many images" else size_between(random, 1, 512)
    return parse(line(batch, channels_of(random, kind), axes))


@pytest.mark.slow
@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("seed", range(60))
def test_the_driver_takes_random_plans(gpu, seed, arch):
    """Every plan must be made, be accepted by the driver, and need workspaces in proportion to the arrays."""
    random = Random(f"{seed} {arch}")
    gpu(arch)
    for _ in range(240):
        problem = extreme(random)
        dtype = random.choice(TYPES)
        elements = prod(problem.x_shape) + prod(problem.w_shape) + prod(problem.y_shape)
        size = elements * dtype_of(dtype).itemsize
        if size > MOST_BYTES:
            continue
        precision = random.choice(("high", "medium", "ieee")) if dtype == "float32" else "high"
        operation = random.choice(list(OPERATIONS))
        formats = random.choice(FORMATS)
        task = task_without_memory(operation, problem, dtype, precision, formats, DEVICES[arch])
        plan = families.plan(task)
        drawn = (arch, operation, dtype, precision, formats, problem)
        assert refusal(plan) == "", drawn
        assert sum(plan.workspaces) <= max(1e9, MOST_WORKSPACE * size), drawn


def small(random):
    """A problem that the simulator computes soon, for kernels with TMA."""
    rank = random.choice((1, 2, 2, 3))
    axes = [
        axis_of(
            name,
            random.randint(1, {1: 150, 2: 20, 3: 7}[rank]),
            random.randint(1, 4),
            random.choice((1, 1, 2, 3)),
            random.choice((0, 0, 1, 2)),
            random.randint(0, 3),
        )
        for name in "dhw"[3 - rank :]
    ]
    channels = 1, random.choice((8, 16, 24, 40, 64, 72, 136, 200)), random.choice((8, 16, 24, 64, 136, 264))
    return parse(line(random.randint(1, 4), channels, axes))


def numbers(problem, operation, dtype, seed):
    """Small integers. In three of ten cases, some elements of one operand are NaN or infinite."""
    generator, random = np.random.default_rng(seed), Random(seed)
    shapes = problem.x_shape, problem.w_shape, problem.y_shape
    tensors = [generator.integers(-2, 3, shape).astype(dtype_of(dtype)) for shape in shapes]
    if random.random() < 0.3:
        read = {"fprop": (0, 1), "dgrad": (1, 2), "wgrad": (0, 2)}[operation]
        flat = tensors[random.choice(read)].reshape(-1)
        for _ in range(random.randint(1, 3)):
            flat[random.randrange(flat.size)] = random.choice((np.nan, np.inf, -np.inf))
    return Tensors(*tensors)


def by_engine(case, operation, random):
    """A plan whose kernel uses TMA, or None."""
    if not mma.can(case.task):
        return None
    every = tiles._BY_ENGINE_BY_DEPTH if operation == "wgrad" else tiles._BY_ENGINE
    with forced.taking("mma", forced.Product(random.choice(every), random.choice((1, 1, 2, 3)))):
        if not mma.engine_brings(case.task):
            return None
        plan = mma.launches(case.task)
    return plan if any(launch.maps for launch in plan.launches) else None


@pytest.mark.slow
@pytest.mark.simulator
@pytest.mark.parametrize("seed", range(500))
def test_values_of_random_problems_with_tma(seed):
    """Few multiprocessors, so that a block has several tiles. The results must equal the reference, NaN included."""
    random = Random(seed)
    for attempt in range(50):
        problem, operation = small(random), random.choice(list(OPERATIONS))
        if prod(problem.y_shape) * problem.x_channels * prod(problem.kernel) > 1e7:
            continue
        dtype, formats = random.choice(("bfloat16", "float16")), random.choice((CHANNELS_LAST, ("NXC", "XIO")))
        tensors = numbers(problem, operation, dtype, 50 * seed + attempt)
        device = H200._replace(processors=random.choice((1, 1, 2, 3)))
        case = Case(operation, problem, tensors, formats=formats, device=device)
        plan = by_engine(case, operation, random)
        if plan is not None:
            break
    else:
        pytest.fail("no problem was found that suits the kernels")
    found = case.run(plan, random.choice(("ascending", "descending", "random")), seed).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference_kernel(operation, problem, tensors), np.float32)
        expected = expected.astype(dtype_of(dtype)).astype(np.float64)
    np.testing.assert_array_equal(found, expected, err_msg=f"{problem} {operation} {dtype} {formats}")
