"""The stages of a plan that all families share: a task, its walks and sums, and the job that is checked and run."""
