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


@pytest.fixture
def no_choices():
    """No choice of ``enable(benchmark=...)`` is known before and after a test, and PyTorch has one thread.

    On a busy machine, several threads wait for each other longer than the pauses of planted.py.
    """
    import planted
    import torch

    torch.set_num_threads(1)
    planted.forget()
    yield
    planted.forget()
