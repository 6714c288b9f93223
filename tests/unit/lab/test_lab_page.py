"""What the page of the Lab says is so: kinds of faults, operations, the scenario, commands and their options."""

import re
import shlex
from pathlib import Path

import click
import pytest

from crucible.lab.aws.front import HANDLERS
from crucible.lab.commands import lab_command
from crucible.lab.fault_kinds import KINDS, FaultKind, Kind, Moment
from crucible.lab.fault_rules import read_rule
from crucible.lab.gcs import objects, parts
from crucible.lab.scenario_file import read
from crucible.lab.settings import BOOT_SCALE, REGIONS

PAGE = (Path(__file__).parents[3] / "docs/lab.md").read_text(encoding="utf-8")


def table(name: str) -> list[list[str]]:
    inside = PAGE.partition(f"<!-- {name}: start -->")[2].partition(f"<!-- {name}: end -->")[0]
    lines = [line for line in inside.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def whom(kind: Kind) -> str:
    if kind.moment is Moment.BOOT:
        return "machines"
    return "every request" if kind.operations == ("*",) else ", ".join(f"`{name}`" for name in kind.operations)


def takes(kind: Kind) -> str:
    if kind.statuses:
        return "`status` " + " or ".join(map(str, kind.statuses))
    if kind.seconds is None:
        return ""
    low, high = kind.seconds.default
    return f"`seconds` {low:g}" if low == high else f"`seconds` {low:g}..{high:g}"


def test_the_kinds_of_faults_are_those_that_there_are() -> None:
    assert table("faults") == [
        [f"`{kind}`", KINDS[kind].does, whom(KINDS[kind]), takes(KINDS[kind])] for kind in FaultKind
    ]


def test_the_operations_are_those_that_are_served() -> None:
    said = [re.findall("`([A-Za-z]+)`", row[1]) for row in table("operations")]
    assert said == [sorted(handlers) for handlers in HANDLERS.values()]


def test_the_operations_of_storage_are_those_that_are_served() -> None:
    said = [re.findall("`([A-Za-z]+)`", row[1]) for row in table("storage operations")]
    of_buckets = [one.name for one in objects.OPERATIONS if not one.is_of_object]
    of_objects = [one.name for one in objects.OPERATIONS if one.is_of_object]
    assert said == [sorted(of_buckets), sorted(of_objects), sorted(one.name for one in parts.OPERATIONS)]


def test_the_scenario_on_the_page_can_be_played() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    scenario = read(block)
    assert scenario.name == "a bad afternoon"
    assert len(scenario.timed) == 5
    assert len(scenario.spikes) == 1


def test_the_defaults_of_the_table_are_those_of_the_lab() -> None:
    assert f"`--boot-scale {BOOT_SCALE:g}`" in PAGE
    assert f"`--regions {','.join(REGIONS)}`" in PAGE


def lines() -> list[str]:
    """`crucible lab …` as it stands in blocks of commands, without the words beside it."""
    found = re.findall(r"^    (crucible lab .*)$", PAGE, re.MULTILINE)
    return [re.split(r"\s{2,}", line)[0] for line in found]


def test_there_are_commands_on_the_page() -> None:
    said = {shlex.split(line)[2] for line in lines()} | set(re.findall(r"crucible lab (\w+)", PAGE))
    assert said == set(lab_command.commands)


@pytest.mark.parametrize("line", lines())
def test_a_command_on_the_page_is_understood(line: str) -> None:
    name, *words = shlex.split(line)[2:]
    command = lab_command.commands[name]
    with click.Context(command) as context:
        command.parse_args(context, words)
        if name == "fail" and context.params["kind"]:
            given = {key.rstrip("_"): value for key, value in context.params.items()}
            fields = {key: given[key] for key in ("kind", "operation", "probability", "count", "for", "seconds", "tag")}
            assert read_rule(fields, 0.0).kind == given["kind"]


def test_files_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"examples/[\w/]+\.yaml", PAGE))
    assert len(named) == 3
    assert all((Path(__file__).parents[3] / name).is_file() for name in named)
