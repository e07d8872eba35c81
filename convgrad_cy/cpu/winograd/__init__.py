"""Winograd's algorithm: fewer products, for the price of transforms (``pyx/winograd*.pxd``)."""
