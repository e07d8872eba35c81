"""The words of documents, comments, docstrings and messages: a budget for each phrase that readers stumble over.

A count above its ceiling fails, and the message lists the places. Lower a ceiling when you have rewritten some of them;
never raise one. This file needs pytest and the standard library only: the stage lint of .ci/run runs it alone.
"""

import io
import os
import re
import subprocess
import tokenize
from functools import cache
from pathlib import Path
from shutil import which

import pytest

pytestmark = pytest.mark.checkout
ROOT = Path(__file__).parents[2]

#: The phrases, and what to write instead.
PHRASES = {
    "so many": r"\bso many\b",  # the number itself, or its name
    "those of": r"\b(?:those|that) of\b",  # repeat the noun
    "in the place of": r"\bin the place of\b",  # instead of
    "beside": r"\bbeside\b",  # next to, in addition to, compared with
    "likewise": r"\blikewise\b",  # also
    "of which": r"\bof which\b",  # a second sentence that repeats the noun
    "what": r"\bwhat\b(?! ?\?)",  # a noun
    "Of ...": r"(?:^|[.:!?] )Of (?!course\b)",  # subject first
    "What ...": r"(?:^|[.:!?] )What [^.?!]*(?:[.!]|$)",  # subject first; questions are welcome
    "The same, ...": r"^The same(?:[,.;:]| (?:as|but|by|for|in|of|to|where|with)\b)",  # say what the function does
    "0.7 of the time": r"(?:\d\.\d+|half|third|quarter|fifth|tenth) of (?:the|its) time\b",  # 1.4x faster, 30 % less
}

#: Ceilings for each phrase, by area. An area is the part of the tree below the folders that are named here.
AREAS = {
    "documents": ("",),  # all *.md
    "package": ("convgrad_cy",),
    "pyx": ("pyx", "setup.py"),
    "bench": ("bench",),
    "tests": ("tests",),
    "tools": (".ci", "packaging", "docs"),
}
CEILINGS = {
    # documents, package, pyx, bench, tests, tools
    "so many": (0, 0, 0, 0, 0, 0),
    "those of": (0, 0, 0, 0, 0, 0),
    "in the place of": (0, 0, 0, 0, 0, 0),
    "beside": (0, 0, 0, 0, 0, 0),
    "likewise": (0, 0, 0, 0, 0, 0),
    "of which": (0, 0, 0, 0, 0, 0),
    "what": (0, 3, 0, 6, 11, 0),
    "Of ...": (0, 0, 0, 0, 0, 0),
    "What ...": (0, 0, 0, 0, 0, 0),
    "The same, ...": (0, 0, 0, 0, 0, 0),
    "0.7 of the time": (0, 0, 0, 0, 0, 0),
}
#: Words of a sentence of a document.
LONGEST = 40
#: Subjects of commits after this one have at most SUBJECT characters.
FIRST, SUBJECT = "8e41745f8c9f5ec83db90c2737693c4b405ff3b4", 72


def python_texts(source):
    """(line, text) of each comment and each string of a Python file. Comments on neighbouring lines are one text."""
    comment = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("#: ")
            if comment and comment[0] + comment[2] == token.start[0]:
                comment = (comment[0], f"{comment[1]} {text}", comment[2] + 1)
            else:
                if comment:
                    yield comment[:2]
                comment = (token.start[0], text, 1)
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], re.sub(r"^[A-Za-z]*(?:\"{3}|'{3}|[\"'])|(?:\"{3}|'{3}|[\"'])$", "", token.string)
    if comment:
        yield comment[:2]


COMMENTS = {
    ".pyx": r'"""(.*?)"""|(?:^|\s)#:? ?([^\n]*(?:\n\s*#[^\n]*)*)',
    ".c": r"/\*(.*?)\*/|//+ ?([^\n]*(?:\n\s*//[^\n]*)*)",
    ".sh": r"(?:^|\s)# ()([^\n]*(?:\n\s*# [^\n]*)*)",
}
LANGUAGES = {
    **dict.fromkeys((".pyx", ".pxd"), ".pyx"),
    **dict.fromkeys((".c", ".h", ".cu", ".cuh", ".cpp", ".hpp"), ".c"),
    ".sh": ".sh",
}


