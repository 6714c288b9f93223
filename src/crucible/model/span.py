"""What happened to a job as spans: stretches of time that hang together, as tracing tools draw them. The W3C's names:
a trace is 32, a span 16 hexadecimal digits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crucible.model.attempt import Attempt
from crucible.model.job import Job
from crucible.model.lease import Lease, Order
from crucible.model.task import Task

Value = str | int | float | bool

# https://www.w3.org/TR/trace-context/: version, trace, parent, flags. A later version may go on after these.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


@dataclass(frozen=True, slots=True)
class Link:
    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that took no time."""

    name: str
    at: datetime
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    started_at: datetime
    ended_at: datetime
    attributes: Mapping[str, Value] = field(default_factory=dict)
    moments: tuple[Moment, ...] = ()
    links: tuple[Link, ...] = ()
    error: str | None = None  # why it did not go well


@dataclass(frozen=True, slots=True)
class Told:
    """A line of a job's log."""

    kind: str  # job, task, attempt, order, lease, node
    entity_id: str
    type: str
    at: datetime
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A job that has ended, and everything that was done for it."""

    job: Job
    tasks: Sequence[Task]
    attempts: Sequence[Attempt]
    orders: Sequence[Order]
    leases: Sequence[Lease]
    log: Sequence[Told]
    is_whole: bool = True  # False: there was more than anybody looks at


def parse_traceparent(text: str | None) -> Link | None:
    """What a client says it is part of; None for anything that is not well-formed, as the standard asks."""
    match = _TRACEPARENT.fullmatch(text.strip()) if text and len(text) <= 512 else None
    if match is None:
        return None
    version, trace_id, span_id, _ = match.groups()
    if version == "ff" or (version == "00" and len(text or "") > 55) or not (int(trace_id, 16) and int(span_id, 16)):
        return None
    return Link(trace_id, span_id)
