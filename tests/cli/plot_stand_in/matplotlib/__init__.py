"""The part of matplotlib that ``demo --plot`` calls, for tests of the picture's file. It draws nothing."""
