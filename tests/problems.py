"""The named problems of problems.txt."""

from pathlib import Path

from convgrad_cy.cli.problem_text import Problem as Problem
from convgrad_cy.cli.problem_text import parse as parse


def load(path):
    """All problems of a file, by name."""
    lines = (line.strip() for line in path.read_text().splitlines())
    problems = [parse(line) for line in lines if line and not line.startswith("#")]
    by_name = {problem.name: problem for problem in problems}
    if len(by_name) != len(problems) or "" in by_name:
        raise ValueError(f"{path}: a name is there twice, or missing")
    return by_name


PROBLEMS = load(Path(__file__).with_name("problems.txt"))
