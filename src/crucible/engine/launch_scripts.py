"""How a job is started, as a script: by its newest attempt that has machines, else by machines that it could have."""

from crucible.agent import bundle
from crucible.core.launch import recipe
from crucible.core.launch_script import imagined, script
from crucible.engine.context import Context
from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.job import Job


async def launch_script(context: Context, job: Job, rank: int | None, task_index: int = 0) -> tuple[str, bool]:
    """The script, and whether it names real machines. Raises NotFound, InvalidRequest."""
    task = next(iter(await context.store.tasks_between(job.id, task_index, task_index + 1)), None)
    if task is None:
        raise NotFound(f"the job has no task {task_index}")
    spec, place = context.spec_of(job), context.folder_of(job, task.index)
    tried = [one for one in await context.store.job_attempts(job.id) if one.task_id == task.id and one.ranks]
    attempt = max(tried, key=lambda one: one.number, default=None)
    chosen = attempt or imagined(job, spec, task.id, context.clock.now())
    wanted = [one for one in chosen.ranks if rank is None or one.rank == rank]
    if not wanted:
        last = max(one.rank for one in chosen.ranks)
        raise InvalidRequest(f"the job has no rank {rank}; its ranks are 0 to {last}", field="rank")
    launches = [recipe(job, task, spec, chosen, one, place, False, context.policy) for one in wanted]
    return script(job, launches, bundle.launcher_sources(), attempt is not None), attempt is not None
