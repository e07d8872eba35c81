"""The sum as the definition has it, in windows of the source and blocks of the filter (``pyx/``)."""
