"""Results whose sums have no terms: zeros of any shape."""


class Zeros:
    """A work, like ``_repeat.Work``, that fills a result with zeros."""

    __slots__ = ()

    def run(self, first, second, result, before=None):
        """Write the result. Before the first store, ``before`` is called."""
        if before is not None:
            before()
        result[...] = 0
