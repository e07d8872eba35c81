"""The benchmarks for a machine with a GPU: ratios to cuDNN, and every variant of every kernel against the CPU."""
