"""Every test starts and ends with PyTorch's own kernels, and leaves PyTorch's number of threads unchanged.

All types are ours in the tests, also on a processor with instructions for which 16-bit types are left to PyTorch.
"""

import pytest


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    import torch

    import convgrad_cy.torch as override
    from convgrad_cy.cpu.machine import matrix_units

    monkeypatch.setattr(matrix_units, "units", frozenset)
    threads = torch.get_num_threads()
    override.disable()
    yield
    override.disable()
    torch.set_num_threads(threads)
