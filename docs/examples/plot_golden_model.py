"""
Find a fault in a hand-written kernel
=====================================

You have written a kernel for an accelerator, and it passes your tests. Does it compute the right numbers at every
place, and are its sums as accurate as they should be? Here the kernel is a data gradient in float16, written with
im2col. It has two faults: an index that is wrong by one at a border, and sums in float16 instead of float32.

The golden model finds both. Integers find the index: their exact results fit into float16, so that every difference is
a fault. Real numbers find the sums: the error of an element has a bound that follows from its own products.

Run it with ``python docs/examples/plot_golden_model.py [PICTURE.png]``. It needs NumPy, matplotlib and convgrad_cy.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import convgrad_cy as cg

try:
    from tqdm import tqdm
except ImportError:  # the progress bar is optional

    def tqdm(steps, **options):
        return steps


parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="a small layer")
options = parser.parse_args()

# %%
# The kernel under test
# ---------------------
#
# A gradient with respect to the input, for stride 1: pad ``dy``, collect the window of each position as a column
# (im2col), and multiply with the flipped filter. ``off_by_one`` loses the last row of ``dy`` in the columns.
# ``sums`` is the type in which products are added.


def my_data_gradient(dy, w, padding, off_by_one, sums):
    channels, kernel = w.shape[1], w.shape[-1]
    border = kernel - 1 - padding
    padded = np.pad(dy, ((0, 0), (0, 0), (border, border), (border, border)))
    if off_by_one:
        padded[:, :, -border - 1] = 0
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, dy.shape[1] * kernel**2)
    filters = w[:, :, ::-1, ::-1].transpose(0, 2, 3, 1).reshape(-1, channels)
    dx = np.zeros((len(columns), channels), sums)
    for k in tqdm(range(len(filters)), desc=f"kernel, sums in {np.dtype(sums)}", unit=" products"):
        dx += columns[:, k, None].astype(sums) * filters[k].astype(sums)
    rows, width = windows.shape[2:4]
    return dx.astype(np.float16).reshape(len(dy), rows, width, channels).transpose(0, 3, 1, 2)


# %%
# Integers: every difference is a fault
# -------------------------------------
#
# ``algorithm="direct"`` makes each element the sum of its own products. With integers up to 3 all sums are exact.

random = np.random.default_rng(0)
batch, channels, size = (1, 8, 12) if options.quick else (2, 32, 24)
x_shape, w_shape = (batch, channels, size, size), (channels, channels, 3, 3)


def gradients(dy, w, **faults):
    """The golden model's gradient and the kernel's."""
    golden = cg.conv_backward_data(dy, w, x_shape, padding=1, algorithm="direct")
    return golden, my_data_gradient(dy, w, 1, **faults)


dy, w = (random.integers(-3, 4, shape).astype(np.float16) for shape in (x_shape, w_shape))
golden, mine = gradients(dy, w, off_by_one=True, sums=np.float32)
wrong = 100 * (golden != mine).mean(axis=(0, 1))
rows = np.flatnonzero(wrong.any(axis=1))
print(f"integers: {np.mean(golden != mine):.1%} of the elements are wrong, all in rows {rows.min()} to {rows.max()}")

golden, mended = gradients(dy, w, off_by_one=False, sums=np.float32)
print(f"integers, with the index mended: {np.mean(golden != mended):.1%} of the elements are wrong")

# %%
# Real numbers: the error has a bound
# -----------------------------------
#
# An element is a sum of K products. Added in float32, it may be wrong by (K + 1) epsilon times the sum of their
# magnitudes, and then it is rounded once to float16. The same gradient in float64 gives the exact result and the
# magnitudes.

dy, w = (random.standard_normal(shape).astype(np.float16) for shape in (x_shape, w_shape))
exact = cg.conv_backward_data(dy.astype(float), w.astype(float), x_shape, padding=1)
magnitudes = cg.conv_backward_data(abs(dy.astype(float)), abs(w.astype(float)), x_shape, padding=1)
sums = (w_shape[0] * 9 + 1) * np.finfo(np.float32).eps * magnitudes
bound = sums + np.finfo(np.float16).eps / 2 * (abs(exact) + sums) + 2.0**-25

errors = {}
for name, kind in (("golden model", None), ("sums in float32", np.float32), ("sums in float16", np.float16)):
    golden, mine = gradients(dy, w, off_by_one=False, sums=kind or np.float32)
    errors[name] = (abs((golden if kind is None else mine) - exact) / bound).ravel()
    print(f"{name}: the largest error is {errors[name].max():.2f} times the bound")

# %%
# Picture
# -------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
shown = left.imshow(wrong, cmap="Reds", vmin=0, vmax=100)
figure.colorbar(shown, ax=left, label="wrong elements at a position (%)")
left.set(title="Integers: the index is wrong at a border", xlabel="column of dx", ylabel="row of dx")
bins = np.geomspace(1e-3, 100, 80)
for name, values in errors.items():
    style = {"color": "black", "linewidth": 1.5} if name == "golden model" else {"alpha": 0.6}
    right.hist(values, bins, histtype="step" if name == "golden model" else "stepfilled", label=name, **style)
right.axvline(1, color="red", linestyle="--")
right.text(1.1, 0.95, "the bound", color="red", transform=right.get_xaxis_transform())
right.set(
    title="Real numbers: sums in float16 exceed the bound", xlabel="error / bound", ylabel="elements", xscale="log"
)
right.legend(loc="upper left")
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
