"""What was spent, and what one job costs."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from crucible.cli.cost_options import Wanted, wanted, with_period
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client

# Jobs that are named below the report that nobody asked anything particular of.
DEAREST = 5


def _complete(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from crucible.cli.session import complete_jobs

    return complete_jobs(incomplete)


@click.command(
    epilog=example(
        "crucible costs",
        'crucible costs --by team,day --for "last month"',
        "crucible costs --by user --team vision --for 7d",
        "crucible costs --by provider,region --for 2026-11 --csv > november.csv",
        "crucible costs resnet50",
        "crucible costs resnet50 --intervals",
    )
)
@click.argument("job", metavar="[JOB]", required=False, shell_complete=_complete)
@click.option(
    "--by",
    metavar="WHAT[,WHAT]",
    help="team, project, user, provider, region, gpu, instance_type, market,"
    " kind, job, day, hour.  [default: team,project]",
)
@with_period
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Rows to show.")
@click.option("--csv", "is_csv", is_flag=True, help="Every row as CSV, with all digits.")
@click.option("--intervals", "is_detailed", is_flag=True, help="Of a job: every stretch of every machine at its price.")
@with_output
def costs(
    out: Out,
    job: str | None,
    by: str | None,
    span: str | None,
    tz: str,
    limit: int,
    is_csv: bool,
    is_detailed: bool,
    **only: str | None,
) -> None:
    """What was spent, by whatever you ask for; with a job: what it costs, so far, per hour and still to come.

    Figures are the ledger's, to the second and the micro-dollar, with what runs now. IDLE is paid time in which nothing
    of yours ran; SAVED is against the price on demand when it was bought. Everybody sees their own and what their teams
    spent together; managers see it by user.
    """
    from crucible.cli.session import connect

    asked = wanted(span, tz, only, datetime.now(UTC))
    with connect(out) as client:
        if job is not None:
            if by or span or is_csv or any(only.values()):
                raise click.UsageError("a job's costs are whole: give a job, or a period and what to tell apart")
            return _of_job(out, client, job, is_detailed)
        if is_csv:
            return out.bytes(client.cost_csv(by=by or "team,project", **asked.query))
        return _report(out, client, by, asked, limit)


def _of_job(out: Out, client: "Client", job: str, is_detailed: bool) -> None:
    from crucible.cli.session import find_job
    from crucible.cli.views.costs import cost_page, interval_table

    said = client.costs(find_job(client, job))
    out.show(said, lambda: interval_table(said, out.width) if is_detailed else cost_page(said, out.width))
    if not said["intervals"] and not out.is_for_programs:
        out.note("nothing was charged: no machine that costs money has run for it")


def _report(out: Out, client: "Client", by: str | None, asked: Wanted, limit: int) -> None:
    from crucible.cli.views.cost_reports import dearest_table, report_notes, report_table

    said = client.cost_report(by=by or "team,project", limit=limit, forecast=True, **asked.query)
    out.show(said, lambda: report_table(said, out.width))
    if out.is_for_programs:
        return
    for note in report_notes(said, asked.tz):
        out.note(note)
    if by is None and asked.tz == "UTC" and said["total"]["cost_microusd"]:
        jobs = client.cost_report(by="job", limit=DEAREST, **asked.query)
        for line in ["", *dearest_table(jobs, out.width)]:
            out.line(line)
