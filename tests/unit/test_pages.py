"""What the pages say of the code is so: names of functions, tables of states, times."""

import ast
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.core.job import TRANSITIONS
from crucible.model.policy import HealthLimits, Policy

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}


def table(page: str, name: str) -> list[list[str]]:
    """The rows between `<!-- name: start -->` and its end, without the head."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    inside = text.partition(f"<!-- {name}: start -->")[2].partition(f"<!-- {name}: end -->")[0]
    lines = [line for line in inside.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_transitions_of_a_job_are_those_of_the_core() -> None:
    said = {row[0]: tuple(filter(None, row[1].split(", "))) for row in table("lifecycles.md", "job transitions")}
    assert said == {start: tuple(goals) for start, goals in TRANSITIONS.items()}


def test_the_times_are_those_of_the_policy() -> None:
    said = {row[0].strip("`"): row[1] for row in table("lifecycles.md", "policy")}
    policy = Policy()
    assert {name: meant(text) for name, text in said.items()} == {
        field.name: getattr(policy, field.name) for field in fields(policy) if field.name != "health"
    }


def test_the_limits_of_health_are_those_of_the_policy() -> None:
    said = {row[0].strip("`"): row[1] for row in table("monitoring.md", "limit")}
    limits = HealthLimits()
    shown = {field.name: getattr(limits, field.name) for field in fields(limits)}
    assert {name: amount(text) for name, text in said.items()} == shown


def amount(text: str) -> timedelta | float:
    return meant(text) if " " in text else float(text)


def meant(text: str) -> timedelta | int:
    number, _, unit = text.partition(" ")
    return timedelta(**{UNITS[unit]: int(number)}) if unit else int(number)


def functions_named() -> list[tuple[str, str]]:
    """`core/step.py: advance` on any page, as path and name."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return sorted(set(re.findall(r"`(?:src/crucible/)?([a-z_/]+\.py): ([\w.]+)`", text)))


@pytest.mark.parametrize(("path", "name"), functions_named(), ids=lambda part: part)
def test_a_function_that_a_page_names_exists(path: str, name: str) -> None:
    scope = ast.parse((ROOT / "src/crucible" / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in scope if getattr(node, "name", None) == part]
        assert found, f"{path} has no {name}"
        scope = getattr(found[0], "body", [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    local = [target.partition("#")[0] for target in targets if "://" not in target and not target.startswith("#")]
    assert [target for target in local if not (page.parent / target).exists()] == []
