"""What was spent and saved, as text. Pure: what is shown is a function of what the server said."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw
from crucible.client.cost_shapes import Available, CostReport, CostRow, Idea, SavingsReport, Sums

MONEY = (Column("COST", is_right=True), Column("IDLE", is_right=True), Column("SAVED", is_right=True))
AMOUNTS = (Column("GPU HOURS", is_right=True), Column("JOBS", is_right=True))
JOBS = (Column("DEAREST JOBS", shrinks=True), Column("ID"), *MONEY, Column("GPU HOURS", is_right=True))
SAVINGS = (
    Column("PAID", is_right=True),
    Column("ON DEMAND", is_right=True),
    Column("SAVED", is_right=True),
    Column("SHARE", is_right=True),
    Column("NOT COMPARED", is_right=True),
)
IDEAS = (
    Column("COULD BE SAVED", shrinks=True),
    Column("OTHER"),
    Column("ON", shrinks=True),
    Column("NOW", is_right=True),
    Column("THEN", is_right=True),
    Column("SAVES", is_right=True),
)
SHORT = 8  # of an id
FEW = 10.0  # GPU hours of which hundredths count


def report_table(said: CostReport, width: int | None) -> list[str]:
    if not said["rows"]:
        return []
    columns = (*_keys(said["by"]), *MONEY, *AMOUNTS)
    rows = [[*_names(one, said["by"]), *_money(one), *_amounts(one)] for one in said["rows"]]
    if len(rows) > 1 or said["left_out"]:
        total = ["total", *[""] * (len(said["by"]) - 1)] if said["by"] else []
        rows.append([*total, *_money(said["total"]), *_amounts(said["total"])])
    return draw(columns, rows, width)


def report_notes(said: CostReport, tz: str = "UTC") -> list[str]:
    """The period, what it comes to, and what is not shown."""
    total, told = said["total"], said["forecast"]
    span = span_name(said["from_at"], said["to_at"], tz)
    if not total["cost_microusd"]:
        return [f"{span}: nothing was spent"]
    line = f"{span}: {wording.money(total['cost_usd'])}"
    if told is not None:
        line += f" so far, about {wording.money(told['total_usd'])} by its end"
        line += f" ({wording.money(told['per_day_usd'])} a day lately)"
    if said["per_hour_microusd"]:
        line += f"; {wording.money(said['per_hour_usd'])} an hour now"
    return [line, *_hidden(said)]


def _hidden(said: CostReport) -> list[str]:
    if not said["left_out"]:
        return []
    return [f"{wording.plural(said['left_out'], 'more row')} in the total; --limit shows more, --csv all"]


def dearest_table(said: CostReport, width: int | None) -> list[str]:
    rows = [
        [
            one["job_name"] or wording.NONE,
            one["key"]["job"][:SHORT],
            *_money(one),
            _hours(one),
        ]
        for one in said["rows"]
    ]
    return draw(JOBS, rows, width) if rows else []


# --- savings --------------------------------------------------------------------------------------------------------


def savings_table(said: SavingsReport, width: int | None) -> list[str]:
    rows = [[*_names(one, said["by"]), *_saved(one)] for one in said["rows"] if one["cost_microusd"]]
    if not rows:
        return []
    if len(rows) > 1 and said["by"]:
        rows.append(["total", *[""] * (len(said["by"]) - 1), *_saved(said["total"])])
    return draw((*_keys(said["by"]), *SAVINGS), rows, width)


def _saved(one: Sums) -> Row:
    """Of what could be compared; the rest stands beside it."""
    paid = one["cost_usd"] - one["unpriced_usd"]
    firm = paid + one["saved_usd"]
    return [
        wording.money(paid),
        wording.money(firm),
        wording.money(one["saved_usd"]),
        f"{one['saved_usd'] / firm:.0%}" if firm > 0 else wording.NONE,
        wording.money(one["unpriced_usd"]) if one["unpriced_microusd"] else wording.NONE,
    ]


def idea_table(said: SavingsReport, width: int | None) -> list[str]:
    found = said["available"]
    rows = [_idea(one) for one in found["ideas"]] if found is not None else []
    return ["", *draw(IDEAS, rows, width)] if rows else []


def _idea(one: Idea) -> Row:
    where = f"{one['count']} × {one['provider']}/{one['region']} {one['instance_type']}"
    return [
        one["job_name"],
        one["move"],
        where if one["is_enabled"] else f"{where} (not enabled)",
        wording.money(one["now_usd"]),
        wording.money(one["then_usd"]),
        wording.money(one["saves_usd"]),
    ]


def savings_notes(said: SavingsReport, tz: str = "UTC") -> list[str]:
    total = said["total"]
    span = span_name(said["from_at"], said["to_at"], tz)
    notes = [f"{span}: {wording.money(total['saved_usd'])} saved against prices on demand"]
    if total["unpriced_microusd"]:
        unknown = wording.money(total["unpriced_usd"])
        notes.append(f"{unknown} is not compared: nobody knew the price on demand when it was bought")
    return [*notes, *_looked_at(said["available"])]


def _looked_at(found: Available | None) -> list[str]:
    if found is None:
        return []
    told = []
    if found["ideas"]:
        told.append("what could be saved are estimates: of one job take one, they do not add up")
    if found["unknown"]:
        unknown = wording.plural(found["unknown"], "job")
        told.append(f"{unknown} without an estimate, or of many tasks: nobody knows what could be saved there")
    return [*told, "only the newest jobs were looked at"] if found["is_partial"] else told


# --- cells ----------------------------------------------------------------------------------------------------------


def _keys(by: Sequence[str]) -> list[Column]:
    return [Column(one.replace("_", " ").upper(), shrinks=one not in ("day", "hour")) for one in by]


def _names(one: CostRow, by: Sequence[str]) -> list[str]:
    return [_job(one) if name == "job" else one["key"][name] for name in by]


def _job(one: CostRow) -> str:
    return f"{one['key']['job'][:SHORT]} {one['job_name'] or ''}".rstrip()


def _money(one: Sums) -> Row:
    return [wording.money(one["cost_usd"]), wording.money(one["idle_usd"]), wording.money(one["saved_usd"])]


def _amounts(one: Sums) -> Row:
    return [_hours(one), f"{one['jobs']:,}"]


def _hours(one: Sums) -> str:
    hours = one["gpu_hours"]
    return f"{hours:,.1f}" if hours >= FEW else f"{hours:.2f}"


def span_name(from_at: str, to_at: str, tz: str = "UTC") -> str:
    """As short as it can be said."""
    zone = ZoneInfo(tz)
    start, end = (_local(text, zone) for text in (from_at, to_at))
    is_whole = all((at.hour, at.minute) == (0, 0) for at in (start, end))
    if not is_whole:
        return f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"
    last = end - timedelta(hours=12)
    if start.day == 1 and end.day == 1 and (last.year, last.month) == (start.year, start.month):
        return f"{start:%B %Y}"
    return f"{start:%Y-%m-%d}" if last.date() == start.date() else f"{start:%Y-%m-%d} to {last:%Y-%m-%d}"


def _local(text: str, zone: tzinfo) -> datetime:
    return datetime.fromisoformat(text).astimezone(zone)
