"""The Lab as JSON. Newest first, and cut where there is more than anybody reads."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Any

from crucible.ports.lab import BillLine, LabBill, LabMachine, LabStatus
from crucible.wire.lab import MOST_SHOWN

JOB = "crucible:job"  # the tag of a machine that a server has bought


def status(seen: LabStatus, machines: Sequence[LabMachine], jobs: Collection[str]) -> dict[str, Any]:
    """`machines` are those that are shown."""
    said = asdict(replace(seen, machines=()))
    del said["cost"]
    shown = {"cost_microusd": seen.cost, "machines": [machine(one, jobs) for one in machines]}
    return {**said, **shown, "is_cut": len(seen.machines) > len(machines)}


def newest(machines: Sequence[LabMachine]) -> list[LabMachine]:
    return sorted(machines, key=lambda one: (one.launched_at, one.id), reverse=True)[:MOST_SHOWN]


def machine(one: LabMachine, jobs: Collection[str]) -> dict[str, Any]:
    """`jobs` are those that the reader sees: of others nothing is told."""
    said, job = asdict(one), one.tags.get(JOB)
    del said["tags"], said["cost"]
    return {**said, "job_id": job if job in jobs else None, "cost_microusd": one.cost}


def bill(seen: LabBill) -> dict[str, Any]:
    lines = sorted(seen.lines, key=lambda line: (line.from_at, line.resource), reverse=True)
    return {
        "account": seen.account,
        "until": seen.until,
        "cost_microusd": seen.cost,
        "kinds": [_kind(kind, seen.lines) for kind in dict.fromkeys(line.kind for line in seen.lines)],
        "items": [_line(line) for line in lines[:MOST_SHOWN]],
        "is_cut": len(lines) > MOST_SHOWN,
    }


def _kind(kind: str, lines: Sequence[BillLine]) -> dict[str, Any]:
    costs = [line.cost for line in lines if line.kind == kind]
    return {"kind": kind, "count": len(costs), "cost_microusd": sum(costs)}


def _line(line: BillLine) -> dict[str, Any]:
    said = asdict(line)
    return {**said, "cost_microusd": said.pop("cost")}
