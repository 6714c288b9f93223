"""A workflow's steps as they stand: each with its task and the job that works for it."""

from collections.abc import Sequence

from crucible.core.workflow import Part
from crucible.engine.context import Context
from crucible.model.job import Job
from crucible.model.task import Task


async def parts_of(context: Context, job: Job) -> Sequence[Part]:
    """In the order of the spec; empty for a job that is no workflow."""
    steps = context.spec_of(job).steps
    if not steps:
        return ()
    tasks = {task.index: task for task in await context.store.job_tasks(job.id)}
    children = {child.step: child for child in await context.store.child_jobs(job.id)}
    found = []
    for index, step in enumerate(steps):
        task, child = tasks[index], children.get(index)
        came = None if task.phase.is_terminal else await came_of(context, child)
        found.append(Part(step, task, child, came))
    return found


async def came_of(context: Context, child: Job | None) -> Task | None:
    """The only task of a job that has ended; None of one that has many."""
    if child is None or not child.status.is_terminal:
        return None
    spec = context.spec_of(child)
    if spec.sweep or spec.evaluation or spec.shards:
        return None
    work = [task for task in await context.store.job_tasks(child.id) if task.index >= 0]
    return work[0] if len(work) == 1 else None
