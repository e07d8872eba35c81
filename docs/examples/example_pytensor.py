"""
An Op for PyTensor
==================

PyTensor, which PyMC uses, compiles symbolic graphs. An Op of thirty lines gives it the convolutions of this package.
The gradient of each of three kinds is made of the other two, so that gradients of gradients exist, too. PyTensor's own
``verify_grad`` compares them with finite differences.

The example trains a small network on handwritten digits.

Run it with ``python docs/examples/example_pytensor.py [PICTURE.png]``. It needs more than NumPy: ``pip install pytensor
matplotlib tqdm``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.gradient import DisconnectedType, verify_grad
from pytensor.graph import Apply, Op
from tqdm import trange

import convgrad_cy as cg
from convgrad_cy.cli.demo import digits

parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="few steps")
options = parser.parse_args()
MODE = Mode(linker="py", optimizer="fast_compile")  # needs no compiler

# %%
# The Op
# ------
#
# ``kind`` is the name of a function of this package. The two gradients take the shape of their result as a third input.


class Conv(Op):
    __props__ = ("kind", "keywords")

    def __init__(self, kind="conv", **keywords):
        self.kind, self.keywords = kind, tuple(keywords.items())

    def make_node(self, a, b, *shape):
        a, b = pt.as_tensor(a), pt.as_tensor(b)
        return Apply(self, [a, b, *map(pt.as_tensor, shape)], [pt.tensor(dtype=a.dtype, shape=(None,) * a.ndim)])

    def perform(self, node, inputs, outputs):
        a, b, *shape = inputs
        shape = [tuple(map(int, one)) for one in shape]
        outputs[0][0] = getattr(cg, self.kind)(a, b, *shape, **dict(self.keywords))

    def pullback(self, inputs, outputs, cotangents):
        (a, b), (g,) = inputs[:2], cotangents
        conv, data, filt = (
            Conv(f"conv{end}", **dict(self.keywords)) for end in ("", "_backward_data", "_backward_filter")
        )
        if self.kind == "conv":  # of x and w
            return [data(g, b, a.shape), filt(a, g, b.shape)]
        if self.kind == "conv_backward_data":  # of dy and w
            return [conv(g, b), filt(g, a, b.shape), DisconnectedType()()]
        return [data(b, g, a.shape), conv(a, g), DisconnectedType()()]  # of x and dy

    def connection_pattern(self, node):
        return [[True], [True], [False]][: len(node.inputs)]


# %%
# The check
# ---------
#
# The gradient, and the gradient of a gradient.

random = np.random.default_rng(0)
x, w = random.standard_normal((2, 4, 6, 7)), random.standard_normal((6, 2, 3, 2))
conv = Conv(stride=(2, 1), padding=((1, 0), (2, 1)), dilation=(1, 2), groups=2)
verify_grad(conv, [x, w], rng=random, mode=MODE)
verify_grad(lambda x, w: pt.grad((conv(x, w) ** 3).sum(), w), [x, w], rng=random, mode=MODE)
print("verify_grad: first and second derivatives agree with finite differences")

# %%
# Digits
# ------

train_set, test_set = digits.load()
images, labels = pt.tensor4("images", dtype="float32"), pt.lvector("labels")
shapes = (16, 1, 3, 3), (32, 16, 3, 3), (32 * 16, 10)
values = [
    random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:] if len(shape) > 2 else shape[:1])) for shape in shapes
]
first, second, last = weights = [pytensor.shared(value.astype("float32")) for value in values]
hidden = pt.maximum(Conv(padding=1)(images, first), 0)
hidden = pt.maximum(Conv(padding=1, stride=2)(hidden, second), 0)
scores = hidden.reshape((hidden.shape[0], -1)) @ last
scores = scores - pt.log(pt.exp(scores).sum(axis=1, keepdims=True))
loss = -scores[pt.arange(labels.shape[0]), labels].mean()

updates = []
for weight, gradient in zip(weights, pt.grad(loss, weights), strict=True):
    speed = pytensor.shared(np.zeros_like(weight.get_value()))
    faster = np.float32(0.9) * speed - np.float32(0.03) * gradient
    updates += [(speed, faster), (weight, weight + faster)]
train = pytensor.function([images, labels], loss, updates=updates, mode=MODE)
recognise = pytensor.function([images], scores.argmax(axis=1), mode=MODE)

losses = []
for _ in trange(20 if options.quick else 300, desc="training", unit=" steps"):
    batch = random.integers(0, len(train_set.labels), 32)
    losses.append(float(train(train_set.images[batch], train_set.labels[batch])))
found = recognise(test_set.images)
print(
    f"loss: {losses[0]:.2f} to {losses[-1]:.2f}; {np.mean(found == test_set.labels):.1%} of the test digits are right"
)

# %%
# Picture
# -------

figure = plt.figure(figsize=(12, 3.6), layout="constrained")
left, middle, right = figure.subfigures(1, 3, width_ratios=(1.3, 1, 1.2))
axes = left.subplots()
axes.plot(losses)
axes.set(title="Training", xlabel="step", ylabel="loss")
axes.grid(alpha=0.3)
middle.suptitle("The 16 filters of the first layer")
for place, values in zip(middle.subplots(4, 4).flat, first.get_value()[:, 0], strict=True):
    place.imshow(values, cmap="RdBu", vmin=-1, vmax=1)
    place.set_axis_off()
right.suptitle("Test digits and their classes (wrong: red)")
order = np.argsort(found == test_set.labels, kind="stable")[[*range(5), *range(-10, 0)]]  # five that are wrong first
for place, number in zip(right.subplots(3, 5).flat, order, strict=True):
    place.imshow(test_set.images[number, 0], cmap="gray_r")
    place.set_title(
        str(found[number]), color="black" if found[number] == test_set.labels[number] else "red", fontsize=9
    )
    place.set_axis_off()
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
