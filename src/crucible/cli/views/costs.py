"""What a job costs, as text. Pure: what is shown is a function of what the server said."""

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw, pairs
from crucible.client.cost_shapes import Interval, JobCosts, MachineCost

MACHINES = (
    Column("MACHINE", shrinks=True),
    Column("WHERE", shrinks=True),
    Column("FROM"),
    Column("CHARGED", is_right=True),
    Column("PER HOUR", is_right=True),
    Column("SO FAR", is_right=True),
)
INTERVALS = (
    Column("MACHINE", shrinks=True),
    Column("KIND"),
    Column("FROM"),
    Column("SECONDS", is_right=True),
    Column("PRICE", is_right=True),
    Column("AMOUNT", is_right=True),
)
PER = {3600: "hour", 730 * 3600: "month", 30 * 86400: "month", 86400: "day"}
LEAST_SHOWN = 1e-5  # dollars
USES = {
    "boot": "booting",
    "gang": "waiting for the gang",
    "setup": "setting up",
    "waiting": "between attempts",
    "upload": "uploading",
    "give_back": "giving back",
    "spare": "GPUs that nothing used",
    "unheld": "held by nobody",
}
# Beside a length of time that nobody told us.
GUESSED = "~"


def cost_page(said: JobCosts, width: int | None) -> list[str]:
    rows = [
        ("So far", wording.money(said["so_far_usd"])),
        ("Per hour", wording.money(said["per_hour_usd"])),
        ("Per unit", _units(said)),
        ("Remaining", _remaining(said)),
        ("Budget", _budget(said)),
        ("Of this", _kinds(said)),
        ("Idle", _idle(said)),
        ("Saved", _saved(said)),
    ]
    lines = pairs([(label, value) for label, value in rows if value != wording.NONE])
    machines = [_machine(one, said["at"]) for one in said["machines"]]
    return [*lines, "", *draw(MACHINES, machines, width)] if machines else lines


def interval_table(said: JobCosts, width: int | None) -> list[str]:
    rows = [_interval(one, said["at"]) for one in said["intervals"]]
    return draw(INTERVALS, rows, width) if rows else []


def _remaining(said: JobCosts) -> str:
    rest = said["remaining"]
    if rest is None:
        return wording.NONE
    low, high = wording.money(rest["likely_usd"]), wording.money(rest["high_usd"])
    times = [wording.duration(hours * 3600) for hours in (rest["hours"], rest["hours_high"])]
    money = f"about {low}" if low == high else f"about {low}, up to {high}"
    time = times[0] if times[0] == times[1] else f"{times[0]} to {times[1]}"
    return f"{money} ({time}, by its {rest['basis']})"


def _budget(said: JobCosts) -> str:
    budget = said["budget_usd"]
    if not budget:
        return wording.NONE
    return f"{wording.money(budget)} ({said['so_far_usd'] / budget:.0%} used)"


def _kinds(said: JobCosts) -> str:
    return ", ".join(f"{one['kind']} {wording.money(one['so_far_usd'])}" for one in said["by_kind"]) or wording.NONE


def _idle(said: JobCosts) -> str:
    """How much of it was paid while nothing of the job ran, and why."""
    if not said["idle_microusd"] or not said["so_far_microusd"]:
        return wording.NONE
    share = said["idle_microusd"] / said["so_far_microusd"]
    why = ", ".join(f"{USES.get(one['use'], one['use'])} {wording.money(one['amount_usd'])}" for one in said["idle_by"])
    return f"{wording.money(said['idle_usd'])} ({share:.0%}): {why}"


def _saved(said: JobCosts) -> str:
    if not said["saved_microusd"]:
        return wording.NONE
    return f"{wording.money(said['saved_usd'])} against prices on demand"


def _units(said: JobCosts) -> str:
    each = (("step", said["per_step_usd"]), ("sample", said["per_sample_usd"]), ("token", said["per_token_usd"]))
    return ", ".join(_unit(unit, cost) for unit, cost in each if cost is not None) or wording.NONE


def _unit(unit: str, cost: float) -> str:
    """Of a million, where one costs next to nothing."""
    return f"${cost:.3g} a {unit}" if cost >= LEAST_SHOWN else f"${cost * 1e6:.3g} a million {unit}s"


def _machine(one: MachineCost, now: str) -> Row:
    return [
        one["machine_id"],
        f"{one['provider']}/{one['region']}",
        wording.clock(one["started_at"]),
        _length(one["started_at"], one["ended_at"] or now) + (GUESSED if one["is_estimate"] else ""),
        wording.money(one["per_hour_usd"]) if one["ended_at"] is None else wording.NONE,
        wording.money(one["so_far_usd"]),
    ]


def _interval(one: Interval, now: str) -> Row:
    seconds = _seconds(one["from_at"], one["to_at"] or now)
    return [
        one["machine_id"],
        one["kind"],
        wording.clock(one["from_at"]),
        f"{seconds}{GUESSED if one['is_estimate'] else ''}" + ("" if one["to_at"] else "…"),
        f"{exact(one['rate_microusd']).rstrip('0').rstrip('.')}/{PER.get(one['per_s']) or one['per_s']}",
        exact(one["amount_microusd"]),
    ]


def exact(microusd: int) -> str:
    """To the micro-dollar. A correction may be below zero."""
    whole, rest = divmod(abs(microusd), 1_000_000)
    return f"{'-' if microusd < 0 else ''}${whole:,}.{rest:06}"


def _length(start: str, end: str) -> str:
    return wording.duration(_seconds(start, end))


def _seconds(start: str, end: str) -> int:
    began, ended = wording.moment(start), wording.moment(end)
    return 0 if began is None or ended is None else max(int((ended - began).total_seconds()), 0)
