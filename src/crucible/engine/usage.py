"""How machines are used, sample by sample: of what nodes report all the time, one in a while is kept, in the stream of
the task that holds the machine. A sample that is lost is only a gap."""

from collections.abc import Mapping
from dataclasses import dataclass

from crucible.engine.context import Context, log
from crucible.model.errors import Busy, StorageFailed
from crucible.model.ids import NodeId, TaskId
from crucible.ports.streams import MetricPoint

# Figures of one node: eight GPUs have less than a hundred.
MOST_FIGURES = 500


@dataclass(frozen=True, slots=True)
class Whence:
    """A node as its samples name it: the task that holds it, the attempt and the first rank that runs there."""

    task_id: TaskId
    attempt: int
    rank: int


class UsageBook:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept_at: dict[NodeId, float] = {}
        self._new: dict[TaskId, list[MetricPoint]] = {}

    def note(self, node_id: NodeId, whence: Whence, figures: Mapping[str, float]) -> None:
        clock = self._context.clock
        since = clock.monotonic() - self._kept_at.get(node_id, float("-inf"))
        if not figures or since < self._context.policy.usage_every.total_seconds():
            return
        self._kept_at[node_id] = clock.monotonic()
        at_ms = round(clock.now().timestamp() * 1000)
        values = dict(list(figures.items())[:MOST_FIGURES])
        point = MetricPoint(whence.attempt, whence.rank, 0, at_ms, None, values)
        self._new.setdefault(whence.task_id, []).append(point)

    async def flush(self) -> None:
        new, self._new = self._new, {}
        for task_id, points in new.items():
            try:
                await self._context.streams.append_samples(task_id, points)
            except (Busy, StorageFailed) as error:
                log.warning("samples of %s are lost: %s", task_id, error)
        self._forget()

    def _forget(self) -> None:
        """Nodes that have said nothing for long are gone."""
        oldest = self._context.clock.monotonic() - 10 * self._context.policy.usage_every.total_seconds()
        if len(self._kept_at) > 10_000:
            self._kept_at = {node: at for node, at in self._kept_at.items() if at > oldest}
