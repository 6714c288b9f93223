"""Providers side by side."""

from functools import partial

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

MOST_GPUS = 100_000  # that the server is asked for


def gpu_and_count(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, int]:
    """H100, or H100:8."""
    gpu, colon, count = value.partition(":")
    if not gpu or (colon and not (count.isascii() and count.isdigit() and 0 < int(count) <= MOST_GPUS)):
        raise click.BadParameter(f"{value!r} is not a GPU and how many of them, such as A100:8", ctx, param)
    return gpu, int(count or 1)


@click.command(epilog=example("crucible compare --gpu A100:8 --hours 6", "crucible compare --gpu H100 -o json"))
@click.option(
    "--gpu", required=True, callback=gpu_and_count, metavar="GPU[:N]", help="The GPU and how many of them in all."
)
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="What that would cost in all.")
@with_output
def compare(out: Out, gpu: tuple[str, int], hours: float | None) -> int:
    """Providers side by side: the cheapest way to hold so many GPUs, on demand and spot.

    Hours are billed as each provider rounds them. A tick marks providers that this server can buy from. The risk of
    spot is shown and not priced in; crucible plan does that. The exit code is 3 if nobody has the GPU.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.prices import comparison_note, comparison_table

    with connect(out) as client:
        said = client.compare(gpu[0], gpus=gpu[1], hours=hours)
    tick, paint = out.symbol("✓", "*"), partial(out.paint, "yellow")
    out.show(said, lambda: comparison_table(said, out.width, tick, paint))
    if not said["items"]:
        out.note(f"nobody is known to have a GPU {gpu[0]}; crucible offers --group-by gpu shows what there is")
        return exits.NO_OFFER
    if not out.is_for_programs:
        out.note(comparison_note(said))
    return exits.OK
