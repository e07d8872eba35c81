"""Refuse a Python without PyTorch, or with one that is too old."""

#: The first release whose dispatcher hands out the kernel of an operator (``torch.library.get_kernel``).
OLDEST = (2, 9)

try:
    import torch
except ImportError as error:
    raise ImportError("convgrad_cy.torch needs PyTorch 2.9 or newer: pip install torch") from error

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
    raise ImportError(f"convgrad_cy.torch needs PyTorch 2.9 or newer, not {torch.__version__}")
