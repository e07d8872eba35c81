"""The command line: what ``python -m convgrad_cy`` does, a module for each command."""
