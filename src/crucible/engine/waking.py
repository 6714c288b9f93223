"""After a wish about a job is written: whoever carries it out is woken."""

from crucible.engine.context import Context
from crucible.model.ids import JobId


async def wake_job(context: Context, job_id: JobId) -> None:
    for task_id in await context.store.tasks_at_work(job_id):
        context.wakes.wake("task", task_id)
    context.wakes.wake("job", job_id)
    context.hub.notify(job_id)
