"""The results that a part of the check has compared."""

import numpy as np

#: Failures that a record tells; the others are counted.
TOLD = 3


class Tally:
    """Counts results of a part of the check and of a row of its table, and keeps the texts of the first failures."""

    def __init__(self, part, row):
        self.part, self.row = part, row
        self.checked, self.failed, self.told = 0, 0, []

    def check(self, passed, text):
        """Count one result; ``text`` is told if it has not passed."""
        self.checked += 1
        if not passed:
            self.failed += 1
            if len(self.told) < TOLD:
                self.told.append(text)

    def compare(self, call, found, expected, error):
        """Count a result: each number may differ by at most its ``error``. NaN always fails."""
        off = ~(np.abs(found - expected) <= error)
        if not off.any():
            return self.check(True, "")
        at = tuple(np.argwhere(off)[0])
        most = np.broadcast_to(error, off.shape)[at]
        limit = f" with an error of at most {most:.1g}" if most else ""
        place, count = ", ".join(map(str, at)), int(off.sum())
        self.check(
            False,
            f"{call}: element ({place}) is {found[at]:.9g}, must be {expected[at]:.9g}{limit}"
            f"; {count} of {off.size} elements are wrong",
        )

    def record(self, **more):
        """The counts as a dict, with further entries."""
        return {**vars(self), **more}
