"""A recommendation as text: what was found, with the lines that say so; what is assumed; backends, the best first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw, printable
from crucible.client.shapes import Recommendations

# Backends whose pros and cons are told; the others are for -o json.
EXPLAINED = 3
_THOUSANDS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def recommendation_lines(made: Recommendations, path: str, *, width: int | None, is_wide: bool = False) -> list[str]:
    return [
        *_found(made, width, is_wide),
        *(printable(f"note: {note}") for note in made["notes"]),
        *(printable(f"assumed: {one}") for one in made["assumptions"]),
        "",
        *_ranked(made, width),
        *_excluded(made["excluded"], is_wide),
        "",
        *_next(made, path),
    ]


_FINDINGS = (
    Column(""),
    Column("FOUND"),
    Column("VALUE", shrinks=True),
    Column("SURE"),
    Column("WHERE", shrinks=True),
    Column("LINE OF CODE", shrinks=True),
)


def _found(made: Recommendations, width: int | None, is_wide: bool) -> list[str]:
    """What counts; with -o wide also what says the same again, or something else."""
    shown = [one for one in made["findings"] if one["counts"] or is_wide or _differs(one, made["findings"])]
    if not shown:
        return ["nothing was found in the code"]
    return draw(_FINDINGS, [_finding(one) for one in shown], width)


def _differs(finding: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> bool:
    """A conflict that a person should see: another value, about as sure."""
    winner = next(one for one in findings if one["what"] == finding["what"] and one["counts"])
    is_close = finding["confidence"] == winner["confidence"]
    return is_close and finding["value"] != winner["value"] and finding["what"] in _TOLD_APART


_TOLD_APART = ("parameters", "batch_size", "precision", "job_kind", "steps", "epochs", "model")


def _finding(one: Mapping[str, Any]) -> Row:
    mark = "" if one["counts"] else "~"
    where = f"{one['file']}:{one['line']}"
    return [mark, one["what"].replace("_", " "), _value(one), one["confidence"], where, one["evidence"]]


def _value(one: Mapping[str, Any]) -> str:
    value = one["value"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _short(float(value))
    return str(value)


def _short(number: float) -> str:
    for size, unit in _THOUSANDS:
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:g}"


_BACKENDS = (
    Column("", is_right=True),
    Column("BACKEND"),
    Column("SCORE", is_right=True),
    Column("$/H", is_right=True),
    Column("HOURS", is_right=True),
    Column("TOTAL", is_right=True),
    Column("SURE"),
    Column("THERE"),
    Column("OFFER", shrinks=True),
)


def _ranked(made: Recommendations, width: int | None) -> list[str]:
    ranked = made["recommendations"]
    if not ranked:
        return ["no backend suits it"]
    lines = draw(_BACKENDS, [_backend(number, one) for number, one in enumerate(ranked, 1)], width)
    for one in ranked[:EXPLAINED]:
        lines += [f"{one['backend']}:"]
        lines += [printable(f"  + {pro}") for pro in one["pros"]]
        lines += [printable(f"  - {con}") for con in one["cons"]]
    return lines


def _backend(number: int, one: Mapping[str, Any]) -> Row:
    cost, hours = one["costEstimate"], one["hours"]
    return [
        str(number),
        one["backend"],
        f"{one['score']:.2f}",
        wording.money(cost["hourly"]),
        wording.NONE if hours is None else f"{hours:.3g}",
        wording.money(cost["total"]),
        cost["confidence"],
        one["availability"]["status"],
        _offer(one["offer"]),
    ]


def _offer(offer: Mapping[str, Any] | None) -> str:
    if offer is None:
        return wording.NONE
    gpus = f", {offer['count'] * offer['gpus']} {offer['gpu']}" if offer["gpu"] else ""
    return f"{offer['count']} × {offer['instance_type']} in {offer['region']}{gpus}"


def _excluded(excluded: Sequence[Mapping[str, Any]], is_wide: bool) -> Iterator[str]:
    for one in excluded:
        if is_wide or len(excluded) <= EXPLAINED:
            yield printable(f"not {one['backend']}: {one['reason']}")
    if not is_wide and len(excluded) > EXPLAINED:
        names = ", ".join(one["backend"] for one in excluded)
        yield printable(f"not {names}: -o wide says why")


def _next(made: Recommendations, path: str) -> Iterator[str]:
    if made["characteristics"].get("duration_hours") is None:
        yield "say how long it takes (--hours) to see what it would cost"
    yield printable(f"next: crucible recommend {path} --write job.yaml, then crucible plan job.yaml")
