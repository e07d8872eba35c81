"""The parts of planning that all families share: tasks, walks, sums, and the job that is checked and run."""
