"""The command line ``python -m convgrad_cy``: a module for each command."""
