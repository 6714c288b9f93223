"""Items as text: patterns, ends, and what is said when there are none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core import items as core
from crucible.core.items import LineEnds, listed, matching
from crucible.model.errors import InvalidRequest

NAMES = ["a.jpg", "b.png", "images/a.jpg", "images/cats/b.jpg", "images/cats/c.JPG", "zoo/[x].jpg"]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.jpg", ["a.jpg"]),
        ("images/*.jpg", ["images/a.jpg"]),
        ("images/**/*.jpg", ["images/a.jpg", "images/cats/b.jpg"]),
        ("**/*.jpg", ["a.jpg", "images/a.jpg", "images/cats/b.jpg", "zoo/[x].jpg"]),
        ("images/**", ["images/a.jpg", "images/cats/b.jpg", "images/cats/c.JPG"]),
        ("?.jpg", ["a.jpg"]),
        ("[ab].*", ["a.jpg", "b.png"]),
        ("[!a].*", ["b.png"]),
        ("[a-b].png", ["b.png"]),
        ("zoo/[[]x].jpg", ["zoo/[x].jpg"]),
        ("images", []),
        ("[", []),
    ],
)
def test_a_pattern_means_files_as_a_shell_would(glob: str, found: list[str]) -> None:
    assert matching(glob, reversed(NAMES)) == found


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_pattern_breaks(glob: str, name: str) -> None:
    matching(glob, [name])


@given(st.text(alphabet="ab.]-/", min_size=1, max_size=12))
def test_a_name_without_special_characters_matches_itself(name: str) -> None:
    assert matching(name, [name]) == [name]


def test_a_list_is_one_item_a_line_with_the_byte_behind_each() -> None:
    found = listed(["a", "größe", ""], "job.shards.items")
    assert (found.count, found.text) == (3, "a\ngröße\n\n".encode())
    assert list(found.ends) == [2, 10, 11]
    with pytest.raises(InvalidRequest, match="line break") as refused:
        listed(["a\nb"], "job.shards.glob")
    assert refused.value.details["field"] == "job.shards.glob"


@given(st.lists(st.binary(max_size=5).filter(lambda line: b"\n" not in line)), st.booleans(), st.integers(1, 7))
def test_lines_end_where_they_end_however_the_bytes_come(lines: list[bytes], is_closed: bool, piece: int) -> None:
    data = b"\n".join(lines) + (b"\n" if is_closed and lines else b"")
    ends = LineEnds("job.shards.lines")
    for start in range(0, len(data), piece):
        ends.feed(data[start : start + piece])
    found = ends.items()
    assert found.count == len(found.ends)
    cut = [data[a:b] for a, b in pairwise([0, *found.ends])]
    last = [data.rpartition(b"\n")[2]] if data and not data.endswith(b"\n") else []
    assert cut == [line + b"\n" for line in data.split(b"\n")[:-1]] + last


def test_too_many_lines_are_refused_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MOST_NAMED", 3)
    ends = LineEnds("job.shards.lines")
    ends.feed(b"\n\n\n")
    with pytest.raises(InvalidRequest, match="more than 3 items"):
        ends.feed(b"\n")


def test_who_finds_nothing_is_told_what_there_is() -> None:
    said = core.nothing_found("*.gif", "the dataset images", NAMES, "job.shards.glob").message
    assert said == "no file of the dataset images matches '*.gif'; it has a.jpg, b.png, images/a.jpg and 3 more"
    assert "it is empty" in core.nothing_found("*", "the shipped code", [], "job.shards.glob").message
    alone = core.no_such_file("texts", core.CODE, ["infer.py"], "job.shards.lines").message
    assert alone.endswith("it has infer.py; `code: .` ships the whole folder")
    assert "did you mean a.jpg?" in core.no_such_file("a.jpgg", "the dataset", NAMES, "job.shards.lines").message
