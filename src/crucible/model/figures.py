"""What a whole deployment is doing, added up: for graphs and alerts, no job and no person can be told from it; and what
the jobs that somebody sees are doing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from crucible.model.job import JobStatus
from crucible.model.lease import LeasePhase
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """So many tasks wait and say the same."""

    reason: str | None
    has_run: bool
    tasks: int


@dataclass(frozen=True, slots=True)
class HeldAt:
    provider: str
    region: str
    phase: LeasePhase
    machines: int
    gpus: int
    busy_gpus: int  # of machines whose task runs


@dataclass(frozen=True, slots=True)
class Account:
    """Whose money is added up."""

    provider: str
    is_spot: bool
    team: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is under way: as much to read as is under way, however much has been before."""

    jobs: Mapping[JobStatus, int]  # that have not ended
    waiting: Sequence[WaitingFor]
    waiting_since: datetime | None  # the oldest of them
    held: Sequence[HeldAt]
    rates: Mapping[Account, MicroUsd]  # per hour
    gpu_percents: Mapping[str, Sequence[float]]  # by the name of the GPU, one of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What has been since the beginning."""

    jobs: Mapping[JobStatus, int]  # that have ended
    spent: Mapping[Account, MicroUsd]  # what still runs included
    imbalance: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Of some jobs: how many there are, and what is held for them now."""

    jobs: Mapping[JobStatus, int]  # no more than were counted: see the store
    machines: int
    gpus: int
    busy_gpus: int  # of machines whose task runs
    per_hour: MicroUsd
