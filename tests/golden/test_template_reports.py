"""Every broken template in tests/golden/templates, and every job in its folder `jobs` that gives a template what it
cannot take, has its report beside it, as text. To write the reports anew after a change of words, run with
CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
from pathlib import Path

import pytest

from crucible.model.errors import InvalidSpec
from crucible.spec import format_problems
from crucible.spec.filling import apply
from crucible.spec.template import read_template

HERE = Path(__file__).parent / "templates"
BROKEN = sorted(HERE.glob("*.yaml"))
JOBS = sorted((HERE / "jobs").glob("[0-9]*.yaml"))


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_template_is_reported_with_place_field_and_hint(path: Path) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_template(path.read_bytes())
    compare(path, caught.value)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_what_a_template_cannot_take_is_reported_at_its_line(path: Path) -> None:
    template = read_template((HERE / "jobs" / "template.yaml").read_bytes())
    with pytest.raises(InvalidSpec) as caught:
        apply(path.read_bytes(), template)
    compare(path, caught.value)


def test_every_report_belongs_to_a_file() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == {path.stem for path in BROKEN}
    assert {path.stem for path in (HERE / "jobs").glob("*.txt")} == {path.stem for path in JOBS}


def compare(path: Path, error: InvalidSpec) -> None:
    report = format_problems(error.details["problems"], path.name) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")
