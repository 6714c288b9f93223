"""What the tasks of a job left behind: which have left something, and to fetch it."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.group(
    epilog=example(
        "crucible outputs ls resnet50",
        "crucible outputs get resnet50 -d ./results",
        "crucible outputs get sweep 17",
    )
)
def outputs() -> None:
    """List and fetch what the tasks of a job have left in $CRUCIBLE_OUTPUT. Another job is given it with
    `inputs: {NAME: output://JOB}`, and finds it in $CRUCIBLE_INPUTS/NAME."""


@outputs.command("ls", epilog=example("crucible outputs ls resnet50", "crucible outputs ls b6b0d3d6 -o json"))
@job_argument
@with_output
def list_outputs(out: Out, job: str) -> None:
    """Tasks that have left something, in their order."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.outputs import output_table

    with connect(out) as client:
        found = client.outputs(find_job(client, job))
    out.show({"items": found}, lambda: output_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("nothing yet: what a program writes to $CRUCIBLE_OUTPUT is stored when it ends well")


@outputs.command(epilog=example("crucible outputs get resnet50", "crucible outputs get sweep 17 -d ./results"))
@job_argument
@click.argument("task", type=click.IntRange(0, 999_999), required=False)
@click.option("-d", "--dir", "folder", default=".", metavar="DIR", help="Below this folder.  [default: this one]")
@with_output
def get(out: Out, job: str, task: int | None, folder: str) -> None:
    """Fetch what TASK left into a new folder, of every task if none is given; every byte is checked.

    Broken off, it leaves no such folder; run again, it goes on."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.outputs import progress_note
    from crucible.model.errors import NotFound

    with connect(out) as client:
        job_id = find_job(client, job)
        found = client.outputs(job_id)
        wanted = [one for one in found if task in (None, one["task"])]
        if not wanted:
            of_task = "" if task is None else f"task {task} of "
            raise NotFound(f"{of_task}job {job} has left nothing behind")
        got = []
        for one in wanted:
            number = one["task"]
            path = client.get_output(
                job_id,
                number,
                folder,
                on_got=lambda said, number=number: out.note_once(progress_note(number, said)),  # type: ignore[misc]
            )
            got.append({"task": number, "digest": one["digest"], "path": path})
    out.show({"items": got}, lambda: [str(one["path"]) for one in got])
