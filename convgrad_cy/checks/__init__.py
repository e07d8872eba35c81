"""The checks of all arguments. Errors of a caller are raised here and nowhere else."""
