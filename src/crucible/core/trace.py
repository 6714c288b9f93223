"""The trace of a job: spans from its log, all at once when it has ended. Names and times follow from what is stored, so
that making a trace again makes the same one, and a restart in between leaves no trace.

    job ─┬ submit                                   the request, with its plan
         ├ plan                                     from waiting to a place, once for each attempt
         └ attempt ─┬ order ── boot ── enrol        one boot for each machine
                    └ run                           the program; checkpoints are moments of it
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from crucible.model.attempt import Attempt, Outcome
from crucible.model.ids import AttemptId, JobId
from crucible.model.job import JobStatus
from crucible.model.lease import Lease, Order
from crucible.model.span import Link, Moment, Span, Story, Told, Value, parse_traceparent
from crucible.model.task import Task

# A job of ten thousand tasks is not read span by span: the first are kept, and the trace says how many are not.
MOST_SPANS = 2000
SETTLED = ("OrderFilled", "OrderRefused", "OrderAbandoned")
GONE = ("LeaseClosing", "LeaseClosed")
GOOD = (Outcome.SUCCEEDED, Outcome.HELD)
MOMENTS = {"CheckpointCommitted": "checkpoint", "MemberLost": "member lost", "MemberJoined": "member joined"}


def trace_id(job_id: JobId) -> str:
    return _digest("trace", job_id)[:32]


def span_id(name: str, entity_id: str) -> str:
    return _digest(name, entity_id)[:16]


def traceparent(job_id: JobId, attempt_id: AttemptId) -> str:
    """For the program of an attempt: what it traces hangs below its run."""
    return f"00-{trace_id(job_id)}-{span_id('run', attempt_id)}-01"


def spans(story: Story) -> tuple[Span, ...]:
    """The root first, then by time."""
    made = _Trace(story, _Log.of(story.log))
    root, rest = made.root(), sorted(made.below(), key=lambda span: (span.started_at, span.ended_at, span.span_id))
    left_out = max(0, len(rest) - MOST_SPANS + 1)
    if left_out or not story.is_whole:
        root = made.root({"crucible.spans_left_out": left_out or "some"})
    return root, *rest[: MOST_SPANS - 1]


def _digest(name: str, entity_id: str) -> str:
    return sha256(f"crucible {name} {entity_id}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Log:
    by_entity: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, lines: Sequence[Told]) -> "_Log":
        log = cls()
        for line in lines:
            log.by_entity[line.entity_id].append(line)
        return log

    def first(self, entity_id: str | None, *types: str) -> Told | None:
        return next((line for line in self.by_entity.get(entity_id or "", ()) if line.type in types), None)

    def last(self, entity_id: str | None, *types: str) -> Told | None:
        return next((line for line in reversed(self.by_entity.get(entity_id or "", ())) if line.type in types), None)


@dataclass(frozen=True, slots=True)
class _Trace:
    story: Story
    log: _Log

    @property
    def ended_at(self) -> datetime:
        """Of the job, as its log tells it."""
        job = self.story.job
        ended = self.log.last(job.id, "JobStatusChanged")
        return ended.at if ended is not None else job.finished_at or job.created_at

    def root(self, more: dict[str, Value] | None = None) -> Span:
        job = self.story.job
        given = self.log.first(job.id, "JobSubmitted")
        asked = parse_traceparent(None if given is None else given.body.get("traceparent"))
        above = None if job.parent is None else Link(trace_id(job.parent), span_id("job", job.parent))
        said: dict[str, Value | None] = {
            "crucible.job.id": job.id,
            "crucible.job.name": job.name,
            "crucible.job.status": job.status.value,
            "crucible.job.type": job.job_type.value,
            "crucible.job.gpus": job.gpus,
            "crucible.team": job.team,
            "crucible.project": job.project,
        }
        return self._span(
            "job",
            job.id,
            None,
            job.created_at,
            self.ended_at,
            {**said, **(more or {})},
            links=tuple(link for link in (asked, above) if link is not None),
            error=job.reason or "failed" if job.status is JobStatus.FAILED else None,
        )

    def below(self) -> Iterator[Span]:
        yield from self._submit()
        tasks = {task.id: task for task in self.story.tasks}
        claimed: set[str] = set()
        before: dict[str, Attempt] = {}
        for attempt in sorted(self.story.attempts, key=lambda one: (one.task_id, one.number)):
            task = tasks.get(attempt.task_id)
            if task is not None:
                yield from self._attempt(attempt, task, before.get(task.id))
                yield from self._orders(attempt, claimed)
                before[task.id] = attempt

    def _submit(self) -> Iterator[Span]:
        job = self.story.job
        given = self.log.first(job.id, "JobSubmitted")
        accepted = None if given is None else given.body.get("accepted_at")
        if given is not None and accepted is not None:
            yield self._span("submit", job.id, ("job", job.id), given.at, datetime.fromisoformat(accepted), {})

    def _attempt(self, attempt: Attempt, task: Task, before: Attempt | None) -> Iterator[Span]:
        root = ("job", self.story.job.id)
        about: dict[str, Value | None] = {"crucible.task.index": task.index, "crucible.attempt.number": attempt.number}
        waited = task.created_at if before is None else before.ended_at or attempt.created_at
        yield self._span("plan", attempt.id, root, waited, attempt.created_at, about)
        outcome = None if attempt.outcome is None else attempt.outcome.value
        ended_at = attempt.ended_at or self.ended_at
        error = attempt.reason or outcome if attempt.outcome not in GOOD else None
        links = () if before is None else (Link(trace_id(self.story.job.id), span_id("attempt", before.id)),)
        said = {**about, "crucible.attempt.id": attempt.id, "crucible.attempt.outcome": outcome}
        yield self._span("attempt", attempt.id, root, attempt.created_at, ended_at, said, links=links, error=error)
        began = self.log.first(attempt.id, "AttemptStarted")
        if began is not None:
            more = {**about, "crucible.resume_step": attempt.resume_step}
            moments, below = tuple(self._moments(attempt)), ("attempt", attempt.id)
            yield self._span("run", attempt.id, below, began.at, ended_at, more, moments=moments, error=error)

    def _moments(self, attempt: Attempt) -> Iterator[Moment]:
        for line in self.log.by_entity.get(attempt.id, ()):
            step = line.body.get("step")
            if line.type == "CheckpointCommitted" and step is None:
                continue  # it stopped checkpointing, and nothing came of it
            if line.type in MOMENTS:
                yield Moment(MOMENTS[line.type], line.at, {} if step is None else {"step": step})

    def _orders(self, attempt: Attempt, claimed: set[str]) -> Iterator[Span]:
        """Those that were placed for it: what it took over from the attempt before is that one's."""
        mine = [lease for lease in self.story.leases if lease.id in attempt.leases and lease.order_id not in claimed]
        orders = {order.id: order for order in self.story.orders}
        for order_id in dict.fromkeys(lease.order_id for lease in mine):
            claimed.add(order_id)
            yield self._order(attempt, orders[order_id])
            for lease in mine:
                if lease.order_id == order_id:
                    yield from self._boot(lease)

    def _order(self, attempt: Attempt, order: Order) -> Span:
        settled = self.log.last(order.id, *SETTLED)
        said: dict[str, Value | None] = {
            "crucible.provider": order.target.provider,
            "crucible.region": order.target.region,
            "crucible.instance_type": order.instance_type,
            "crucible.market": "spot" if order.is_spot else "on_demand",
            "crucible.machines": order.count,
        }
        moments = tuple(
            Moment("no answer", line.at)
            for line in self.log.by_entity.get(order.id, ())
            if line.type == "OrderUnanswered"
        )
        is_filled = settled is not None and settled.type == "OrderFilled"
        until = settled.at if settled is not None else self.ended_at
        return self._span(
            "order",
            order.id,
            ("attempt", attempt.id),
            order.created_at,
            until,
            said,
            moments=moments,
            error=None if is_filled else order.reason or "never filled",
        )

    def _boot(self, lease: Lease) -> Iterator[Span]:
        started, bound = self.log.first(lease.id, "LeaseStarted"), self.log.first(lease.id, "NodeBound")
        if started is None:
            return
        gone = self.log.first(lease.id, *GONE)
        until = next((line.at for line in (bound, gone) if line is not None), self.ended_at)
        above, said = ("order", lease.order_id), {"crucible.machine.index": lease.index}
        error = None if bound is not None else lease.reason or "its agent never came"
        yield self._span("boot", lease.id, above, started.at, until, said, error=error)
        enrolled = self.log.first(lease.node_id, "NodeEnrolled")
        if enrolled is not None and bound is not None:
            yield self._span("enrol", lease.id, ("boot", lease.id), enrolled.at, bound.at, {})

    def _span(
        self,
        name: str,
        entity_id: str,
        above: tuple[str, str] | None,
        started_at: datetime,
        ended_at: datetime,
        attributes: Mapping[str, Value | None],
        *,
        moments: tuple[Moment, ...] = (),
        links: tuple[Link, ...] = (),
        error: str | None = None,
    ) -> Span:
        """A clock that was set back makes no span that ends before it begins."""
        return Span(
            trace_id=trace_id(self.story.job.id),
            span_id=span_id(name, entity_id),
            parent_id=None if above is None else span_id(*above),
            name=name,
            started_at=started_at,
            ended_at=max(started_at, ended_at),
            attributes={key: value for key, value in attributes.items() if value is not None},
            moments=moments,
            links=links,
            error=error,
        )
