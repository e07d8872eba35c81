"""``python -m convgrad_cy demo``: a convolutional network on handwritten digits, with NumPy and this package alone.

Read ``network.py`` first: it shows how the six operations make layers with a backward pass.
"""
