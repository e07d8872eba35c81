"""The commands of ``python -m convgrad_cy``, but for the demo, which is a folder of its own."""
