"""Every broken spec in tests/golden/spec has the report that `crucible validate` prints beside it, as text. To write
the reports anew after a change of words, run with CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
from pathlib import Path

import pytest

from crucible.model.errors import InvalidSpec
from crucible.spec import format_problems, load

HERE = Path(__file__).parent / "spec"
BROKEN = sorted(HERE.glob("*.yaml"))
GOOD = sorted((HERE / "good").glob("*.yaml"))


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: p.stem)
def test_a_broken_spec_is_reported_with_place_field_and_hint(path: Path) -> None:
    with pytest.raises(InvalidSpec) as caught:
        load(path.read_bytes())
    report = format_problems(caught.value.details["problems"], path.name) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


def test_there_are_at_least_forty_broken_specs() -> None:
    assert len(BROKEN) >= 40


def test_every_report_belongs_to_a_spec() -> None:
    assert {p.stem for p in HERE.glob("*.txt")} == {p.stem for p in BROKEN}


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_a_good_spec_loads_without_warnings(path: Path) -> None:
    assert load(path.read_bytes()).warnings == ()
