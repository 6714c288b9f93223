"""What would happen."""

from typing import Any

import click

from crucible.cli import exits
from crucible.cli.commands.submit import overriding, prepare
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

STRATEGIES = ("balanced", "cheapest", "fastest", "reliable", "near-data", "spread", "own-first")


@click.command(
    epilog=example(
        "crucible plan job.yaml",
        "crucible plan job.yaml --gpus 8 --spot --strategy fastest",
        "crucible plan job.yaml --why-not 'gcp a3-highgpu-8g us-central1'",
        "crucible plan job.yaml -o json",
    )
)
@click.argument("file")
@click.option("--strategy", type=click.Choice(STRATEGIES), help="What is made as good as possible.")
@click.option("--why-not", metavar="WORDS", help="Say what stands against offers: provider, region, type, GPU, spot.")
@overriding
@with_output
def plan(out: Out, file: str, strategy: str | None, why_not: str | None, **overrides: Any) -> int:
    """Show where a job would run, what it would cost, and why; nothing is submitted.

    Every offer of the catalog is ranked, also of providers that are not enabled: submit buys from those that are.
    Costs are expected ones, with what interruptions of spot machines cost; TOTAL is a range if they can happen.
    The exit code is 3 if nothing fits.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.plans import plan_lines

    job = prepare(out, file, overrides)
    with connect(out) as client:
        made = client.plan(job.text, strategy=strategy, why_not=why_not)
    out.show(made, lambda: plan_lines(made, width=out.width, tick=out.symbol("✓", "*")))
    is_possible = all(step["chosen"] for step in made["steps"]) if made.get("steps") else made["chosen"]
    return exits.OK if is_possible else exits.NO_OFFER
