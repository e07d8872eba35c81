"""The benchmark suite: ``python -m bench`` times this package and the libraries that people choose between."""
