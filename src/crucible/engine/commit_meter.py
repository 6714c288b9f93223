"""Watches the store, and counts what this server committed: jobs, attempts, purchases, machines that came and went,
checkpoints. It hears of a commit after it is on disk, changes nothing, and is quick: every commit waits for it."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from crucible.engine import metrics
from crucible.model.attempt import Attempt, AttemptEnded, AttemptStarted, CheckpointBegan, CheckpointCommitted, Outcome
from crucible.model.change import Change
from crucible.model.ids import AttemptId
from crucible.model.job import JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.lease import (
    Lease,
    NodeBound,
    OrderAbandoned,
    OrderFilled,
    OrderRefused,
    OrderUnanswered,
)
from crucible.model.record import Checkpoint, Record
from crucible.model.task import TaskPlaced
from crucible.ports.meter import Instrument, Meter, Metric

# Begun checkpoints and attempts to look at that are remembered; an older one is not measured.
REMEMBERED = 10_000
_PURCHASES = {
    OrderFilled: "filled",
    OrderRefused: "refused",
    OrderAbandoned: "abandoned",
    OrderUnanswered: "unanswered",
}


class CommitMeter:
    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._write_time = meter.histogram(metrics.WRITE_TIME)
        self.writes_waiting = 0
        self._bound: dict[tuple[str, ...], Instrument] = {}
        self._began: OrderedDict[AttemptId, datetime] = OrderedDict()
        self.started_again: deque[Attempt] = deque(maxlen=REMEMBERED)
        """Attempts that are not their task's first: how long that took is for whoever has time to look."""
        self._show()

    def began(self) -> None:
        self.writes_waiting += 1

    def ended(self, seconds: float) -> None:
        self.writes_waiting -= 1
        self._write_time(seconds)

    def committed(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        for change in changes:
            for event in change.events:
                self._event(change.after, event)
        for record in records:
            if isinstance(record, Checkpoint):
                self._count(metrics.CHECKPOINTS)
                self._count(metrics.CHECKPOINT_BYTES, amount=record.size_bytes)
        for change in changes:
            if isinstance(change.after, Lease) and _is_news_of_taking(change):
                self._count(metrics.PREEMPTIONS, change.after.target.provider, change.after.target.region)

    def _event(self, after: Any, event: Any) -> None:
        match event:
            case JobSubmitted():
                self._count(metrics.JOBS_SUBMITTED)
            case JobStatusChanged(status=status) if status.is_terminal:
                self._count(metrics.JOBS_ENDED, status)
            case TaskPlaced():
                self._count(metrics.PLACEMENTS)
            case AttemptEnded(outcome=outcome):
                self._began.pop(after.id, None)
                self._count(metrics.ATTEMPTS_ENDED, outcome)
            case AttemptStarted() if after.number > 0:
                self.started_again.append(after)
            case OrderFilled() | OrderRefused() | OrderAbandoned() | OrderUnanswered():
                self._count(metrics.ORDERS, after.target.provider, _PURCHASES[type(event)])
            case NodeBound(at=at):
                self._observe(metrics.LAUNCH, (at - after.created_at).total_seconds(), after.target.provider)
            case CheckpointBegan(at=at):
                self._remember(after.id, at)
            case CheckpointCommitted(at=at, step=step):
                began = self._began.pop(after.id, None)
                if began is not None and step is not None:
                    self._observe(metrics.CHECKPOINT_TIME, (at - began).total_seconds())

    def _remember(self, attempt_id: AttemptId, at: datetime) -> None:
        self._began.setdefault(attempt_id, at)
        if len(self._began) > REMEMBERED:
            self._began.popitem(last=False)

    def _count(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        key = (metric.name, *labels)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self.meter.counter(metric, *labels)
        found(amount)

    def _observe(self, metric: Metric, value: float, *labels: str) -> None:
        key = (metric.name, *labels)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self.meter.histogram(metric, *labels)
        found(max(0.0, value))

    def _show(self) -> None:
        """Whatever may happen is shown at nothing: a graph of it has no holes, and a first one is a step."""
        for metric in (metrics.JOBS_SUBMITTED, metrics.PLACEMENTS, metrics.CHECKPOINTS, metrics.CHECKPOINT_BYTES):
            self._count(metric, amount=0)
        for status in JobStatus:
            if status.is_terminal:
                self._count(metrics.JOBS_ENDED, status, amount=0)
        for outcome in Outcome:
            self._count(metrics.ATTEMPTS_ENDED, outcome, amount=0)
        for histogram in (metrics.RECOVERY, metrics.CHECKPOINT_TIME):
            self.meter.histogram(histogram)

    def expect(self, places: Iterable[tuple[str, str]]) -> None:
        """The same of the providers and regions that are enabled."""
        for provider, region in places:
            self._count(metrics.PREEMPTIONS, provider, region, amount=0)
            for came in _PURCHASES.values():
                self._count(metrics.ORDERS, provider, came, amount=0)
            self.meter.histogram(metrics.LAUNCH, provider)


def _is_news_of_taking(change: Change) -> bool:
    """Two events may say so, one after the other, of one machine."""
    assert isinstance(change.after, Lease)
    before = change.before
    was = isinstance(before, Lease) and before.was_taken
    return change.after.was_taken and not was
