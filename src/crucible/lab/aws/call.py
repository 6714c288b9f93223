"""One request on its way through: who asks where, what, when, and what the front end may use of the Lab to answer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from crucible.lab.aws.models import Operation
from crucible.lab.aws.places import Places
from crucible.lab.aws.registry import Office, Registry
from crucible.lab.faults import Fault, FaultKind, Faults
from crucible.lab.settings import LabAccount
from crucible.world.machine import Machine
from crucible.world.world import World


class Clock(Protocol):
    def now(self) -> float: ...


class Consoles(Protocol):
    def console(self, machine_id: str) -> bytes:
        """What the machine has printed so far; empty if it never ran."""
        ...


class Lab(Protocol):
    """What the front end needs of a Lab."""

    @property
    def world(self) -> World: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def guests(self) -> Consoles: ...
    @property
    def account(self) -> LabAccount: ...
    @property
    def details(self) -> dict[str, dict[str, str]]:
        """What a machine's metadata says beside what the world knows, by machine."""
        ...

    def wake(self) -> None:
        """The world was changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    operation: Operation
    values: dict[str, Any]
    region: str
    now: float  # in the world
    lab: Lab
    places: Places
    registry: Registry
    fault: Fault | None = None  # one that changes how the request is carried out

    @property
    def world(self) -> World:
        return self.lab.world

    @property
    def account(self) -> str:
        return self.lab.account.id

    @property
    def office(self) -> Office:
        return self.registry.office(self.account, self.region)

    def seen(self) -> tuple[Machine, ...]:
        """The machines that a listing of this region shows."""
        return self.world.machines(self.account, self.region, self.now)

    def has(self, kind: FaultKind) -> bool:
        return self.fault is not None and self.fault.kind is kind


Handler = Callable[[Call], dict[str, Any]]


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
