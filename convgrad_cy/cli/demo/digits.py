"""The handwritten digits of ``convgrad_cy/data``, split for training and testing."""

from importlib.resources import files
from typing import NamedTuple

import numpy as np

TEST_SIZE = 450


class Digits(NamedTuple):
    """Images of shape ``(n, 1, 8, 8)`` with values from 0 to 1, and the digits that they show."""

    images: np.ndarray
    labels: np.ndarray


def load(dtype=np.float32):
    """``(train, test)``: 1,347 and 450 digits, always the same ones, each class in the same proportion."""
    with files("convgrad_cy").joinpath("data/digits.npz").open("rb") as file, np.load(file) as arrays:
        images, labels = arrays["images"], arrays["labels"].astype(np.int64)
    images = (images[:, None] / 16).astype(dtype)
    # Shuffled, sorted by class (stable: still shuffled within one) and taken at equal distances: a stratified sample.
    shuffled = np.random.default_rng(0).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    in_test = np.zeros(len(labels), bool)
    in_test[by_class[np.arange(TEST_SIZE) * len(labels) // TEST_SIZE]] = True
    return Digits(images[~in_test], labels[~in_test]), Digits(images[in_test], labels[in_test])
