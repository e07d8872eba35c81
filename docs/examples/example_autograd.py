"""
Primitives for HIPS autograd
============================

autograd differentiates NumPy programs if it knows the gradient of each function. Three functions of this package are
closed under differentiation: the gradient of each one is a call of the other two. So thirty lines give autograd
convolutions with gradients of any order. autograd's own ``check_grads`` compares them with finite differences.

The example finds the blur between two pictures by gradient descent.

Run it with ``python docs/examples/example_autograd.py [PICTURE.png]``. It needs more than NumPy: ``pip install autograd
matplotlib tqdm``.
"""

import argparse

import autograd.numpy as np
import matplotlib.pyplot as plt
from autograd import value_and_grad
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads
from tqdm import trange

import convgrad_cy as cg
from convgrad_cy.cli.demo import digits

parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="few steps")
options = parser.parse_args()

# %%
# The primitives
# --------------
#
# Each gradient has the shape of the argument that it belongs to. ``how`` is the keywords that all three share.

conv = primitive(cg.conv)
conv_backward_data = primitive(cg.conv_backward_data)
conv_backward_filter = primitive(cg.conv_backward_filter)
defvjp(
    conv,
    lambda y, x, w, **how: lambda dy: conv_backward_data(dy, w, x.shape, **how),
    lambda y, x, w, **how: lambda dy: conv_backward_filter(x, dy, w.shape, **how),
)
defvjp(
    conv_backward_data,
    lambda dx, dy, w, shape, **how: lambda g: conv(g, w, **how),
    lambda dx, dy, w, shape, **how: lambda g: conv_backward_filter(g, dy, w.shape, **how),
    argnums=(0, 1),
)
defvjp(
    conv_backward_filter,
    lambda dw, x, dy, shape, **how: lambda g: conv_backward_data(dy, g, x.shape, **how),
    lambda dw, x, dy, shape, **how: lambda g: conv(x, g, **how),
    argnums=(0, 1),
)

# %%
# The check
# ---------
#
# First and second derivatives with respect to both arguments, with stride, padding, dilation and groups.

random = np.random.RandomState(0)
how = {"stride": (2, 1), "padding": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2}
x, w = random.randn(2, 4, 6, 7), random.randn(6, 2, 3, 2)
check_grads(lambda x, w: conv(x, w, **how), modes=["rev"], order=2)(x, w)
print("check_grads: first and second derivatives agree with finite differences")

# %%
# A blur from two pictures
# ------------------------
#
# The digits are sharp and blurred. The loss is the squared difference, and a small penalty for rough filters.

sharp = digits.load(np.float64)[0].images[:64]
true = np.outer([1, 2, 3, 2, 0], [0, 1, 2, 4, 1]).astype(float)
true = true / true.sum()
blurred = cg.conv(sharp, true[None, None], padding=2) + 0.02 * random.randn(*sharp.shape)


def loss(w):
    difference = conv(sharp, w, padding=2) - blurred
    return np.mean(difference**2) + 1e-5 * np.sum((w[..., 1:] - w[..., :-1]) ** 2)


w, speed, losses = np.zeros((1, 1, 5, 5)), 0, []
step_of = value_and_grad(loss)
for _ in trange(20 if options.quick else 100, desc="gradient descent", unit=" steps"):
    value, gradient = step_of(w)
    speed = 0.8 * speed - 0.1 * gradient
    w = w + speed
    losses.append(value)
print(f"loss: {losses[0]:.2e} to {losses[-1]:.2e}; largest error of the filter: {abs(w[0, 0] - true).max():.3f}")

# %%
# Picture
# -------

figure, axes = plt.subplots(1, 5, figsize=(13, 3), layout="constrained", width_ratios=(1, 1, 1, 1, 1.7))
pictures = {"sharp": (sharp[0, 0], "gray_r"), "blurred": (blurred[0, 0], "gray_r")}
pictures |= {"the blur": (true, "viridis"), "the filter that is found": (w[0, 0], "viridis")}
for place, (title, (values, colors)) in zip(axes, pictures.items(), strict=False):
    limits = {"vmin": 0, "vmax": 1 if colors == "gray_r" else true.max()}
    shown = place.imshow(values, cmap=colors, **limits)
    place.set(title=title, xticks=[], yticks=[])
figure.colorbar(shown, ax=axes[3], label="weight")
axes[4].semilogy(losses)
axes[4].set(title="Gradient descent", xlabel="step", ylabel="loss")
axes[4].grid(alpha=0.3)
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
