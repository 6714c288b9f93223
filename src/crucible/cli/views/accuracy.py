"""Estimated against actual, as text. Pure: what is shown is a function of what the server said."""

from collections.abc import Sequence
from datetime import tzinfo

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw
from crucible.client.shapes import Accuracy, AccuracyGroup, AccuracyReport, JobView

FIGURES = (
    Column("OF"),
    Column("JOBS", is_right=True),
    Column("MEDIAN ERROR", is_right=True),
    Column("P90", is_right=True),
    Column("BIAS", is_right=True),
    Column("WITHIN GOAL", is_right=True),
)
TITLES = {"model_class": "CLASS", "gpu": "GPU"}
USUAL = ("gpu", "model_class")


def accuracy_table(said: AccuracyReport, width: int | None) -> list[str]:
    names = tuple(said["groups"][0]["key"]) if said["groups"] else USUAL
    columns = [Column(TITLES.get(name, name.upper()), shrinks=name != "gpu") for name in names]
    rows = [row for group in (said["overall"], *said["groups"]) for row in _rows(group, names)]
    return draw((*columns, *FIGURES), rows, width) if rows else []


def trend_table(said: AccuracyReport, width: int | None) -> list[str]:
    """Nothing to see of a single week."""
    rows = [row for week in said["trend"] for row in _rows(week, ("week",))]
    return ["", *draw((Column("WEEK OF"), *FIGURES), rows, width)] if len(said["trend"]) > 1 else []


def _rows(group: AccuracyGroup, names: Sequence[str]) -> list[Row]:
    key = [group["key"].get(name, "all") for name in names]
    measured = (("hours", group["hours"]), ("cost", group["cost"]))
    return [[*key, what, *_figures(found)] for what, found in measured if found is not None]


def _figures(found: Accuracy) -> Row:
    return [
        str(found["count"]),
        f"{found['median_error']:.1%}",
        f"{found['p90_error']:.1%}",
        f"{found['bias']:+.1%}",
        f"{found['within']:.0%}",
    ]


def accuracy_note(said: AccuracyReport, zone: tzinfo | None = None) -> str:
    """What the figures are made from; why there are none."""
    found = said["overall"]["hours"] or said["overall"]["cost"]
    if found is None:
        looked_at = wording.plural(said["jobs"], "completed job")
        return f"nothing to compare: {looked_at}, none with an estimate; give resources.estimated_hours or a workload"
    since = wording.clock(said["since"], zone)
    return f"{wording.plural(said['jobs'], 'completed job')} since {since}; the goal is within {found['goal']:.0%}"


def against_estimate(job: JobView) -> str | None:
    """Took so long, estimated so long; of a job that completed and had an estimate."""
    said = job.get("prediction")
    if not said or job["status"] != "completed":
        return None
    took, expected = said.get("actual_hours"), said.get("estimated_hours")
    if took is None or expected is None:
        return None
    times = f"took {_time(took)}, estimated {_time(expected)}{_beside(took, expected)}"
    paid, price = said.get("actual_cost_usd"), said.get("estimated_cost_usd")
    if paid is None or price is None:
        return times
    line = f"{times}; cost {wording.money(paid)}, estimated {wording.money(price)}{_beside(paid, price)}"
    high = said.get("estimated_cost_high_usd")
    return line if high is None or high <= price else f"{line}, up to {wording.money(high)}"


def _time(hours: float) -> str:
    return wording.duration(hours * 3600)


def _beside(actual: float, estimated: float) -> str:
    return f" ({actual / estimated - 1:+.0%})" if estimated > 0 else ""
