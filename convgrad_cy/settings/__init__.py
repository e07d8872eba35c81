"""Settings of calls: by the process, by its environment, or by a block of code around the call."""
