"""What jobs have cost up to now: what is in the ledger, and what still runs. A workflow costs what its steps' jobs
cost."""

from collections.abc import Collection, Mapping

from crucible.core.ledger import accrued
from crucible.model.ids import JobId
from crucible.model.units import MicroUsd
from crucible.ports.clock import Clock
from crucible.ports.store import Store
from crucible.ports.workflows import Shape


async def so_far_of(store: Store, clock: Clock, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
    return await so_far(store, clock, await store.job_costs(job_ids), await store.workflows(job_ids))


async def so_far(
    store: Store, clock: Clock, posted: Mapping[JobId, int], workflows: Mapping[JobId, Shape]
) -> Mapping[JobId, MicroUsd]:
    """`posted` is in the ledger already, in the names of the jobs themselves."""
    now, total = clock.now(), dict(posted)
    owner = {child: job_id for job_id, shape in workflows.items() for child in shape.children}
    for job_id, shape in workflows.items():
        total[job_id] += shape.posted
    for usage in await store.open_usages_of([*posted, *(child for child in owner if child not in posted)]):
        for job_id in {usage.job_id, owner.get(usage.job_id, usage.job_id)} & total.keys():
            total[job_id] += accrued(usage, now)
    return {job_id: MicroUsd(cost) for job_id, cost in total.items()}
