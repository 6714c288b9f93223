"""How jobs and the system are, as text. Pure: what is shown is a function of what the server said and of `now`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from crucible.cli import wording
from crucible.cli.sparkline import BARS, PLAIN_BARS, drawn
from crucible.cli.table import Column, Row, cut, draw, printable
from crucible.client.status_shapes import (
    Chart,
    Figure,
    Finding,
    JobStatus,
    Series,
    ServerHealth,
    SystemCheck,
    Utilisation,
)

# What stands beside a status: nothing where nothing is wrong.
MARKS = {"warning": "!", "critical": "!!"}
CHART_WIDTH = 48
Paint = Callable[[str, str], str]  # colour, text
COLOURS = {"ok": "green", "warning": "yellow", "critical": "red", "unknown": "dim"}


def unpainted(colour: str, text: str) -> str:
    return text


def marked(status: str, health: str | None) -> str:
    mark = MARKS.get(health or "")
    return f"{status} {mark}" if mark else status


# --- one job ---------------------------------------------------------------------------------------------------------


def status_rows(said: JobStatus, now: datetime, paint: Paint = unpainted) -> list[tuple[str, str]]:
    """What `describe` shows beside the job itself; what is unknown is left out."""
    rows = [
        ("Pace", pace(said)),
        ("Done by", eta(said, now)),
        ("Remaining", remaining(said)),
        ("At risk", at_risk(said)),
        ("Use", use(said)),
        ("Health", health(said, paint)),
    ]
    return [(label, value) for label, value in rows if value != wording.NONE]


def finding_lines(found: Sequence[Finding], now: datetime, paint: Paint = unpainted) -> list[str]:
    lines = []
    for one in found:
        mark = paint(COLOURS.get(one["severity"], "dim"), one["severity"])
        lines.append(f"  {mark}: {printable(one['words'])} ({one['code']}, {wording.age(one['since'], now)})")
        lines.append(f"    {printable(one['advice'])}")
    return lines


def health(said: JobStatus, paint: Paint) -> str:
    word = said["health"]["status"]
    why = said["unknown"].get("health")
    return paint(COLOURS.get(word, "dim"), word) + (f": {why}" if word == "unknown" and why else "")


def pace(said: JobStatus) -> str:
    rate = said["progress"]["steps_per_s"]
    if rate is None:
        return wording.NONE
    return f"{rate:.3g} steps/s" if rate >= 1 else f"{wording.duration(1 / rate)} per step"


def eta(said: JobStatus, now: datetime) -> str:
    found = said["eta"]
    if found is None:
        return wording.NONE
    soon, late = wording.duration(found["seconds"]), wording.duration(found["seconds_high"])
    span = f"in {soon}" if soon == late else f"in {soon} to {late}"
    return f"{wording.clock(found['at'])} ({span}, by its {found['basis']})"


def remaining(said: JobStatus) -> str:
    cost = said["cost"]
    if cost["remaining_usd"] is None or not (cost["remaining_usd"] or cost["per_hour_usd"]):
        return wording.NONE
    low, high = wording.money(cost["remaining_usd"]), wording.money(cost["remaining_high_usd"])
    money = f"about {low}" if low == high else f"about {low}, up to {high}"
    return f"{money}, {wording.money(cost['per_hour_usd'])} per hour now"


def at_risk(said: JobStatus) -> str:
    found = said["cost"]["at_risk_usd"]
    return f"{wording.money(found)} of work that no checkpoint has" if found else wording.NONE


def use(said: JobStatus) -> str:
    told = said["utilisation"]
    shares = [
        ("GPU", told["gpu"]),
        ("GPU memory", told["gpu_memory"]),
        ("CPU", told["cpu"]),
        ("memory", told["memory"]),
    ]
    parts = [f"{name} {share(one)}" for name, one in (*shares, ("disk", told["disk"])) if one is not None]
    if not parts:
        return wording.NONE
    machines = wording.plural(told["heard"], "machine")
    return f"{', '.join(parts)} ({machines})"


def share(one: Figure | None) -> str:
    if one is None:
        return wording.NONE
    mean = f"{one['mean']:.0%}"
    is_even = one["high"] - one["low"] < 0.1
    return mean if is_even else f"{mean} ({one['low']:.0%}…{one['high']:.0%}, worst rank {_rank(one)})"


def _rank(one: Figure) -> str:
    return wording.NONE if one["worst_rank"] is None else str(one["worst_rank"])


# --- all that run ----------------------------------------------------------------------------------------------------

TOP = (
    Column("NAME", shrinks=True),
    Column("STATUS"),
    Column("DONE", is_right=True),
    Column("LEFT", is_right=True),
    Column("GPU", is_right=True),
    Column("CPU", is_right=True),
    Column("MEM", is_right=True),
    Column("$/H", is_right=True),
    Column("COST", is_right=True),
    Column("WRONG", shrinks=True),
)


def top_page(
    jobs: Sequence[JobStatus], waiting: int, system: ServerHealth | None, now: datetime, width: int | None
) -> list[str]:
    """A line about everything, then a row for each job that works."""
    rows = [_top_row(one) for one in jobs]
    line = top_line(jobs, waiting, system, now)
    return [line if width is None else cut(line, width), "", *(draw(TOP, rows, width) if rows else ["nothing runs"])]


def top_line(jobs: Sequence[JobStatus], waiting: int, system: ServerHealth | None, now: datetime) -> str:
    gpus = sum(one["utilisation"]["gpus"] for one in jobs)
    busy = sum(one["utilisation"]["gpus"] * _mean(one["utilisation"]["gpu"]) for one in jobs)
    spent = wording.money(sum(one["cost"]["per_hour_usd"] for one in jobs))
    parts = [now.strftime("%H:%M:%S"), f"{wording.plural(len(jobs), 'job')} at work", f"{waiting} waiting"]
    parts.append(f"{gpus} GPUs measured, {busy / gpus:.0%} busy" if gpus else "no GPU measured")
    parts.append(f"{spent} per hour")
    if system is not None and "system" in system:
        parts.insert(1, f"system {system['system']['status']}")
    return " · ".join(parts)


def _mean(one: Figure | None) -> float:
    return 0.0 if one is None else one["mean"]


def _top_row(one: JobStatus) -> Row:
    use_, found, left = one["utilisation"], one["health"]["findings"], one["eta"]
    return [
        one["name"],
        marked(one["phase"], one["health"]["status"]),
        wording.percent(one["progress"]["fraction"]),
        wording.NONE if left is None else wording.duration(left["seconds"]),
        *(wording.NONE if figure is None else f"{figure['mean']:.0%}" for figure in _top_figures(use_)),
        wording.money(one["cost"]["per_hour_usd"]),
        wording.money(one["cost"]["so_far_usd"]),
        "; ".join(one_found["words"] for one_found in found),
    ]


def _top_figures(told: Utilisation) -> list[Figure | None]:
    return [told["gpu"], told["cpu"], told["memory"]]


# --- the system ------------------------------------------------------------------------------------------------------


def health_lines(said: ServerHealth, paint: Paint = unpainted) -> list[str]:
    checks = said["system"]["checks"]
    widest = max((len(_title(one)) for one in checks), default=0)
    lines = []
    for one in checks:
        word = paint(COLOURS.get(one["status"], "dim"), f"{one['status']:<8}")
        lines.append(f"{word}  {_title(one):<{widest}}  {printable(one['words'])}")
        if one["advice"]:
            lines.append(f"{'':8}  {'':{widest}}  → {printable(one['advice'])}")
    return lines


def _title(one: SystemCheck) -> str:
    return printable(f"{one['name']} {one['subject']}" if one["subject"] else one["name"])


# --- charts --------------------------------------------------------------------------------------------------------

CHART = (
    Column("NAME", shrinks=True),
    Column("MIN", is_right=True),
    Column("MAX", is_right=True),
    Column("LAST", is_right=True),
    Column("OVER TIME"),
)


def chart_table(said: Chart, width: int | None, *, is_plain: bool = False) -> list[str]:
    """A line for each name. A gap in what was measured is a gap in the line."""
    times = [point["t"] for one in said["series"] for point in one["points"]]
    if not times:
        return []
    length = bars_for(times)
    rows = [_chart_row(one, min(times), max(times), length, is_plain) for one in said["series"]]
    return draw(CHART, rows, width)


def bars_for(times: Sequence[int]) -> int:
    """As many as there are samples at their usual distance, so that only a gap is a gap."""
    moments = sorted(set(times))
    if len(moments) < 2:
        return 1
    usual = median(later - earlier for earlier, later in pairwise(moments))
    return max(1, min(CHART_WIDTH, round((moments[-1] - moments[0]) / max(usual, 1)) + 1))


def _chart_row(one: Series, first: int, last: int, length: int, is_plain: bool) -> Row:
    points = one["points"]
    lows = [point["min"] for point in points if point["min"] is not None]
    highs = [point["max"] for point in points if point["max"] is not None]
    bars = drawn(buckets(one, first, last, length), PLAIN_BARS if is_plain else BARS)
    ends = [wording.number(min(lows)), wording.number(max(highs))] if lows and highs else [wording.NONE] * 2
    invalid = sum(point["invalid"] for point in points)
    note = f"  {invalid} not a number" if invalid else ""
    return [one["name"], *ends, wording.number(points[-1]["last"]), f"{bars}{note}".rstrip()]


def buckets(one: Series, first: int, last: int, length: int) -> list[float | None]:
    """Means over equal shares of the time."""
    share_ms = max((last - first) / max(length - 1, 1), 1)
    sums: list[tuple[float, int]] = [(0.0, 0)] * length
    for point in one["points"]:
        if point["mean"] is not None and point["count"]:
            place = min(round((point["t"] - first) / share_ms), length - 1)
            total, count = sums[place]
            sums[place] = total + point["mean"] * point["count"], count + point["count"]
    return [total / count if count else None for total, count in sums]


def chart_note(said: Chart) -> str:
    if not said["series"]:
        return "nothing measured yet"
    times = [point["t"] for one in said["series"] for point in one["points"]]
    fine = "each sample" if not said["resolution_s"] else wording.duration(said["resolution_s"])
    more = f"; {said['left_out']} more names" if said["left_out"] else ""
    return f"over {wording.duration((max(times) - min(times)) / 1000)}, by {fine}{more}"
