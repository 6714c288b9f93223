"""What jobs have cost up to now: what is in the ledger, and what still runs. A workflow costs what its steps' jobs
cost."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from crucible.core.costs import per_hour
from crucible.core.ledger import accrued
from crucible.model.ids import JobId
from crucible.model.units import MicroUsd
from crucible.ports.clock import Clock
from crucible.ports.store import Store
from crucible.ports.workflows import Shape


class Spent(NamedTuple):
    so_far: MicroUsd
    per_hour: MicroUsd  # of what runs now


async def so_far_of(store: Store, clock: Clock, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
    found = await spent(store, clock, await store.job_costs(job_ids), await store.workflows(job_ids))
    return {job_id: one.so_far for job_id, one in found.items()}


async def spent(
    store: Store, clock: Clock, posted: Mapping[JobId, int], workflows: Mapping[JobId, Shape]
) -> Mapping[JobId, Spent]:
    """`posted` is in the ledger already, in the names of the jobs themselves."""
    now, total, rates = clock.now(), dict(posted), dict.fromkeys(posted, 0)
    owner = {child: job_id for job_id, shape in workflows.items() for child in shape.children}
    for job_id, shape in workflows.items():
        total[job_id] += shape.posted
    for usage in await store.open_usages_of([*posted, *(child for child in owner if child not in posted)]):
        for job_id in {usage.job_id, owner.get(usage.job_id, usage.job_id)} & total.keys():
            total[job_id] += accrued(usage, now)
            rates[job_id] += per_hour([usage])
    return {job_id: Spent(MicroUsd(cost), MicroUsd(rates[job_id])) for job_id, cost in total.items()}
