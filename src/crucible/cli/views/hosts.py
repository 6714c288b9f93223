"""Own hosts as a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.shapes import Host


def host_table(hosts: Sequence[Host], width: int | None) -> list[str]:
    columns = [
        Column("NAME"),
        Column("ADDRESS"),
        Column("ZONE"),
        Column("GPUS", shrinks=True),
        Column("USE"),
        Column("STATE"),
        Column("MACHINES", is_right=True),
        Column("REASON", shrinks=True),
    ]
    rows = [
        [
            host["name"],
            place(host),
            host["zone"],
            gpus(host["facts"]),
            host["use"],
            host["state"] if host["reachable"] else "unreachable",
            str(host["machines"]),
            reason(host),
        ]
        for host in hosts
    ]
    return draw(columns, rows, width) if rows else []


def place(host: Host) -> str:
    user, port = host.get("user"), host.get("port")
    return f"{user + '@' if user else ''}{host['address']}{f':{port}' if port else ''}"


def gpus(facts: Mapping[str, Any]) -> str:
    """ "8 x A100-SXM4-80GB", those that are cut into parts with their parts."""
    kinds: Counter[str] = Counter()
    for gpu in facts.get("gpus", ()):
        whole = gpu["name"].removeprefix("NVIDIA ")
        kinds.update([f"{whole} MIG {part['profile']}" for part in gpu.get("mig", ())] or [whole])
    return ", ".join(f"{number} x {name}" for name, number in kinds.items()) or wording.NONE


def reason(host: Host) -> str:
    """Why it is not used; else why it has no GPUs, if that may be a fault."""
    missing = host["facts"].get("gpus_reason")
    said = host["reason"] or (missing if missing and "not installed" not in missing else None)
    return said or wording.NONE
