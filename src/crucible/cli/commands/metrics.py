"""What a job measured."""

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, job_argument, task_option, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.shapes import MetricPoint
    from crucible.client.status_shapes import Chart

REFRESH_S = 1.0


@click.command(
    epilog=example(
        "crucible metrics resnet50",
        "crucible metrics resnet50 --chart",
        "crucible metrics resnet50 --usage --rank 3",
        "crucible metrics -w b6b0d3d6",
        "crucible metrics X -o json",
    )
)
@job_argument
@click.option("-w", "--watch", is_flag=True, help="Stay until the job has ended.")
@click.option("--tail", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="The last N rows.")
@click.option("--chart", is_flag=True, help="Over the whole time, a line for each name.")
@click.option("--usage", is_flag=True, help="The same of its machines: CPU, memory, GPUs, disk, network.")
@click.option(
    "--rank", type=click.IntRange(0), metavar="N", help="Of a chart: that rank alone.  [default: all together]"
)
@click.option("--points", type=click.IntRange(1, 5000), default=200, metavar="N", help="Of a chart: at most so many.")
@task_option
@with_output
def metrics(
    out: Out,
    job: str,
    watch: bool,
    tail: int,
    chart: bool,
    usage: bool,
    rank: int | None,
    points: int,
    task: int | None,
) -> None:
    """What a job measured: loss, accuracy, speed; or how its machines were used."""
    from crucible.cli.session import connect, find_job

    if watch and (chart or usage):
        raise click.UsageError("a chart is drawn once: leave out -w, or look at crucible top")
    with connect(out) as client:
        job_id = find_job(client, job)
        if chart or usage or rank is not None:
            _chart(
                out, client.chart(job_id, of="usage" if usage else "metrics", max_points=points, rank=rank, task=task)
            )
            return
        if watch:
            _watch(out, client, job_id, tail, task)
            return
        found = read_all(client, job_id, task)
    out.show({"items": found}, lambda: _draw(out, found[-tail:]))
    if not found and not out.is_for_programs:
        out.note("nothing measured yet; a script writes with crucible.train.log(step, loss=…)")


def _chart(out: Out, said: "Chart") -> None:
    from crucible.cli.views.status import chart_note, chart_table

    is_plain = out.symbol("▁", "") == ""
    out.show(said, lambda: chart_table(said, out.width, is_plain=is_plain))
    if not out.is_for_programs:
        out.note(chart_note(said))


def read_all(client: "Client", job_id: str, task: int | None = None, offset: int = 0) -> "list[MetricPoint]":
    points: list[MetricPoint] = []
    while True:
        page = client.metrics(job_id, offset=offset, task=task)
        points += page["items"]
        if not page["items"] or page.get("next_offset", offset) == offset:
            return points
        offset = page["next_offset"]


def _watch(out: Out, client: "Client", job_id: str, tail: int, task: int | None) -> None:
    if not out.is_terminal or out.is_for_programs:
        _stream(out, client, job_id, task)
        return
    from crucible.cli.screen import last_lines
    from crucible.client.following import Patience

    patience = Patience(on_trouble=out.trouble)
    with last_lines(sys.stdout) as draw:
        while True:
            is_over = patience.insist(lambda: client.is_over(job_id))
            points = patience.insist(lambda: read_all(client, job_id, task))
            draw(_draw(out, points[-tail:]))
            if is_over:
                return
            time.sleep(REFRESH_S)


def _stream(out: Out, client: "Client", job_id: str, task: int | None) -> None:
    """A pipe gets every point once, as it comes."""
    from crucible.client.following import Patience

    patience = Patience(on_trouble=out.trouble)
    offset = 0
    while True:
        is_over = patience.insist(lambda: client.is_over(job_id))
        page = patience.insist(partial(client.metrics, job_id, offset=offset, task=task))
        for point in page["items"]:
            out.record(point)
        offset = page.get("next_offset", offset)
        if is_over and not page["items"]:
            return
        if not page["items"]:
            time.sleep(REFRESH_S)


def _draw(out: Out, points: "list[MetricPoint]") -> list[str]:
    from crucible.cli.views.records import metric_table

    return metric_table(points, int(time.time() * 1000), out.width)
