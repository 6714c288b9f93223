"""Checkpoints of a job: which there are, to fetch them, to check every byte, to remove them."""

from typing import TYPE_CHECKING

import click

from crucible.cli import exits
from crucible.cli.options import example, job_argument, task_option, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client

LIST = "ls"


class CheckpointsGroup(click.Group):
    """`crucible checkpoints JOB` lists them: what most people want."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = [LIST, *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=CheckpointsGroup,
    epilog=example(
        "crucible checkpoints ls resnet50",
        "crucible checkpoints get resnet50 -d ./weights",
        "crucible checkpoints verify resnet50 --all",
        "crucible checkpoints rm resnet50 100 200",
    ),
)
def checkpoints() -> None:
    """List, fetch, check and remove checkpoints."""


@checkpoints.command(
    LIST, epilog=example("crucible checkpoints ls resnet50", "crucible checkpoints ls b6b0d3d6 -o json")
)
@job_argument
@task_option
@with_output
def list_checkpoints(out: Out, job: str, task: int | None) -> None:
    """Those a job has written, and those it continues from."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.records import checkpoint_table

    with connect(out) as client:
        found = client.checkpoints(find_job(client, job), task=task)
    out.show({"items": found}, lambda: checkpoint_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("no checkpoint yet")


@checkpoints.command(
    epilog=example("crucible checkpoints get resnet50", "crucible checkpoints get resnet50 300 -d ./w")
)
@job_argument
@click.argument("step", type=click.IntRange(0), required=False)
@click.option("-d", "--dir", "folder", default=".", metavar="DIR", help="Below this folder.  [default: this one]")
@task_option
@with_output
def get(out: Out, job: str, step: int | None, folder: str, task: int | None) -> None:
    """Fetch one into a new folder, the newest if no STEP is given; every byte is checked."""
    from crucible.cli.session import connect, find_job

    with connect(out) as client:
        job_id = find_job(client, job)
        wanted = newest(client, job_id, task) if step is None else step
        path = client.get_checkpoint(job_id, wanted, folder, task=task)
    out.show({"step": wanted, "path": path}, lambda: [path])


@checkpoints.command(
    epilog=example("crucible checkpoints verify resnet50", "crucible checkpoints verify resnet50 --all")
)
@job_argument
@click.argument("step", type=click.IntRange(0), required=False)
@click.option("--all", "everything", is_flag=True, help="Every one of them.")
@with_output
def verify(out: Out, job: str, step: int | None, everything: bool) -> int:
    """Read every byte of one, the newest if no STEP is given. The exit code is 1 if something is wrong."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.records import progress_note, verdict

    if step is not None and everything:
        raise click.UsageError("name a STEP, or say --all, not both")
    with connect(out) as client:
        job_id = find_job(client, job)
        steps = [one["step"] for one in client.checkpoints(job_id)] if everything else None
        wanted = steps if steps is not None else [newest(client, job_id) if step is None else step]
        found = [
            client.verify_checkpoint(job_id, one, lambda said: out.note_once(progress_note(said)))
            for one in dict.fromkeys(wanted)
        ]
    out.show({"items": found}, lambda: [line for one in found for line in verdict(one)])
    return exits.OK if all(one["is_valid"] for one in found) else exits.ERROR


@checkpoints.command(epilog=example("crucible checkpoints rm resnet50 100 200"))
@job_argument
@click.argument("steps", metavar="STEP...", type=click.IntRange(0), nargs=-1, required=True)
@with_output
def rm(out: Out, job: str, steps: tuple[int, ...]) -> None:
    """Remove checkpoints for good. The newest two of a job that is not over stay."""
    from crucible.cli.session import connect, find_job

    with connect(out) as client:
        job_id = find_job(client, job)
        for step in steps:
            client.remove_checkpoint(job_id, step)
            if not out.is_for_programs:
                out.line(f"removed step {step}")
    if out.is_for_programs:
        out.show({"removed": list(steps)}, list)


def newest(client: "Client", job_id: str, task: int | None = None) -> int:
    from crucible.model.errors import NotFound

    found = client.checkpoints(job_id, task=task)
    if not found:
        raise NotFound(f"job {job_id} has no checkpoint yet")
    return found[-1]["step"]
