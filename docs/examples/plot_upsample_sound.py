"""
Upsample a sound
================

A sound with 4,000 samples per second has no frequencies above 2 kHz. A network with a transposed convolution in 1-D
makes 16,000 samples per second from it, and learns to add the harmonics that are missing. It is trained on random notes
of a plucked string, and then hears a melody.

The layers are written with `convgrad_cy.conv`, `convgrad_cy.conv_transpose` and their gradients.

Run it with ``python docs/examples/plot_upsample_sound.py [PICTURE.png]``. It needs NumPy, matplotlib and convgrad_cy.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import convgrad_cy as cg
from convgrad_cy.cli.demo.network import Adam, Parameter

try:
    from tqdm import trange
except ImportError:  # the progress bar is optional

    def trange(steps, **options):
        return range(steps)


parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
parser.add_argument("picture", nargs="?", help="file for the picture; without it a window opens")
parser.add_argument("--quick", action="store_true", help="few steps of a small network")
options = parser.parse_args()
random = np.random.default_rng(0)

# %%
# Sounds
# ------
#
# A note has 20 harmonics. High ones are weaker and fade sooner.

RATE, FACTOR = 16_000, 4  # samples per second, and how many of them replace one


def note(frequency, seconds):
    t = np.arange(int(seconds * RATE))[:, None] / RATE
    k = np.arange(1, 21)
    waves = np.sin(2 * np.pi * frequency * k * t) * np.exp(-(1 + 0.8 * k) * t) / k
    return (waves * (frequency * k < RATE / 2)).sum(axis=1) * np.minimum(1, t[:, 0] / 0.004)


def resampled(sound, size):
    """Another number of samples, by the Fourier transform: frequencies that do not fit are lost."""
    return np.fft.irfft(np.fft.rfft(sound)[..., : size // 2 + 1], size) * (size / sound.shape[-1])


def pair(sounds):
    """(few samples, all samples), each with an axis for the channel."""
    few = resampled(sounds, sounds.shape[-1] // FACTOR)
    return few.astype(np.float32)[:, None], sounds.astype(np.float32)[:, None]


def pitch(semitones):
    return 220 * 2 ** (semitones / 12)


MELODY = (0, 4, 7, 12, 11, 7, 9, 5, 4, 2, 0)
few, melody = pair(np.concatenate([note(pitch(semitones), 0.32) for semitones in MELODY])[None])

# %%
# The network
# -----------
#
# Three convolutions of 9 taps and a transposed one of 16 taps and stride 4. ``forward`` keeps the inputs of the layers,
# and ``backward`` gives each filter its gradient. The result is added to the sound that is interpolated.

width, steps, batch = (16, 40, 8) if options.quick else (40, 800, 16)
SHAPES = (width, 1, 9), (width, width, 9), (width, width, 9), (width, 1, 16)
filters = [Parameter((random.standard_normal(s) * np.sqrt(2 / np.prod(s[-2:]))).astype(np.float32)) for s in SHAPES]
filters[-1].value *= 0.1
UP = {"stride": FACTOR, "padding": 6}


def forward(x):
    inputs = [x]
    for w in filters[:-1]:
        inputs.append(np.maximum(cg.conv(inputs[-1], w.value, padding="same"), 0))
    return cg.conv_transpose(inputs[-1], filters[-1].value, **UP), inputs


def backward(dy, inputs):
    last = filters[-1]
    dx, last.gradient = cg.conv_transpose_backward(dy, inputs[-1], last.value, **UP)
    for w, x, y in zip(filters[-2::-1], inputs[-2::-1], inputs[:0:-1], strict=True):
        dx, w.gradient = cg.conv_backward(dx * (y > 0), x, w.value, padding="same")


def interpolated(few):
    return resampled(few, few.shape[-1] * FACTOR).astype(np.float32)


# %%
# Training
# --------

pieces = np.stack([note(pitch(random.uniform(-2, 14)), 0.32)[-5120:] for _ in range(16 if options.quick else 200)])
inputs_of_all, targets = pair(pieces)
optimizer = Adam(filters)
for step in trange(steps, desc="training", unit=" steps"):
    chosen, begin = random.integers(0, len(pieces), batch), random.integers(0, 1280 - 320)
    x, wanted = inputs_of_all[chosen, :, begin : begin + 320], targets[chosen, :, 4 * begin : 4 * begin + 1280]
    added, inputs = forward(x)
    error = interpolated(x) + added - wanted
    error[..., :64] = error[..., -64:] = 0  # the ends of a piece know only one side
    backward(error / batch, inputs)
    optimizer.step(2e-3 * 0.5 * (1 + np.cos(np.pi * step / steps)))


def decibels(sound):
    """The ratio of signal to error."""
    return 10 * np.log10(np.mean(melody**2) / np.mean((sound - melody) ** 2))


base = interpolated(few)
found = base + forward(few)[0]
print(f"signal to error: {decibels(base):.1f} dB interpolated, {decibels(found):.1f} dB by the network")

# %%
# Picture
# -------

figure = plt.figure(figsize=(12, 6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(3, 2))
sounds = {"original, 16 kHz": melody, f"interpolated, {decibels(base):.1f} dB": base}
sounds[f"network, {decibels(found):.1f} dB"] = found
for place, (title, sound) in zip(top.subplots(1, 3, sharey=True), sounds.items(), strict=True):
    place.specgram(sound[0, 0], NFFT=512, Fs=RATE, noverlap=384, vmin=-110, vmax=-40, cmap="magma")
    place.set(title=title, xlabel="time (s)", ylim=(0, RATE / 2))
    place.label_outer()
top.axes[0].set(ylabel="frequency (Hz)")
place = bottom.subplots()
begin = int(0.32 * 4 * RATE) + 700
part = slice(begin, begin + 160)
for (title, sound), style in zip(sounds.items(), ("k-", "C0--", "C1-"), strict=True):
    place.plot(1e3 * np.arange(160) / RATE, sound[0, 0, part], style, label=title.split(",")[0], linewidth=1.5)
place.set(title="Ten milliseconds of a note", xlabel="time (ms)", ylabel="amplitude", ylim=(-2.2, 1.6))
place.legend(loc="lower center", ncols=3)
place.grid(alpha=0.3)
figure.savefig(options.picture, dpi=110) if options.picture else plt.show()
