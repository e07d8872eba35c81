"""The error that the accuracy contract allows for each element (README.md, section "Accuracy and reproducibility")."""

import numpy as np

#: The error that "auto" may add, relative to the largest element of the result.
AUTO = 2e-5


def allowed(storage, algorithm, exact, magnitudes, terms):
    """The allowed error of each element of a result.

    Parameters
    ----------
    storage : Storage
    algorithm : str
        "direct" or "auto".
    exact : numpy.ndarray
        The result, computed in float64.
    magnitudes : numpy.ndarray
        The sums of the absolute values of the products.
    terms : int
        The number of products of an element, or more.
    """
    error = (terms + 1) * storage.compute_epsilon * magnitudes
    if storage.name == "float64":
        return error
    if algorithm == "auto":
        error = np.maximum(error, AUTO * np.abs(exact).max(initial=0))
    # The sum is rounded once to a narrower type. For float32 the sum has this type already.
    if storage.epsilon > storage.compute_epsilon:
        error = error + storage.epsilon / 2 * (np.abs(exact) + error) + storage.smallest / 2
    return error
