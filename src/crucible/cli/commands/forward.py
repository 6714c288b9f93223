"""A port of this computer that leads to one of a node."""

import click

from crucible.cli.commands.visit import rank_option, task_option
from crucible.cli.options import example, job_argument
from crucible.cli.output import Out


def ports(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    """8888 or 9000:8888: here and there. 0 here is any that is free."""
    here, colon, there = value.partition(":")
    there = there if colon else here
    if all(word.isascii() and word.isdigit() and len(word) <= 5 for word in (here, there)):
        local, far = int(here), int(there)
        if local <= 65535 and 1 <= far <= 65535:
            return local, far
    raise click.BadParameter(f"{value!r} is not like 8888 or 9000:8888 (here:there)", ctx, param)


@click.command(
    name="port-forward",
    epilog=example("crucible port-forward resnet50 6006", "crucible port-forward resnet50 9000:8888 --rank 1"),
)
@job_argument
@click.argument("pair", metavar="LOCAL[:REMOTE]", callback=ports)
@rank_option
@task_option
def port_forward(job: str, pair: tuple[int, int], rank: int, task: int) -> int:
    """Reach a port of a rank's machine at a port of this computer.

    Such as TensorBoard's. It listens on 127.0.0.1 only, for as many connections as you like, until Ctrl-C.
    """
    from crucible.cli.forwarding import serve

    return serve(Out(), job, *pair, rank=rank, task=task)
