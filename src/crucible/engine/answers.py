"""What was planned just now, for whoever asks the same again: a burst of equal jobs is thought about once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from crucible.core.crew_plan import Held, Scaling
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.proposal import Candidate, Proposal
from crucible.core.relaunch import Relaunch
from crucible.model.record import Prediction
from crucible.model.spec import JobSpec, Retry, Strategy
from crucible.model.units import MicroUsd

REMEMBERED = 256
# Odds of a deadline and ages of prices move with the clock; plans a minute apart are told apart.
HOLDS_FOR = timedelta(minutes=1)

# What a job runs, not where: planning never sees it, so jobs that differ only in this have the same plan.
UNSEEN: Mapping[str, Any] = {
    "name": None,
    "entrypoint": None,
    "args": (),
    "command": (),
    "code": None,
    "setup": (),
    "env": {},
    "secrets": (),
    "volumes": {},
    "inputs": {},  # what bringing them costs is in `data`
    "model": None,
    "retry": Retry(),
    "timeout": None,
    "priority": 0,
    "project": None,
    "template": None,
    "given": {},
}
SEEN = tuple(field.name for field in fields(JobSpec) if field.name not in UNSEEN)

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a job that is to run, and what is expected of it."""

    text: str  # of its view, as JSON: written once for all jobs that share it
    expected: Prediction | None  # its job is yet to be named
    cost: MicroUsd | None = None  # of a workflow: of all its steps
    way: Candidate | None = None  # what it would run on; of a workflow nobody says


def essence(spec: JobSpec) -> JobSpec:
    """What planning sees of a job."""
    return replace(spec, **UNSEEN)


class Answers:
    """About one table, one book of speeds and one minute."""

    def __init__(self, table: OfferTable, book: SpeedBook, now: datetime) -> None:
        self.table = table
        self.book = book
        self.now = now
        self._plans: Memory[Planned] = Memory()
        self._proposals: Memory[Proposal] = Memory()
        self._purchases: Memory[tuple[Candidate | None]] = Memory()
        self._relaunches: Memory[tuple[Relaunch | None]] = Memory()
        self._scalings: Memory[Scaling] = Memory()

    def hold(self, table: OfferTable, book: SpeedBook, now: datetime) -> bool:
        return self.table is table and self.book is book and timedelta(0) <= now - self.now < HOLDS_FOR

    def plan(self, spec: JobSpec, make: Callable[[], Planned]) -> Planned:
        return self._plans.recall(key_of(spec), make)

    def purchase(self, spec: JobSpec, make: Callable[[], Candidate | None]) -> Candidate | None:
        return self._purchases.recall(key_of(spec), lambda: (make(),))[0]

    def relaunch(self, spec: JobSpec, make: Callable[[], Relaunch | None]) -> Relaunch | None:
        return self._relaunches.recall(key_of(spec), lambda: (make(),))[0]

    def scaling(
        self, spec: JobSpec, left: int, held: tuple[Held, ...], has_begun: bool, make: Callable[[], Scaling]
    ) -> Scaling:
        return self._scalings.recall((key_of(spec), left, held, has_begun), make)

    def proposal(
        self, spec: JobSpec, strategy: Strategy | None, offers: OfferTable, make: Callable[[], Proposal]
    ) -> Proposal:
        """`offers` are the table, or the table as if nothing were taken."""
        return self._proposals.recall((key_of(spec), strategy, offers is self.table), make)


class Memory(Generic[V]):
    """The newest few."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, V] = OrderedDict()

    def recall(self, key: Hashable, make: Callable[[], V]) -> V:
        try:
            known = self._known.get(key)
        except TypeError:  # a list of trials or steps has open mappings: such a job is thought about every time
            return make()
        if known is None:
            known = self._known[key] = make()
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known


def key_of(spec: JobSpec) -> Hashable:
    return tuple(getattr(spec, name) for name in SEEN)
