"""Evaluations: every model on every dataset."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.group("eval", epilog=example("crucible eval show ring-eval", "crucible eval show ring-eval --csv"))
def evaluation() -> None:
    """The table of an evaluation: models, datasets, a baseline."""


@evaluation.command(epilog=example("crucible eval show ring-eval", "crucible eval show ring-eval --csv > table.csv"))
@job_argument
@click.option("--csv", "is_csv", is_flag=True, help="Every figure as a line of a table for other programs.")
@with_output
def show(out: Out, job: str, is_csv: bool) -> None:
    """A table for each metric: models down, datasets across, each beside the baseline."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views import evaluations

    with connect(out) as client:
        said = client.evaluation(find_job(client, job))
    if is_csv:
        for line in evaluations.as_csv(said):
            out.line(line)
        return
    out.show(said, lambda: evaluations.evaluation_page(said, out.width, out.paint))
