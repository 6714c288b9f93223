"""How a job is started, as a script for people who want to run it by hand."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(
    name="launch-script",
    epilog=example("crucible launch-script resnet50 > start.sh", "crucible launch-script resnet50 --rank 1"),
)
@job_argument
@click.option("--rank", type=click.IntRange(min=0), help="Only this one; all of them if not given.")
@with_output
def launch_script(out: Out, job: str, rank: int | None) -> None:
    """Print the script that starts a job, to run it by hand: environment and command of each rank.

    It holds no tokens; variables that look like secrets are asked for when it runs."""
    from crucible.cli.session import connect, find_job

    with connect(out) as client:
        said = client.launch_script(find_job(client, job), rank)
    out.show(said, said["script"].splitlines)
    if not said["is_placed"] and not out.is_for_programs:
        out.note("the job has no machines yet: node-0, node-1 … stand for their addresses")
