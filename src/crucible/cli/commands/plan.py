"""What would happen."""

from typing import Any

import click

from crucible.cli import exits
from crucible.cli.commands.submit import overriding, prepare
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible plan job.yaml", "crucible plan job.yaml --gpus 8 -o json"))
@click.argument("file")
@overriding
@with_output
def plan(out: Out, file: str, **overrides: Any) -> int:
    """Show where a job would run and what it would cost; nothing is submitted.

    The exit code is 3 if nothing that could run it is free now.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.plans import plan_lines

    job = prepare(out, file, overrides)
    with connect(out) as client:
        made = client.plan(job.text)
    out.show(made, lambda: plan_lines(made, width=out.width, tick=out.symbol("✓", "*")))
    return exits.OK if made["chosen"] else exits.NO_OFFER
