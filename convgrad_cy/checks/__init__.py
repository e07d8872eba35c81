"""What arguments must be: here, and only here, errors of a caller are raised."""
