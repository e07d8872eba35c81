"""
Convolutions of sigpy and their adjoints
========================================

sigpy computes its convolutions on a CPU with one call of SciPy for each pair of channels. The three functions below
replace those loops by calls of this package. They have the names, arguments and results of the functions in
``sigpy/conv.py``, so they are a patch that could be sent.

The example compares them with sigpy's own, checks that the adjoints are adjoints, and recovers a picture from eight
blurred ones with sigpy's solver.

Run it with ``python docs/examples/example_sigpy.py [PICTURE.png]``. It needs more than NumPy: ``pip install sigpy
matplotlib tqdm``.
"""

import argparse
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import sigpy
from sigpy import conv
from tqdm import tqdm

import convgrad_cy as cg
from convgrad_cy.cli.demo import digits

parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="a small picture and few iterations")
options = parser.parse_args()
random = np.random.default_rng(0)

# %%
# The patch
# ---------
#
# A convolution of signal processing is a correlation with the flipped filter. A complex array is two real ones. sigpy
# would keep its loops for data of four axes and for filters that are larger than the data.


def _problem(data_shape, filt_shape, mode, strides, multi_channel):
    """The shapes of x, w and y, the keywords of convgrad_cy, and the shape of sigpy's output."""
    _, b, B, m, n, s, c_i, c_o, p = conv._get_convolve_params(data_shape, filt_shape, mode, strides, multi_channel)
    keywords = {"stride": s, "padding": tuple(n_d - 1 if mode == "full" else 0 for n_d in n)}
    return (B, c_i, *m), (c_o, c_i, *n), (B, c_o, *p), keywords, (*b, *(c_o,) * multi_channel, *p)


def _flip(filt):
    return filt[(..., *(slice(None, None, -1),) * (filt.ndim - 2))]


def _complex(function, one, other):
    if not np.iscomplexobj(one) and not np.iscomplexobj(other):
        return function(one, other)
    real = function(one.real, other.real) - function(one.imag, other.imag)
    return real + 1j * (function(one.imag, other.real) + function(one.real, other.imag))


def _convolve(data, filt, mode="full", strides=None, multi_channel=False):
    x, w, _, keywords, shape = _problem(data.shape, filt.shape, mode, strides, multi_channel)
    output = _complex(lambda a, f: cg.conv(a, f, **keywords), data.reshape(x), _flip(filt.reshape(w)))
    return output.reshape(shape)


def _convolve_data_adjoint(output, filt, data_shape, mode="full", strides=None, multi_channel=False):
    x, w, y, keywords, _ = _problem(data_shape, filt.shape, mode, strides, multi_channel)
    filt = _flip(filt.reshape(w)).conj()
    data = _complex(lambda a, f: cg.conv_backward_data(a, f, x, **keywords), output.reshape(y), filt)
    return data.reshape(data_shape)


def _convolve_filter_adjoint(output, data, filt_shape, mode="full", strides=None, multi_channel=False):
    x, w, y, keywords, _ = _problem(data.shape, filt_shape, mode, strides, multi_channel)
    data = data.reshape(x).conj()
    filt = _complex(lambda a, d: cg.conv_backward_filter(d, a, w, **keywords), output.reshape(y), data)
    return _flip(filt).reshape(filt_shape)


OURS = {each.__name__: each for each in (_convolve, _convolve_data_adjoint, _convolve_filter_adjoint)}
OWN = {name: getattr(conv, name) for name in OURS}


def use(functions):
    for name, function in functions.items():
        setattr(conv, name, function)


# %%
# The same results
# ----------------
#
# Real and complex arrays with one to three axes, both modes, strides, with and without channels.

CASES = (
    ((2, 50), (7,), "full", None, False),
    ((20, 30), (5, 4), "valid", (2, 1), False),
    ((2, 3, 20, 21), (4, 3, 5, 3), "full", (2, 3), True),
    ((2, 9, 10, 11), (3, 2, 3, 3, 3), "valid", None, True),
)
worst = 0
for data_shape, filt_shape, *how in tqdm(CASES, desc="comparison", unit=" cases"):
    for dtype in (np.float64, np.complex128):
        data, filt = (random.standard_normal((2, *shape)) for shape in (data_shape, filt_shape))
        data, filt = (a[0] + 1j * a[1] if dtype is np.complex128 else a[0] for a in (data, filt))
        results = []
        for functions in (OWN, OURS):
            use(functions)
            output = conv.convolve(data, filt, *how)
            results.append([output, conv.convolve_data_adjoint(output, filt, data.shape, *how)])
            results[-1].append(conv.convolve_filter_adjoint(output, data, filt.shape, *how))
        worst = max(worst, *(abs(own - ours).max() / abs(own).max() for own, ours in zip(*results, strict=True)))
        output, *adjoints = results[1]  # <A x, A x> = <x, A* A x>, for x the data and for x the filter
        for x, adjoint in zip((data, filt), adjoints, strict=True):
            assert np.isclose(np.vdot(output, output), np.vdot(x, adjoint))
print(f"largest difference from sigpy's own: {worst:.0e}; all adjoints are adjoint")

# %%
# A picture from eight blurred ones
# ---------------------------------
#
# sigpy's conjugate gradients call the convolution and its adjoint in each iteration.

edge = 6 if options.quick else 20
pictures = np.pad(digits.load(np.float64)[0].images[: edge**2, 0], ((0, 0), (1, 1), (1, 1))).reshape(edge, edge, 10, 10)
sharp = pictures.transpose(0, 2, 1, 3).reshape(1, 10 * edge, 10 * edge)
filters = random.random((8, 1, 7, 7)) ** 4
filters /= filters.sum(axis=(2, 3), keepdims=True)
blurred = conv.convolve(sharp, filters, "valid", multi_channel=True)
blurred += 0.01 * random.standard_normal(blurred.shape)
seconds, found = {}, {}
for name, functions in (("sigpy's own", OWN), ("convgrad_cy", OURS)):
    use(functions)
    start = perf_counter()
    blur = sigpy.linop.ConvolveData(sharp.shape, filters, "valid", multi_channel=True)
    solver = sigpy.app.LinearLeastSquares(blur, blurred, lamda=1e-3, max_iter=5 if options.quick else 40)
    found[name], seconds[name] = solver.run(), perf_counter() - start
difference = abs(found["sigpy's own"] - found["convgrad_cy"]).max()
print("; ".join(f"{name}: {value:.2f} s" for name, value in seconds.items()), f"; largest difference: {difference:.0e}")

figure, axes = plt.subplots(1, 4, figsize=(14, 3.7), layout="constrained")
shown = {"sharp": sharp[0], "one of eight blurred": blurred[0], "recovered": found["convgrad_cy"][0]}
for place, (title, picture) in zip(axes, shown.items(), strict=False):
    place.imshow(picture[:60, :60], cmap="gray_r", vmin=0, vmax=picture[:60, :60].max())
    place.set(title=title, xticks=[], yticks=[])
axes[3].bar_label(axes[3].bar(seconds.keys(), seconds.values(), color=["gray", "C0"]), fmt="%.2f s")
axes[3].set(title="Time to recover it", ylabel="seconds")
axes[3].margins(y=0.15)
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
