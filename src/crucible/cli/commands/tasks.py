"""The tasks of a job."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out

PHASES = ("waiting", "scheduled", "provisioning", "running", "checkpointing", "succeeded", "failed", "cancelled")
SHOWN = 50


@click.command(epilog=example("crucible tasks sweep", "crucible tasks sweep --phase failed", "crucible tasks X --all"))
@job_argument
@click.option("--phase", type=click.Choice(PHASES), multiple=True, help="Only these; may be given again.")
@click.option("--all", "everything", is_flag=True, help=f"Every one of them, not only the first {SHOWN}.")
@with_output
def tasks(out: Out, job: str, phase: tuple[str, ...], everything: bool) -> None:
    """The tasks of a job: what each was given, how far it is, where it runs."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.tasks import task_table

    with connect(out) as client:
        job_id, wanted = find_job(client, job), ",".join(phase) or None
        limit = None if everything else SHOWN + 1
        found = list(client.all_tasks(job_id, phase=wanted, limit=limit))
    is_cut = not everything and len(found) > SHOWN
    shown = found[:SHOWN] if is_cut else found
    out.show({"items": shown}, lambda: task_table(shown, datetime.now(UTC), out.width, out.status))
    if is_cut and not out.is_for_programs:
        out.note("there are more; --all shows them")
    if not found and not out.is_for_programs:
        out.note("no such task")
