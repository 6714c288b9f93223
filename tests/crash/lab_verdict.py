"""The Lab's own inventory and invoice against the database's tables. The ledger is read by SQL: none of the code that
wrote it takes part."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from crash.database import Rows

Machine = dict[str, Any]
Machines = dict[str, Machine]

ORDER = "crucible:order"
# So long there may be a machine more than was ordered: until the sweep has seen it twice and had it removed.
REAPED_WITHIN_S = 60
LEAST_S = 60  # charged in any case


def judge_lab(found: Any, rows: Rows, inventory: Sequence[Machine], bill: dict[str, Any], disks: int) -> None:
    ours = [machine for machine in inventory if ORDER in machine["tags"]]
    found.machines = len(ours)
    found.leaks += [f"machine {m['id']} is {m['state']} {m['tags']}" for m in ours if m["state"] != "terminated"]
    found.leaks += [f"{disks} disks are still there"] if disks else []
    judge_orders(found, rows, ours)
    judge_books(found, rows)
    judge_bill(found, rows, {machine["id"]: machine for machine in inventory}, bill)


# --- machines -----------------------------------------------------------------------------------------------


def judge_orders(found: Any, rows: Rows, machines: Sequence[Machine]) -> None:
    counts = dict(rows("SELECT id, count FROM orders"))
    by_order: dict[str, list[Machine]] = defaultdict(list)
    for machine in machines:
        by_order[machine["tags"][ORDER]].append(machine)
    for order, bought in by_order.items():
        if order not in counts:
            found.wrong.append(f"{len(bought)} machines carry the mark of {order}, which was never written down")
        elif (excess := seconds_beyond(bought, counts[order])) > REAPED_WITHIN_S:
            found.doubles.append(f"{order} had more than {counts[order]} machines for {excess:g} s: {bought}")


def seconds_beyond(machines: Sequence[Machine], count: int) -> float:
    """The longest time in which more than `count` of them lived at once."""
    moments = [(m["launched_at"], 1) for m in machines] + [(m["ended_at"], -1) for m in machines if m["ended_at"]]
    alive, since, longest = 0, 0.0, 0.0
    for at, change in sorted(moments):
        if alive > count:
            longest = max(longest, at - since)
        alive += change
        since = at if change > 0 and alive == count + 1 else since
    return longest


# --- money --------------------------------------------------------------------------------------------------


def judge_books(found: Any, rows: Rows) -> None:
    """Double entry: everything together is nothing; no second of a machine is charged twice or not at all."""
    sums = rows(
        "SELECT posting_id, sum(amount_microusd) FROM ledger GROUP BY posting_id HAVING sum(amount_microusd) <> 0"
    )
    found.wrong += [f"posting {posting} comes to {amount}" for posting, amount in sums]
    found.wrong += [
        f"usage of {row[0]} is still open" for row in rows("SELECT machine_id FROM usage WHERE to_at IS NULL")
    ]
    stretches: dict[tuple[str, str], list[tuple[Any, Any]]] = defaultdict(list)
    for machine, kind, start, end in rows("SELECT machine_id, kind, from_at, to_at FROM usage ORDER BY from_at, to_at"):
        stretches[machine, kind].append((start, end))
    for name, found_here in stretches.items():
        if any(before[1] != after[0] for before, after in pairwise(found_here)):
            found.wrong.append(f"{name} is charged with a gap or twice: {found_here}")


def judge_bill(found: Any, rows: Rows, machines: Machines, bill: dict[str, Any]) -> None:
    charged = -int(rows("SELECT coalesce(sum(amount_microusd), 0) FROM ledger WHERE account = 'provider:aws'")[0][0])
    asked = asked_for(bill, machines)
    found.billed_microusd = bill["microusd"]
    found.after_the_end_microusd = bill["microusd"] - sum(asked.values())
    found.ledger_minus_invoice_microusd = charged - sum(asked.values())
    if found.ledger_minus_invoice_microusd:
        found.wrong += differences(rows, machines, asked)


def asked_for(bill: dict[str, Any], machines: Machines) -> dict[str, int]:
    """What each machine cost with all that it had, as long as it lived. A disk that outlived its machine is charged on,
    and no cloud says when a disk was deleted: that part the ledger cannot know. Until it is gone, it is a leak."""
    asked: dict[str, int] = defaultdict(int)
    for line in bill["lines"]:
        if line["kind"] != "disk":
            asked[line["resource"]] += line["microusd"]
        elif line["note"] in machines:
            asked[line["note"]] += line["microusd"]
    disks = [line for line in bill["lines"] if line["kind"] == "disk"]
    with_disk = {line["note"] for line in disks}
    outlived = sorted((line for line in disks if line["note"] not in machines), key=lambda line: line["from_at"])
    without = sorted((m for m in machines.values() if m["id"] not in with_disk), key=lambda m: m["launched_at"])
    for line, machine in zip(outlived, without, strict=True):
        asked[machine["id"]] += cost_until(line, machine)
    return asked


def cost_until(line: dict[str, Any], machine: Machine) -> int:
    """Of a disk, to the end of the machine it was made with."""
    (stretch,) = line["stretches"]
    assert line["from_at"] == machine["launched_at"], f"{line} is not the disk of {machine}"
    lived = max((machine["ended_at"] or line["to_at"]) - machine["launched_at"], LEAST_S)
    return round(Fraction(stretch["microusd_per"] * lived, stretch["per_s"]))


def differences(rows: Rows, machines: Machines, asked: dict[str, int]) -> list[str]:
    """Machine by machine, for whoever must find the mistake."""
    charged: dict[str, int] = defaultdict(int)
    for posting, amount in rows("SELECT posting_id, amount_microusd FROM ledger WHERE account = 'provider:aws'"):
        charged[posting.split("/")[2]] -= amount
    return [
        f"{name} is charged {charged[name]}, the invoice says {asked.get(name, 0)}: {machines.get(name)}"
        for name in sorted(asked.keys() | charged.keys())
        if charged[name] != asked.get(name, 0)
    ]
