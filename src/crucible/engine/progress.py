"""How far tasks are, as their nodes tell it. Not events: the newest wins, and it is written late and together. Of a
trial also what it is worth, which must not be lost: the stream of its metrics has every point, and whatever an earlier
server heard and did not write is read from there."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from crucible.core.pruning import followed
from crucible.engine.context import Context
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.record import Progress
from crucible.model.spec import JobSpec
from crucible.model.sweep import Objective, Pruning
from crucible.ports.streams import MetricPoint
from crucible.wire import agent as wire

# Tasks whose newest words are kept here; of another one they are read again.
REMEMBERED = 20_000
# Different names that one task may report; the oldest are forgotten.
MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Whose:
    """A task, the attempt of it that speaks, and how it is judged; None: nobody compares it with others."""

    task_id: TaskId
    job_id: JobId
    attempt_id: AttemptId
    attempt: int  # its number
    course: "Course | None"


@dataclass(frozen=True, slots=True)
class Course:
    objective: Objective | None
    pruning: Pruning | None


def course_of(spec: JobSpec) -> Course | None:
    if spec.sweep is not None:
        return Course(spec.sweep.objective, spec.sweep.pruning)
    return None if spec.evaluation is None else Course(None, None)


class ProgressBook:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: OrderedDict[TaskId, Progress] = OrderedDict()
        self._new: dict[TaskId, Progress] = {}

    def news(self) -> list[Progress]:
        """What is to be written; asked once, it is handed over."""
        news, self._new = list(self._new.values()), {}
        return news

    def take_back(self, news: Sequence[Progress]) -> None:
        """It could not be written, and is to be written still, but for what newer words have taken the place of."""
        self._new = {one.task_id: one for one in news} | self._new

    async def note_progress(self, whose: Whose, item: wire.ProgressReport) -> None:
        before = await self._before(whose)
        fraction = item.fraction
        if fraction is None and item.step is not None and item.total_steps:
            fraction = min(1.0, item.step / item.total_steps)
        self._note(whose, replace(before, step=item.step, total_steps=item.total_steps, fraction=fraction))

    async def note_metrics(self, whose: Whose, points: Sequence[MetricPoint]) -> None:
        """Points of one rank, in the stream already."""
        before = await self._before(whose)
        if self._misses(before, points):
            before = await self._caught_up(whose, before)
        self._note(whose, with_points(before, points, whose.course))

    async def settle(self, whose: Whose) -> None:
        """Before the end of an attempt is recorded: all that the server, whichever it was, took in from it counts."""
        if whose.course is None:
            return
        before = await self._before(whose)
        taken = await self._context.streams.next_number(whose.task_id, "metrics", whose.attempt, 0)
        curve = before.curve
        if taken and (curve is None or (curve.attempt, curve.number) < (whose.attempt, taken)):
            before = await self._caught_up(whose, before)
        self._note(whose, before)

    def _note(self, whose: Whose, progress: Progress) -> None:
        said = replace(progress, attempt_id=whose.attempt_id, at=self._context.clock.now())
        self._new[whose.task_id] = said
        self._remember(said)

    def _remember(self, progress: Progress) -> None:
        self._known[progress.task_id] = progress
        self._known.move_to_end(progress.task_id)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def _before(self, whose: Whose) -> Progress:
        known = self._known.get(whose.task_id)
        if known is not None:
            return known
        stored = await self._context.store.task_progress(whose.task_id)
        nothing = Progress(
            task_id=whose.task_id, job_id=whose.job_id, attempt_id=whose.attempt_id, at=self._context.clock.now()
        )
        found = stored or nothing
        if whose.course is not None:
            found = await self._caught_up(whose, found)
        self._remember(found)
        return found

    def _misses(self, before: Progress, points: Sequence[MetricPoint]) -> bool:
        """Another server has heard some in between."""
        curve, first = before.curve, points[0]
        if curve is None or first.rank != 0:
            return False
        return first.n > (curve.number if curve.attempt == first.attempt else 0)

    async def _caught_up(self, whose: Whose, before: Progress) -> Progress:
        """With every point of the stream; those that are in `before` already count once."""
        offset = 0
        while True:
            chunk = await self._context.streams.read_metrics(whose.task_id, offset)
            before = with_points(before, chunk.points, whose.course)
            if chunk.is_end or chunk.next_offset == offset:
                return before
            offset = chunk.next_offset


def with_points(before: Progress, points: Sequence[MetricPoint], course: Course | None) -> Progress:
    """In their order. The first rank speaks for the trial."""
    if not points:
        return before
    step = next((point.step for point in reversed(points) if point.step is not None), before.step)
    metrics = merged(before.metrics, (point.values for point in points))
    curve = before.curve
    if course is not None:
        name = course.objective.metric if course.objective is not None else None
        for attempt in dict.fromkeys(point.attempt for point in points):
            mine = [point for point in points if point.attempt == attempt and point.rank == 0]
            said = [(one.n, one.step, None if name is None else one.values.get(name)) for one in mine]
            curve = followed(curve, attempt, said, course.objective, course.pruning)
    return replace(before, step=step, metrics=metrics, curve=curve)


def merged(before: Mapping[str, float], more: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The last of each name."""
    found = dict(before)
    for values in more:
        found |= values
    surplus = len(found) - MOST_NAMES
    return found if surplus <= 0 else dict(list(found.items())[surplus:])
