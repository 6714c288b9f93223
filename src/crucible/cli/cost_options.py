"""Options of the commands that tell what was spent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar

import click

from crucible.cli.periods import KNOWN, Period, period

F = TypeVar("F", bound=Callable[..., Any])

ONLY = ("team", "project", "user", "provider", "region", "gpu", "instance-type", "market", "kind")


@dataclass(frozen=True, slots=True)
class Wanted:
    """`start` and `end` None: this month."""

    start: str | None
    end: str | None
    tz: str
    only: Mapping[str, str | None]

    @property
    def query(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "tz": self.tz, "only": self.only}


def with_period(command: F) -> F:
    """--for, --tz and one option for each thing that a report can be narrowed to."""
    for name in reversed(ONLY):
        told = f"Only of this {name.replace('-', ' ')}."
        command = click.option(f"--{name}", metavar=name.upper(), help=told)(command)
    command = click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="Whose days and months.")(
        command
    )
    return click.option("--for", "span", metavar="PERIOD", help=f"{KNOWN}.  [default: this month]")(command)


def wanted(span: str | None, tz: str, only: Mapping[str, str | None], now: datetime) -> Wanted:
    zone = _zone(tz)
    found = None if span is None else _period(span, now, zone)
    if found is None:
        return Wanted(None, None, tz, only)
    return Wanted(_written(found.from_at), _written(found.to_at), tz, only)


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:00Z")


def _period(span: str, now: datetime, zone: tzinfo) -> Period:
    try:
        return period(span, now, zone)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from error


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(f"there is no time zone {name}; one is Europe/Berlin", param_hint="--tz") from error
