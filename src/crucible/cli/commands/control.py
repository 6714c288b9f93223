"""What is wanted of a job: to stop, to wait, to go on, to run again. Wanting it twice is wanting it once."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from crucible.cli import exits
from crucible.cli.options import example, job_argument, jobs_argument, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.shapes import Changed, Submitted


@click.command(epilog=example("crucible cancel resnet50", "crucible cancel $(crucible ps -q)"))
@jobs_argument
@with_output
def cancel(out: Out, jobs: tuple[str, ...]) -> int:
    """Stop jobs for good; their checkpoints stay."""
    return _each(out, jobs, "cancelled", lambda client, job_id: client.cancel(job_id))


@click.command(epilog=example("crucible hold resnet50"))
@jobs_argument
@click.option("--reason", help="Kept with the event.")
@with_output
def hold(out: Out, jobs: tuple[str, ...], reason: str | None) -> int:
    """Stop jobs until they are released; they go on from their newest checkpoint."""
    return _each(out, jobs, "held", lambda client, job_id: client.hold(job_id, reason))


@click.command(epilog=example("crucible release resnet50"))
@jobs_argument
@with_output
def release(out: Out, jobs: tuple[str, ...]) -> int:
    """Let held jobs go on."""
    return _each(out, jobs, "released", lambda client, job_id: client.release(job_id))


@click.command(
    epilog=example("crucible retry b6b0d3d6", "crucible retry b6b0d3d6 -f", "crucible retry nightly --from train")
)
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the new job's log.")
@click.option("--from", "from_step", metavar="STEP", help="Of a workflow: that step and what comes after it.")
@with_output
def retry(out: Out, job: str, follow: bool, from_step: str | None) -> int:
    """Run a finished job again from the start, as a new job.

    A workflow runs what did not succeed: steps whose job and inputs are the same are not run again. With --from, that
    step and all after it are run, and the results of the others are taken over.
    """
    return _again(out, job, follow, lambda client, job_id: client.retry(job_id, from_step=from_step))


@click.command(epilog=example("crucible resume b6b0d3d6", "crucible resume b6b0d3d6 -f"))
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the new job's log.")
@with_output
def resume(out: Out, job: str, follow: bool) -> int:
    """Run a finished job on from its newest checkpoint, as a new job."""
    return _again(out, job, follow, lambda client, job_id: client.resume(job_id))


def _each(out: Out, jobs: tuple[str, ...], done: str, change: "Callable[[Client, str], Changed]") -> int:
    """All of them, even if one refuses; the exit code is the first refusal's."""
    from crucible.cli.advice import advice
    from crucible.cli.session import connect, find_job
    from crucible.model.errors import PlatformError

    code = exits.OK
    changed = []
    with connect(out) as client:
        for job in jobs:
            try:
                changed.append(change(client, find_job(client, job)))
            except PlatformError as error:
                if len(jobs) == 1:
                    raise
                out.warn(f"error: {job}: {error.message}\n  {advice(error)}".rstrip())
                code = code or exits.of_error(error)
    out.show({"items": changed}, lambda: [f"{done} {one['id']} ({out.status(one['status'])})" for one in changed])
    return code


def _again(out: Out, job: str, is_followed: bool, create: "Callable[[Client, str], Submitted]") -> int:
    from crucible.cli.handover import hand_over
    from crucible.cli.session import connect, find_job

    with connect(out) as client:
        made = create(client, find_job(client, job))
    return hand_over(out, made, is_followed=is_followed)
