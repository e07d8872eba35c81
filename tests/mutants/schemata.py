"""Mutant schemata: sources that contain each mistake and the correct code, and a number that selects at run time.

All mutants then need only one build. The number 0 selects the correct code everywhere.
"""

import re
from typing import NamedTuple

#: A value of ``Mutant.new``: the statement ``old`` is left out.
DROPPED = None


class Mutant(NamedTuple):
    """One mistake in one place.

    Attributes
    ----------
    name : str
        A description of the mistake.
    file : str
        Path below the root of the project.
    old, new : str
        Texts in C, Cython or Python: an expression in parentheses of its own, or a statement if ``new`` is DROPPED.
        ``old`` has to be in the file exactly once.
    tests : str
        Parts of the names of tests. One of these tests has to fail. Tests of the first part run first.
    within : str
        Text around ``old`` that is in the file exactly once, if ``old`` itself is not.
    needs : str
        A property that the machine must have: "pairs" (of bfloat16), "lines" (vectors as long as a cache line); or "".
    """

    name: str
    file: str
    old: str
    new: str | None
    tests: str
    within: str = ""
    needs: str = ""


def mutants_of(file, tests, *rows, needs=""):
    """Mutants of one file for the same tests. A row is (name, old, new), or (name, old, new, within)."""
    return [Mutant(name, file, old, new, tests, *within, needs=needs) for name, old, new, *within in rows]


def place_of(mutant, text):
    """The position at which ``old`` begins in the text of its file."""
    around = mutant.within or mutant.old
    for whole, part in ((text, around), (around, mutant.old)):
        if whole.count(part) != 1:
            raise ValueError(
                f"{mutant.file} has changed, update the mutant {mutant.name!r}: {part!r} must be there once, "
                f"not {whole.count(part)} times"
            )
    return text.index(around) + around.index(mutant.old)


def _choice(mutant, number, indent):
    """Text that acts as ``new`` if this number is chosen, else as ``old``."""
    if mutant.file.endswith((".c", ".h")):
        if mutant.new is DROPPED:
            return f"if (convgrad_mutant != {number}) {mutant.old}"
        return f"(convgrad_mutant == {number} ? ({mutant.new}) : ({mutant.old}))"
    chosen = "_mutant.number" if mutant.file.endswith(".py") else "convgrad_mutant"
    if mutant.new is DROPPED:
        return f"if {chosen} != {number}:\n{indent}    {mutant.old}"
    if mutant.new in ("True", "False"):  # Cython needs the type of the condition
        return f"(({mutant.old}) {'or' if mutant.new == 'True' else 'and not'} {chosen} == {number})"
    return f"(({mutant.new}) if {chosen} == {number} else ({mutant.old}))"


def _with_number(text, file):
    """The text of a file that knows the number."""
    if file.endswith((".c", ".h")):
        return f'#include "mutant.h"\n{text}'
    line = "from convgrad_cy import _mutant" if file.endswith(".py") else "from mutant cimport convgrad_mutant"
    return re.sub(r"^(?=from \S+ c?import |c?import |cdef )", f"{line}\n", text, count=1, flags=re.MULTILINE)


def with_mutants(text, file, numbered):
    """The text of a file with all of its mutants, given as (number, mutant)."""
    places = sorted(((place_of(mutant, text), number, mutant) for number, mutant in numbered), reverse=True)
    after = len(text)
    for begin, number, mutant in places:
        end = begin + len(mutant.old)
        if end > after:
            raise ValueError(f"the mutant {mutant.name!r} overlaps another one")
        indent = re.match(r"[ ]*", text[text.rfind("\n", 0, begin) + 1 :]).group()
        text = text[:begin] + _choice(mutant, number, indent) + text[end:]
        after = begin
    return _with_number(text, file)
