"""The parts of planning that all families share: tasks, walks, sums, and the pipeline that is checked and run."""
