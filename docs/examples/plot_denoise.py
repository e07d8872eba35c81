"""
Denoise a picture with a decoder
================================

A network learns to remove noise from pictures. An encoder of convolutions with stride 2 describes a picture by fewer
numbers, which have no room for noise, and a decoder of transposed convolutions draws the picture from them. The network
is trained on random landscapes, and then sees a new one.

The layers, their gradients and the optimizer are the ones of ``python -m convgrad_cy demo``: NumPy and this package.

Run it with ``python docs/examples/plot_denoise.py [PICTURE.png]``. It needs NumPy, matplotlib and convgrad_cy.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from convgrad_cy.cli.demo.network import Adam, Conv, ConvTranspose, ReLU, Sequence

try:
    from tqdm import trange
except ImportError:  # the progress bar is optional

    def trange(steps, **options):
        return range(steps)


parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="few steps on a small picture")
options = parser.parse_args()
random = np.random.default_rng(0)

# %%
# Pictures
# --------
#
# No photograph comes with the package, so each landscape is drawn from random waves: a sky with clouds and a sun, three
# ranges of hills, and a lake that mirrors them.


def waves(shape, exponent):
    """Smooth random numbers from 0 to 1: long waves are higher than short ones."""
    frequencies = np.sqrt(sum(axis**2 for axis in np.meshgrid(*map(np.fft.fftfreq, shape), indexing="ij")))
    frequencies.flat[0] = np.inf
    field = np.fft.ifftn(np.fft.fftn(random.standard_normal(shape)) / frequencies**exponent).real
    return (field - field.min()) / np.ptp(field)


def color(red, green, blue):
    return np.array([red, green, blue])[:, None, None]


#: Height, roughness and color of each range of hills, from far to near.
HILLS = (0.42, 1.5, (0.45, 0.45, 0.6)), (0.5, 1.4, (0.3, 0.38, 0.36)), (0.58, 1.3, (0.16, 0.25, 0.14))


def landscape(size):
    """An array of shape (3, size, size): red, green and blue from 0 to 1."""
    y, x = np.mgrid[:size, :size] / size
    clouds = np.clip(2.2 * waves((size, size), 1.8) - 1, 0, 1) * (1 - y)
    picture = np.stack([0.35 + 0.55 * y, 0.5 + 0.3 * y, 0.85 - 0.1 * y]) + 0.4 * clouds
    left, top = random.uniform(0.2, 0.8), random.uniform(0.15, 0.3)
    picture += np.exp(-((x - left) ** 2 + (y - top) ** 2) / 0.002) * color(0.6, 0.5, 0.2)
    for height, rough, paint in HILLS:
        ridge = height + 0.22 * (waves((size,), rough) - 0.6)
        picture = np.where(y > ridge, color(*paint) * (0.75 + 0.5 * waves((size, size), 1.2)), picture)
    shore = int(0.68 * size)
    mirrored = picture[:, shore - 1 :: -1][:, : size - shore]
    picture[:, shore:] = mirrored * (0.72 + 0.15 * waves((size - shore, size), 1)) + color(0, 0.02, 0.08)
    return np.clip(picture, 0, 1).astype(np.float32)


def with_noise(pictures):
    return pictures + 0.12 * random.standard_normal(pictures.shape, np.float32)


# %%
# The network
# -----------

width, size, steps, batch = (16, 128, 40, 4) if options.quick else (32, 256, 800, 8)
network = Sequence(
    Conv(3, width, 4, random, np.float32, stride=2, padding=1),
    ReLU(),
    Conv(width, 2 * width, 4, random, np.float32, stride=2, padding=1),
    ReLU(),
    Conv(2 * width, 2 * width, 3, random, np.float32, padding=1),
    ReLU(),
    ConvTranspose(2 * width, width, 4, random, np.float32, stride=2, padding=1),
    ReLU(),
    ConvTranspose(width, 3, 4, random, np.float32, stride=2, padding=1),
)
print(f"{sum(parameter.value.size for parameter in network.parameters)} weights, {steps} steps of {batch} patches")

# %%
# Training
# --------
#
# The network sees patches with noise, and its drawings are compared with the same patches without noise. The gradient
# of the squared error goes back through all layers.


def psnr(picture, clean):
    """The distance of two pictures in dB: 6 dB more is half the error."""
    return -10 * np.log10(np.mean((picture - clean) ** 2))


pictures = np.stack([landscape(size) for _ in range(4 if options.quick else 24)])
clean = landscape(size)
noisy = with_noise(clean)
optimizer, history = Adam(network.parameters), []
bar = trange(steps, desc="training", unit=" steps")
for step in bar:
    tops, lefts = random.integers(0, size - 63, (2, batch))
    chosen = zip(random.integers(0, len(pictures), batch), tops, lefts, strict=True)
    patches = np.stack([pictures[n, :, top : top + 64, left : left + 64] for n, top, left in chosen])
    seen = with_noise(patches)
    error = network.forward(seen) - patches
    network.backward(error / batch)
    optimizer.step(3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps)))
    history.append(-10 * np.log10(np.mean(error**2)))
    if hasattr(bar, "set_postfix"):
        bar.set_postfix(PSNR=f"{history[-1]:.1f} dB", refresh=False)

denoised = network.forward(noisy[None])[0]
before, after = psnr(noisy, clean), psnr(denoised, clean)
print(f"a new picture: {before:.1f} dB with noise, {after:.1f} dB after the network")

# %%
# Picture
# -------

figure, axes = plt.subplots(1, 4, figsize=(14, 3.7), layout="constrained", width_ratios=(1, 1, 1, 1.1))
shown = {"a new picture": clean, f"with noise: {before:.1f} dB": noisy, f"denoised: {after:.1f} dB": denoised}
for place, (title, picture) in zip(axes, shown.items(), strict=False):
    place.imshow(np.clip(picture, 0, 1).transpose(1, 2, 0))
    place.set(title=title)
    place.set_axis_off()
axes[3].plot(history, linewidth=0.7, label="a step's patches")
axes[3].axhline(before, color="gray", linestyle="--", label="with noise")
axes[3].set(title="Training", xlabel="step", ylabel="PSNR (dB)", ylim=(min(before - 5, max(history) - 15), None))
axes[3].grid(alpha=0.3)
axes[3].legend(loc="lower right")
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
