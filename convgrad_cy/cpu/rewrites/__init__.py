"""Rewrites: a task becomes a task for another problem, with copies of arrays before and after its kernel."""
