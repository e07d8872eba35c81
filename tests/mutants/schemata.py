"""Mutant schemata: sources in which each mistake stands beside what is right, and a number chooses while they run.

So all mutants need one build. The number 0 chooses what is right everywhere.
"""

import re
from typing import NamedTuple

#: In the place of ``Mutant.new``: the statement ``old`` is left out.
DROPPED = None


class Mutant(NamedTuple):
    """One mistake in one place.

    Attributes
    ----------
    name : str
        What is wrong.
    file : str
        Below the root of the project.
    old, new : str
        Of C, Cython or Python: an expression in parentheses of its own, or, where ``new`` is DROPPED, a statement.
        ``old`` has to be in the file exactly once.
    tests : str
        Parts of the names of tests, of which one has to fail: those of the first part are run first.
    within : str
        Text around ``old`` that is in the file exactly once, where ``old`` by itself is not.
    needs : str
        What the machine must have: "pairs" (of bfloat16), "lines" (vectors as long as a line of the cache); or "".
    """

    name: str
    file: str
    old: str
    new: str | None
    tests: str
    within: str = ""
    needs: str = ""


def mutants_of(file, tests, *rows, needs=""):
    """Mutants of one file for the same tests; a row is (name, old, new), or (name, old, new, within)."""
    return [Mutant(name, file, old, new, tests, *within, needs=needs) for name, old, new, *within in rows]


def place_of(mutant, text):
    """Where ``old`` begins in the text of its file."""
    around = mutant.within or mutant.old
    for whole, part in ((text, around), (around, mutant.old)):
        if whole.count(part) != 1:
            raise ValueError(
                f"{mutant.file} has changed, update the mutant {mutant.name!r}: {part!r} must be there once, "
                f"not {whole.count(part)} times"
            )
    return text.index(around) + around.index(mutant.old)


def _choice(mutant, number, indent):
    """Text that is ``new`` where this number is chosen, else ``old``."""
    if mutant.file.endswith((".c", ".h")):
        if mutant.new is DROPPED:
            return f"if (convgrad_mutant != {number}) {mutant.old}"
        return f"(convgrad_mutant == {number} ? ({mutant.new}) : ({mutant.old}))"
    chosen = "_mutant.number" if mutant.file.endswith(".py") else "convgrad_mutant"
    if mutant.new is DROPPED:
        return f"if {chosen} != {number}:\n{indent}    {mutant.old}"
    if mutant.new in ("True", "False"):  # of one type with the condition, for Cython
        return f"(({mutant.old}) {'or' if mutant.new == 'True' else 'and not'} {chosen} == {number})"
    return f"(({mutant.new}) if {chosen} == {number} else ({mutant.old}))"


def _with_number(text, file):
    """The text of a file, after it has learnt of the number."""
    if file.endswith((".c", ".h")):
        return f'#include "mutant.h"\n{text}'
    line = "from convgrad_cy import _mutant" if file.endswith(".py") else "from mutant cimport convgrad_mutant"
    return re.sub(r"^(?=from |import |cimport |cdef )", f"{line}\n", text, count=1, flags=re.MULTILINE)


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
