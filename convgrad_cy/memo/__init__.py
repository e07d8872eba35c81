"""Values that are computed once and kept, and the lock that threads and forked children share them by."""
