"""Workflows."""

from pathlib import Path

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(epilog=example("crucible workflow show nightly"))
def workflow() -> None:
    """Draw the steps of a workflow, and what became of each."""


@workflow.command(
    epilog=example(
        "crucible workflow show nightly",
        "crucible workflow show workflow.yaml",
        "crucible workflow show b6b0d3d6 -o json",
    )
)
@click.argument("what", metavar="JOB|FILE")
@with_output
def show(out: Out, what: str) -> None:
    """Draw the steps of a workflow: what needs what, and what became of it.

    A file is drawn as it would run; it is not submitted.
    """
    if what == "-" or Path(what).is_file():
        _show_file(out, what)
        return
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.workflows import workflow_page

    with connect(out) as client:
        said = client.workflow(find_job(client, what))
    is_fine = out.symbol("▼", "") != ""
    out.show(
        said,
        lambda: workflow_page(said, datetime.now(UTC), width=out.width, is_fine=is_fine, paint=out.status),
    )


def _show_file(out: Out, file: str) -> None:
    from crucible.cli import jobfile
    from crucible.cli.views.workflows import planned_page
    from crucible.model.errors import InvalidRequest

    spec = jobfile.read(file).spec
    if not spec.steps:
        raise InvalidRequest(f"{file} has no steps: it is no workflow")
    told = [{"name": step.name, "needs": list(step.needs), "when": str(step.when)} for step in spec.steps]
    is_fine = out.symbol("▼", "") != ""
    out.show({"name": spec.name, "steps": told}, lambda: planned_page(spec, width=out.width, is_fine=is_fine))
