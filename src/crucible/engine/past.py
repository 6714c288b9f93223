"""What a task has behind it, read from the database: its newest checkpoint, its progress, and what its job has cost."""

from crucible.core.costs import so_far
from crucible.core.relaunch import NO_PAST, Past, share_done
from crucible.engine.context import Context
from crucible.model.tree import TaskTree
from crucible.model.units import MicroUsd


async def past_of(context: Context, tree: TaskTree) -> Past:
    job, store = tree.job, context.store
    if tree.task.attempts == 0 and job.lineage == job.id:
        return NO_PAST
    saved_step = await store.newest_step(job.lineage, tree.task.index)
    progress = await store.task_progress(tree.task.id)
    posted = (await store.job_costs([job.id])).get(job.id, MicroUsd(0))
    running = so_far(await store.open_usages_of([job.id]), context.clock.now())
    return Past(
        saved_step=saved_step,
        done=share_done(saved_step, context.spec_of(job), progress),
        spent=MicroUsd(posted + running),
    )
