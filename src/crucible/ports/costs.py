"""Sums of costs. Stretches and postings are the truth; sums follow from them, and are kept so that a year can be asked
for at once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from crucible.model.costs import Charged, CostFacts, CostPart, CostQuery, Moved
from crucible.model.ids import JobId, NodeId, UserId

if TYPE_CHECKING:
    from crucible.ports.store import Claim

Cut = Callable[[Sequence[Charged], Sequence[Moved]], Sequence[CostPart]]


class CostBook(Protocol):
    async def costs(self, query: CostQuery) -> CostFacts:
        """One moment: sums of what was added up, and every stretch and posting that is not among them yet. Raises Busy
        while there are more of these than can be looked at."""
        ...

    async def add_up(self, cut: Cut, before: datetime, limit: int, *, claim: "Claim") -> int:
        """One transaction: of the stretches that ended before then, and of the postings without a stretch, the next few
        are cut into parts and join the sums. Returns how many. Raises StaleClaim."""
        ...

    async def job_names(self, job_ids: Collection[JobId]) -> Mapping[JobId, str]: ...
    async def user_names(self, user_ids: Collection[UserId]) -> Mapping[UserId, str]:
        """Of those whose names are known."""
        ...

    async def enrolments(self, job_id: JobId) -> Mapping[NodeId, datetime]:
        """When the agent of each of its machines came."""
        ...
