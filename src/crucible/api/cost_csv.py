"""Rows of a report as CSV. Names come from people: what a spreadsheet would take for a formula is told apart by a quote
in front of it. Money has all its digits."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence

from crucible.engine.cost_desk import Report
from crucible.model.costs import NO_NAME, CostRow, Dimension, Sums
from crucible.model.units import MICRO, MicroUsd

# Rows of one piece: a few hundred kilobytes.
PIECE = 2000
MONEY = ("cost", "useful", "idle", "saved", "unpriced")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


async def pieces(report: Report) -> AsyncIterator[bytes]:
    yield lines([header(report)])
    for start in range(0, len(report.rows), PIECE):
        yield lines(cells(row, report) for row in report.rows[start : start + PIECE])


def lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def header(report: Report) -> list[str]:
    named = ["job_name"] if Dimension.JOB in report.by else []
    return [*report.by, *named, *(f"{name}_usd" for name in MONEY), "gpu_hours", "jobs"]


def cells(row: CostRow, report: Report) -> list[str]:
    key, sums = row
    named = [report.names.get(key[report.by.index(Dimension.JOB)], "")] if Dimension.JOB in report.by else []
    return [*map(safe, (*key, *named)), *figures(sums)]


def figures(sums: Sums) -> list[str]:
    return [*(exact(getattr(sums, name)) for name in MONEY), f"{sums.gpu_s / 3600:.4f}", str(sums.jobs)]


def exact(amount: MicroUsd) -> str:
    whole, rest = divmod(abs(amount), MICRO)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:06}"


def safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) and text != NO_NAME else text
