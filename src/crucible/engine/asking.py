"""Who asks: a node speaks for the attempts whose ranks it runs, while they live."""

from dataclasses import dataclass

from crucible.engine.checkpoints import LIVE
from crucible.engine.context import Context
from crucible.model.attempt import Attempt
from crucible.model.errors import Forbidden, NotFound
from crucible.model.ids import AttemptId, NodeId
from crucible.model.job import Job


@dataclass(frozen=True, slots=True)
class Asker:
    attempt: Attempt
    job: Job


async def asker(context: Context, node_id: NodeId, attempt_id: str) -> Asker:
    """Forbidden, not NotFound: the node itself is still wanted."""
    try:
        attempt = await context.store.attempt(AttemptId(attempt_id))
    except NotFound:
        raise Forbidden("no such attempt is alive here") from None
    if attempt.phase not in LIVE or not any(rank.node_id == node_id for rank in attempt.ranks):
        raise Forbidden("no such attempt is alive here")
    return Asker(attempt, await context.store.job(attempt.job_id))


async def place_of(context: Context, node_id: NodeId) -> str:
    """The "provider/region" of a node."""
    target = (await context.store.lease((await context.store.node(node_id)).lease_id)).target
    return f"{target.provider}/{target.region}"
