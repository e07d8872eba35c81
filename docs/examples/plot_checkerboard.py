"""
Checkerboards of a transposed convolution
=========================================

A transposed convolution adds shifted copies of its filter. If the stride does not divide the size of the filter, the
copies overlap unevenly, and a constant input gives a pattern. The pictures show the overlap for four sizes of filters
with stride 2. Sizes 2 and 4 are even in the middle.
"""

import matplotlib.pyplot as plt
import numpy as np

import convgrad_cy as cg

x = np.ones((1, 1, 6, 6), np.float32)
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
for taps, axis in zip((2, 3, 4, 5), axes, strict=True):
    w = np.ones((1, 1, taps, taps), np.float32)
    y = cg.conv_transpose(x, w, stride=2)[0, 0]
    picture = axis.imshow(y, cmap="viridis", vmin=0, vmax=9)
    axis.set(title=f"{taps}×{taps} filter", xticks=[], yticks=[])
figure.colorbar(picture, ax=axes, label="terms of an output element")

# %%
# The gradient of the filter
# --------------------------
# A constant output gradient tells each element of the filter how many terms it takes part in. All have the same number.

dy = np.ones_like(y)[None, None]
print(cg.conv_transpose_backward_filter(x, dy, w.shape, stride=2)[0, 0])
