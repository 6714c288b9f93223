"""The Lab that a server buys in, as its people see it: what there is, what it came to, what shall go wrong. A server
that buys from a real cloud has none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class LabMachine:
    id: str
    type: str
    market: str
    region: str
    zone: str
    state: str
    launched_at: datetime
    ended_at: datetime | None
    end: str | None  # who ended it
    notice_at: datetime | None  # when it was told that it will be taken
    taken_at: datetime | None  # when it is to go
    private_address: str
    tags: Mapping[str, str]
    cost: MicroUsd | None  # of it and its address, so far; None where it was not asked


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    url: str
    version: str
    account: str
    regions: Sequence[str]
    seed: int
    speed: float  # of its clock
    boot_scale: float
    started_at: datetime  # this and all others by its clock
    now: datetime
    enclosure: str  # how machines are kept apart
    prices: str  # "recorded" or "made up"
    counts: Mapping[str, int]  # machines by state, ended ones too
    disks: int
    cost: MicroUsd
    faults: int
    machines: Sequence[LabMachine]


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    resource: str
    kind: str
    from_at: datetime
    to_at: datetime
    cost: MicroUsd
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabBill:
    account: str
    until: datetime
    cost: MicroUsd
    lines: Sequence[BillLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabNote:
    number: int
    at: datetime
    what: str
    subject: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFault:
    """A rule: what goes wrong, how often, for whom."""

    id: str
    kind: str
    operation: str | None
    probability: float
    count: int | None
    since: datetime | None
    until: datetime | None
    seconds: tuple[float, float] | None
    status: int | None
    machine: str | None
    tag: str | None
    region: str | None
    type: str | None
    asked: int
    struck: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKindWords:
    """What can be made to go wrong, for people who choose."""

    kind: str
    does: str
    strikes: str  # "requests" or "machines"
    operations: Sequence[str]  # none: every request
    seconds: tuple[float, float] | None  # between which it draws; None: it takes none
    statuses: Sequence[int]


class LabDoor(Protocol):
    """Every call raises NoLab when there is none that this server buys in, and Unreachable when it does not answer."""

    async def status(self, *, has_ended: bool) -> LabStatus: ...

    async def bill(self) -> LabBill: ...

    async def notes(self, after: int, machine: str | None) -> Sequence[LabNote]:
        """With a higher number, oldest first."""
        ...

    async def console(self, machine: str) -> str: ...

    def kinds(self) -> Sequence[FaultKindWords]: ...

    async def faults(self) -> Sequence[LabFault]: ...

    async def fail(self, rule: Mapping[str, Any]) -> LabFault:
        """Raises InvalidRequest for a rule that cannot strike as written."""
        ...

    async def mend(self, rule: str) -> None:
        """Raises NotFound."""
        ...

    async def preempt(
        self, machines: Sequence[str], notice_s: float | None, **fitting: str | int | None
    ) -> Sequence[LabMachine]:
        """These or none of them; without a name, all that fit `region`, `type` and at most `count`. Raises NotFound,
        Conflict."""
        ...

    async def close(self) -> None: ...
