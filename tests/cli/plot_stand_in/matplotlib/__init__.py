"""As much of matplotlib as ``demo --plot`` calls, for tests of where the picture goes; it draws nothing."""