def commented_texts(source, pattern):
    for found in re.finditer(pattern, source, re.DOTALL | re.MULTILINE):
        text = found[1] or found[2] or ""
        yield source.count("\n", 0, found.start()) + 1, re.sub(r"\n\s*(?://+|#:?|\*) ?", "\n", text).strip(" *\n")


def paragraphs(source):
    """(line, text) of each paragraph, item, heading and cell of a document; the code in blocks is left out."""
    source = re.sub(r"^( *)```.*?^ *```$", lambda block: "\n" * block[0].count("\n"), source, flags=re.DOTALL | re.M)
    source = re.sub(r"<!--.*?-->", "", source)
    begun, lines = 1, []
    for number, line in enumerate([*source.split("\n"), ""], 1):
        starts = re.match(r"\s*(?:[-*] |\d+\. |#+ |\||$)", line)
        if starts:
            if lines:
                yield begun, " ".join(lines)
            begun, lines = number, []
        if line.lstrip().startswith("|"):
            yield from ((number, part.strip()) for part in re.split(r"[|;]", line))
        elif line.strip():
            lines.append(re.sub(r"^\s*(?:[-*] |\d+\. |#+ )", "", line).strip())


@cache
def texts(area):
    """(file, line, text) of all that people read in an area."""
    found = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        is_document = path.suffix == ".md"
        if is_document != (area == "documents") or not name.startswith(AREAS[area]):
            continue
        source = path.read_text(encoding="utf-8")
        if is_document:
            read = paragraphs(source)
        elif path.suffix == ".py":
            read = python_texts(source)
        else:
            read = commented_texts(source, COMMENTS[LANGUAGES[path.suffix]])
        found += [(name, line, re.sub(r"\s+", " ", text).strip()) for line, text in read]
    return found


@cache
def files():
    folders = [ROOT / folder for folder in ("convgrad_cy", "pyx", "bench", "tests", "docs", "packaging", ".ci")]
    every = [*ROOT.glob("*.md"), ROOT / "setup.py", *(path for folder in folders for path in folder.rglob("*"))]
    known = {".md", ".py", *LANGUAGES}
    return sorted(
        path for path in every if path.suffix in known and path.is_file() and path.resolve() != Path(__file__).resolve()
    )


@pytest.mark.parametrize("area", AREAS)
def test_no_phrase_exceeds_its_budget(area):
    found, excess = texts(area), []
    for phrase, pattern in PHRASES.items():
        places = [f"{name}:{line}" for name, line, text in found for _ in re.finditer(pattern, text)]
        if len(places) > (ceiling := CEILINGS[phrase][list(AREAS).index(area)]):
            excess.append(f"{phrase!r}: {len(places)} times, at most {ceiling}: {', '.join(places)}")
    assert not excess, "\n".join(excess)


def sentences(text):
    """The sentences of a paragraph, with links as their texts and each piece of code as one word."""
    text = re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text))
    return re.split(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z*\"'(`]|code)", text)


def test_no_sentence_of_a_document_is_long():
    found = [
        f"{name}:{line}: {len(sentence.split())} words: {sentence}"
        for name, line, text in texts("documents")
        for sentence in sentences(text)
        if len(sentence.split()) > LONGEST
    ]
    assert not found, "\n".join(found)


def test_subjects_of_commits_are_short():
    # The lint stage works in a copy without a history, and says where the checkout is.
    git = ["git", "-C", os.environ.get("CI_ROOT", ROOT)]
    ask = [*git, "merge-base", "--is-ancestor", FIRST, "HEAD"]
    if which("git") is None or subprocess.run(ask, capture_output=True).returncode != 0:
        pytest.skip("there is no history")
    log = subprocess.run([*git, "log", "--format=%s", f"{FIRST}..HEAD"], capture_output=True, text=True, check=True)
    assert [subject for subject in log.stdout.splitlines() if len(subject) > SUBJECT] == []
