"""What a job costs."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example("crucible costs resnet50", "crucible costs resnet50 --intervals", "crucible costs b6b0d3d6 -o json")
)
@job_argument
@click.option("--intervals", "is_detailed", is_flag=True, help="Every stretch of every machine at its price.")
@with_output
def costs(out: Out, job: str, is_detailed: bool) -> None:
    """What a job costs: so far, per hour, and what is still to come.

    Charged is what the providers charge for, to the second and the micro-dollar; `-o json` has every posting.
    """
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.costs import cost_page, interval_table

    with connect(out) as client:
        said = client.costs(find_job(client, job))
    out.show(said, lambda: interval_table(said, out.width) if is_detailed else cost_page(said, out.width))
    if not said["intervals"] and not out.is_for_programs:
        out.note("nothing was charged: no machine that costs money has run for it")
