"""Results whose sums have no term: zeros, whatever the shapes."""


class Zeros:
    """Fills a result with zeros: as ``_repeat.Work``."""

    __slots__ = ()

    def run(self, first, second, result, before=None):
        """Write the result; ``before`` is called before that."""
        if before is not None:
            before()
        result[...] = 0
