"""Values that are computed once and kept, and their lock, which works after a fork, too."""
