"""Every test starts and ends with PyTorch's own kernels, and leaves PyTorch's number of threads unchanged."""

import pytest


@pytest.fixture(autouse=True)
def as_before():
    import torch

    import convgrad_cy.torch as override

    threads = torch.get_num_threads()
    override.disable()
    yield
    override.disable()
    torch.set_num_threads(threads)
