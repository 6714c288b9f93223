"""Where people and nodes meet. A wish is a row, so that an agent that listens to another server hears of it too; the
meeting itself is in the memory of the server that the person is at, and ends with either of the two."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from crucible.engine.context import Context
from crucible.model.attempt import Attempt, AttemptPhase, RankState
from crucible.model.channel import Channel
from crucible.model.errors import Busy, Conflict, NotFound
from crucible.model.ids import AttemptId, ChannelId, JobId, NodeId, TaskId, UserId
from crucible.model.job import Job

# An agent that hears of a wish comes at once; one that listens to another server within two seconds.
COMES_WITHIN = timedelta(seconds=20)
# At one server. A browser opens a dozen connections through one forwarded port.
MOST_OF_USER = 64
MOST_OF_NODE = 64
# Without news a meeting looks so often whether its rank still runs.
LOOK_EVERY_S = 15.0

_LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING, AttemptPhase.STOPPING)


@dataclass(frozen=True, slots=True)
class Place:
    """A rank that runs, and the node it runs on."""

    job_id: JobId
    task_id: TaskId
    attempt_id: AttemptId
    rank: int
    node_id: NodeId


@dataclass(slots=True)
class Meeting:
    """`agent` is whatever speaks to the node, once it has come; `is_over` lets it go."""

    channel: Channel
    agent: "asyncio.Future[Any]"
    is_over: asyncio.Event = field(default_factory=asyncio.Event)


class Channels:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._meetings: dict[ChannelId, Meeting] = {}
        self._seats: Counter[tuple[str, str]] = Counter()

    async def place(self, job: Job, task_id: TaskId, number: int) -> Place:
        """Raises Conflict if the job does not run now, NotFound if it has no such rank."""
        attempt = (await self._context.store.tree(task_id)).attempt
        if attempt is None or attempt.phase not in _LIVE:
            raise Conflict(
                f"job {job.name} is {job.status}; only where a rank runs is there something to reach",
                hint=f"see what it waits for with crucible why {job.name}" if not job.status.is_terminal else "",
            )
        for rank in attempt.ranks:
            if rank.rank == number:
                if rank.state is not RankState.STARTED:
                    when = "has ended" if rank.state is RankState.EXITED else "has not started yet"
                    raise Conflict(f"rank {number} of job {job.name} {when}", hint=f"crucible describe {job.name}")
                return Place(job.id, task_id, attempt.id, number, rank.node_id)
        last = max((rank.rank for rank in attempt.ranks), default=0)
        raise NotFound(f"job {job.name} has no rank {number}; it has 0 to {last}", field="rank", hint="give another")

    @contextmanager
    def seat(self, user_id: UserId, node_id: NodeId) -> Iterator[None]:
        """Raises Busy when the person or the node has too many channels."""
        seats = [("user", user_id, MOST_OF_USER), ("node", node_id, MOST_OF_NODE)]
        for kind, name, most in seats:
            if self._seats[kind, name] >= most:
                raise Busy(f"this {kind} has {most} channels open; end one first", hint="end one of them first")
        taken = Counter((kind, name) for kind, name, _ in seats)
        self._seats += taken
        try:
            yield
        finally:
            self._seats -= taken

    @asynccontextmanager
    async def meet(self, place: Place, request: Mapping[str, Any]) -> AsyncIterator[Meeting]:
        """The agent is called; whoever waits says how long."""
        context = self._context
        now = context.clock.now()
        channel = Channel(
            id=ChannelId(context.ids.new("channel")),
            node_id=place.node_id,
            url=context.url,
            expires_at=now + COMES_WITHIN,
            request={**request, "attempt_id": place.attempt_id, "rank": place.rank},
        )
        meeting = self._meetings[channel.id] = Meeting(channel, asyncio.get_running_loop().create_future())
        try:
            await context.store.add_channel(channel, now)
            context.hub.notify(place.node_id)
            yield meeting
        finally:
            meeting.is_over.set()
            if self._meetings.pop(channel.id, None) is not None:
                await self._withdraw(channel)

    async def arrive(self, node_id: NodeId, channel_id: ChannelId) -> Meeting:
        """For the agent that was called, once. Raises NotFound."""
        meeting = self._meetings.get(channel_id)
        if meeting is None or meeting.channel.node_id != node_id:
            raise NotFound("nobody waits there any more", channel=channel_id)
        del self._meetings[channel_id]
        await self._withdraw(meeting.channel)
        return meeting

    async def _withdraw(self, channel: Channel) -> None:
        await self._context.store.drop_channel(channel.id)
        self._context.hub.notify(channel.node_id)

    async def until_over(self, place: Place) -> None:
        """Returns when the rank does not run there any more."""
        context = self._context
        while True:
            counter = context.hub.counter(place.job_id)
            attempt = (await context.store.tree(place.task_id)).attempt
            if not runs(attempt, place):
                return
            await context.hub.wait(place.job_id, counter, LOOK_EVERY_S)


def runs(attempt: Attempt | None, place: Place) -> bool:
    if attempt is None or attempt.id != place.attempt_id or attempt.phase not in _LIVE:
        return False
    return any(
        rank.rank == place.rank and rank.node_id == place.node_id and rank.state is RankState.STARTED
        for rank in attempt.ranks
    )
