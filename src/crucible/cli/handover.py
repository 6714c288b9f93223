"""What happens once a job exists: print its id and leave, or stay with it to the end. Ctrl-C leaves it running."""

from crucible.cli import exits
from crucible.cli.output import Out
from crucible.cli.session import connect
from crucible.cli.views.accuracy import against_estimate
from crucible.cli.views.jobs import cost
from crucible.cli.watching import follow, leaving, wait_for_end
from crucible.cli.wording import duration, moment
from crucible.client.shapes import JobView, Submitted


def hand_over(out: Out, made: Submitted, *, is_followed: bool) -> int:
    """The exit code: of the job if it was followed to its end."""
    job_id = made["id"]
    if not is_followed:
        out.show(dict(made), lambda: [job_id])
        out.note(f"submitted; follow it with crucible logs -f {job_id}")
        return exits.OK
    with leaving(out, job_id):
        job = _stay(out, job_id)
    out.note(ending(job))
    if compared := against_estimate(job):
        out.note(compared)
    return exits.of_job(job["status"])


def ending(job: JobView) -> str:
    """How it ended, how long it took, what it cost against what was estimated."""
    times = job["timestamps"]
    start, end = moment(times["started_at"]), moment(times["finished_at"])
    took = f" in {duration((end - start).total_seconds())}" if start and end else ""
    reason = f": {job['reason']}" if job.get("reason") and job["status"] != "completed" else ""
    return f"{job['name']} {job['status']}{took}, {cost(job)}{reason}"


def _stay(out: Out, job_id: str) -> JobView:
    """Programs get the finished job on stdout; people get its log."""
    if not out.is_for_programs:
        out.note(f"job {job_id}; Ctrl-C leaves it running")
        return follow(out, lambda: connect(out), job_id)
    with connect(out) as client:
        job = wait_for_end(client, job_id, on_trouble=out.trouble)
    out.show(job, list)
    return job
