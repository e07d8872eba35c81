"""The mutants of ``tests/mutants`` still fit the sources: each text to replace occurs once. CI runs the mutants."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from mutants.schemata import DROPPED, Mutant, place_of, with_mutants
from mutants.tables import MUTANTS

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]


def test_mutants_fit():
    of_files = defaultdict(list)
    for number, mutant in enumerate(MUTANTS, 1):
        of_files[mutant.file].append((number, mutant))
    for file, numbered in of_files.items():
        text = (ROOT / file).read_text()
        wrong = with_mutants(text, file, numbered)
        assert wrong.count("mutant") > text.count("mutant") + len(numbered)
        if file.endswith(".py"):
            ast.parse(wrong, file)


def test_expressions_are_one_each():
    """Each mutant must be one expression: a choice between two lists of arguments would be one argument."""
    for mutant in MUTANTS:
        if mutant.file.endswith(".py") and mutant.new is not DROPPED:
            for text in (mutant.old, mutant.new):
                call = ast.parse(f"f({text})", mode="eval").body
                assert len(call.args) == 1 and not call.keywords, mutant


def test_names_are_their_own():
    assert len({(mutant.file, mutant.name) for mutant in MUTANTS}) == len(MUTANTS)


def test_tests_are_there():
    tests = Path(__file__).parents[1]
    for file, _, function in {part.partition("::") for mutant in MUTANTS for part in mutant.tests.split()}:
        (path,) = tests.rglob(file)
        assert f"def {function.partition('[')[0]}" in path.read_text()


@pytest.mark.parametrize("text", ("a = 1\n", "a = b\nc = b\n"))
def test_text_that_has_changed_is_seen(text):
    with pytest.raises(ValueError, match=r"x\.py has changed, update the mutant 'wrong'"):
        place_of(Mutant("wrong", "x.py", "b", "c", ""), text)


def test_overlap_is_seen():
    mutants = [Mutant(f"wrong {old}", "x.py", old, "0", "") for old in ("1 + 2", "2 + 3")]
    with pytest.raises(ValueError, match=r"'wrong 1 [+] 2' overlaps another one"):
        with_mutants("import math\na = 1 + 2 + 3\n", "x.py", enumerate(mutants, 1))


def test_choices():
    """Each number must select its own mistake. Other numbers must select none."""
    source = "import math\na = []\nfor i in range(3):\n    a.append(math.factorial(i))\nb = len(a) == 3\n"
    mutants = [
        Mutant("a statement", "x.py", "a.append(math.factorial(i))", DROPPED, ""),
        Mutant("an expression", "x.py", "range(3)", "range(2)", ""),
        Mutant("a condition", "x.py", "len(a) == 3", "False", ""),
    ]
    text = with_mutants(source, "x.py", enumerate(mutants, 1))
    text = text.replace("from convgrad_cy import _mutant\n", "")
    for number, expected in enumerate((([1, 1, 2], True), ([], False), ([1, 1], False), ([1, 1, 2], False))):
        names = {"_mutant": type("_mutant", (), {"number": number})}
        exec(text, names)
        assert (names["a"], names["b"]) == expected
