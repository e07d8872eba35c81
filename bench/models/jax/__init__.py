"""Networks of JAX alone, without a library of layers.

A network is a function of ``weights`` and a batch, channels last. It asks ``weights`` for its arrays in the same order
each time, and lets ``weights.convolution`` compute its convolutions. layers.py has the classes of ``weights``.
"""
