"""Training steps of PyTorch."""
