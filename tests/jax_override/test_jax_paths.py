"""Each way in which JAX runs a convolution: eager, compiled, in loops, on several devices and threads."""

import pytest

pytest.importorskip("jax", minversion="0.7")

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import scripts
from convolutions import distance

import convgrad_cy.jax as override

pytestmark = pytest.mark.jax

NUMBERS = ("NHWC", "HWIO", "NHWC")


def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS)


def loss(w, x):
    return (conv(jnp.tanh(conv(x, w)), w) ** 2).mean()


@pytest.fixture
def operands(float64):
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.standard_normal((3, 3, 4, 4))), jnp.asarray(rng.standard_normal((2, 8, 9, 4)))


def scanned(w, x):
    return jax.lax.scan(lambda carry, _: (jnp.tanh(conv(carry, w)), None), x, None, length=5)[0].sum()


def looped(w, x):
    return jax.lax.fori_loop(0, 3, lambda _, carry: jnp.tanh(conv(carry, w)), x)


WAYS = {
    "eager": lambda w, x: conv(x, w),
    "eager gradient": jax.grad(loss),
    "jit": jax.jit(jax.grad(loss)),
    "scan": jax.jit(jax.grad(scanned)),
    "fori_loop": jax.jit(looped),
    "checkpoint": jax.jit(jax.grad(jax.checkpoint(loss))),
    "hessian times a vector": jax.jit(lambda w, x: jax.jvp(lambda w: jax.grad(loss)(w, x), (w,), (w,))[1]),
    "gradient of each example": jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0))),
    "donated": jax.jit(lambda w, x: conv(x, w) + 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways(operands, way):
    w, x = operands
    if way == "gradient of each example":
        x = x[:, None]
    wanted, before = WAYS[way](w, x), override.status()
    with override.enabled():
        found = jax.block_until_ready(WAYS[way](w, x))
    after = override.status()
    assert distance(found, wanted) < 1e-13
    assert after.computed > before.computed and after.passed_on == before.passed_on


def test_python_threads(operands):
    """Two Python threads that call one program 200 times each must get correct results."""
    w, x = operands
    gradient = jax.jit(jax.grad(loss))
    wanted = gradient(w, x)
    with override.enabled():

        def calls(_):
            return max(distance(gradient(w, x), wanted) for _ in range(200))

        with ThreadPoolExecutor(2) as pool:
            assert max(pool.map(calls, range(2))) < 1e-13


DEVICES = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import convgrad_cy.jax as override
assert len(jax.devices()) == 2

def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def loss(w, x):
    return (conv(jnp.tanh(conv(x, w)), w) ** 2).mean()

rng = np.random.default_rng(0)
w, x = jnp.asarray(rng.standard_normal((3, 3, 4, 4))), jnp.asarray(rng.standard_normal((8, 8, 9, 4)))
wanted = np.asarray(jax.jit(jax.grad(loss))(w, x))
mesh = Mesh(np.array(jax.devices()), ("d",))
override.enable()

def by_hand(w, x):
    return jax.lax.pmean(jax.grad(loss)(jax.lax.pcast(w, ("d",), to="varying") if CAST else w, x), "d")

CAST = hasattr(jax.lax, "pcast")
step = jax.jit(jax.shard_map(by_hand, mesh=mesh, in_specs=(P(), P("d")), out_specs=P(), check_vma=CAST))
for _ in range(50):
    found = np.asarray(step(w, x))
status = override.status()
print("shard_map", abs(found - wanted).max() < 1e-13 * abs(wanted).max(), status.computed >= 100, status.passed_on)

sharded = jax.device_put(x, NamedSharding(mesh, P("d"))), jax.device_put(w, NamedSharding(mesh, P()))
step = jax.jit(lambda x, w: jax.grad(loss)(w, x))
text = step.lower(*sharded).compile().as_text()
found = np.asarray(step(*sharded))
print("divided by XLA", abs(found - wanted).max() < 1e-13 * abs(wanted).max(), "all-gather" in text, "convgrad" in text)
print(*override.status().passed_on)
"""


def test_two_devices(tmp_path):
    """Inside shard_map each device must run our kernels. XLA must keep the convolutions that it divides itself."""
    printed = scripts.run(tmp_path, DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert printed == [
        "shard_map True True {}",
        "divided by XLA True False False",
        "a program that XLA partitions between devices: use shard_map",
    ]
