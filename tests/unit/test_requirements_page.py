"""The page about the requirements names each of them once, and only what exists."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMES = (ROOT / "src/crucible", ROOT / "tests", ROOT / "docs")  # of the columns code, test, page
LETTERS = {"A": 9, "B": 8, "C": 11, "D": 13, "E": 10, "F": 10, "G": 2, "H": 4, "I": 6, "J": 4}
IDS = {"A2b", "A8b", *(f"{letter}{number}" for letter, last in LETTERS.items() for number in range(1, last + 1))}
STATES = ("done", "partly", "not yet")


def rows() -> list[list[str]]:
    lines = (ROOT / "docs/requirements.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| [A-J]\d", line)]


def test_every_requirement_has_one_row() -> None:
    assert Counter(row[0] for row in rows()) == Counter(IDS)


def test_the_ids_of_a_section_stand_in_order() -> None:
    ids = [row[0] for row in rows()]
    assert ids == sorted(ids, key=lambda name: (name[0], int(name[1:].rstrip("b")), name))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_says_its_state_and_names_only_what_exists(row: list[str]) -> None:
    assert len(row) == 6
    _, requirement, state, *columns = row
    assert requirement and state in STATES
    named = [re.findall(r"`([^`]+)`", column) for column in columns]
    assert all(bool(paths) == (state != "not yet") for paths in named), "code, test and page, or nothing"
    for home, paths in zip(HOMES, named, strict=True):
        assert [path for path in paths if not (home / path).exists()] == []


@pytest.mark.parametrize("row", [row for row in rows() if row[2] == "partly"], ids=lambda row: row[0])
def test_a_row_that_is_partly_done_says_what_is_missing(row: list[str]) -> None:
    assert "missing: " in row[1]
