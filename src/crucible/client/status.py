"""What a job looks like to a program that stays with it: how far, how much, and where, with each move to another
backend told once. Made of what the server says; it asks nothing itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crucible.client.shapes import TERMINAL, JobEvent, JobView
from crucible.model.backends import backend_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    id: str
    name: str
    phase: str  # pending, scheduled, provisioning, running, checkpointing, completed, failed, cancelled
    backend: str | None  # where it runs, or ran last; None until it has a place
    region: str | None
    progress: float  # percent: as the job reports it; 0 until it does, 100 once it is completed
    step: int | None
    cost: float  # US dollars so far
    estimated_cost: float | None
    reason: str | None  # why it waits, or how it ended
    backend_changed: bool = False  # true once for each move
    previous_backend: str | None = None  # before the last move
    notes: tuple[str, ...] = ()  # what was decided for you at submission

    @property
    def is_over(self) -> bool:
        return self.phase in TERMINAL


class Story:
    """What one reader was told of a job."""

    def __init__(self, notes: Sequence[str] = ()) -> None:
        self._notes = tuple(notes)
        self._backend: str | None = None
        self._previous: str | None = None
        self._seen: object = None
        self._told: Status | None = None
        self.cursor = 0  # the last event that was read

    def needs_events(self, job: JobView) -> bool:
        """Whether the job may have moved since the last look: only then its events are worth reading."""
        seen = (job["selected"], job.get("attempts"))
        if seen == self._seen:
            return False
        self._seen = seen
        return job["selected"] is not None

    def tell(self, job: JobView, events: Sequence[JobEvent] = ()) -> Iterator[Status]:
        """One status for each move, and one more if anything else is new."""
        for event in events:
            self.cursor = max(self.cursor, event.get("seq", 0))
        now = status_of(job, self._notes)
        for name in self._places(events):
            if self._moves_to(name):
                yield self._tell(now, has_moved=True)
        if self._backend is None:
            self._backend = now.backend
        if self._is_news(now):
            yield self._tell(now, has_moved=False)

    def _moves_to(self, name: str) -> bool:
        """Whether it was elsewhere before."""
        before, self._backend = self._backend, name
        if before is None or before == name:
            return False
        self._previous = before
        return True

    def _places(self, events: Sequence[JobEvent]) -> list[str]:
        """Where it was placed, oldest first. A poll may miss a place; the log does not."""
        bodies = [event.get("body", {}) for event in events if event.get("type") == "JobAllocated"]
        return [backend_name(body["provider"], body.get("backend"), is_spot=bool(body["is_spot"])) for body in bodies]

    def _is_news(self, now: Status) -> bool:
        return self._told is None or self._placed(now) != replace(self._told, backend_changed=False)

    def _tell(self, now: Status, *, has_moved: bool) -> Status:
        self._told = replace(self._placed(now), backend_changed=has_moved)
        return self._told

    def _placed(self, now: Status) -> Status:
        return replace(now, backend=self._backend, previous_backend=self._previous)


def status_of(job: JobView, notes: Sequence[str] = ()) -> Status:
    """The job at one moment, without its past."""
    selected, progress = job["selected"], job.get("progress")
    return Status(
        id=job["id"],
        name=job["name"],
        phase=job["status"],
        backend=_backend(job),
        region=selected.get("region") if selected else None,
        progress=_percent(job),
        step=progress.get("step") if progress else None,
        cost=job["cost"].get("running_usd", 0.0),
        estimated_cost=job["cost"].get("estimated_usd"),
        reason=job.get("reason"),
        notes=tuple(notes),
    )


def _backend(job: JobView) -> str | None:
    selected = job["selected"]
    provider = selected.get("provider") if selected else None
    if selected is None or provider is None:
        return None
    return backend_name(provider, selected.get("backend"), is_spot=bool(selected.get("spot")))


def _percent(job: JobView) -> float:
    if job["status"] == "completed":
        return 100.0
    fraction = (job.get("progress") or {}).get("fraction")
    return round(100.0 * (fraction or 0.0), 1)
