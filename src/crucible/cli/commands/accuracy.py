"""How good predictions were."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example(
        "crucible accuracy",
        "crucible accuracy --by team,provider",
        "crucible accuracy --gpu H100-SXM --class llm",
        "crucible accuracy -o json",
    )
)
@click.option("--gpu", help="Only jobs on this GPU.")
@click.option("--class", "model_class", metavar="CLASS", help="Only this kind of model: llm, vision, llm/inference …")
@click.option("--framework", help="Only jobs of this framework: pytorch, tensorflow …")
@click.option("--team", help="Only jobs of this team.")
@click.option("--provider", help="Only jobs that were planned there.")
@click.option("--by", metavar="WHAT[,WHAT]", help="gpu, class, framework, team, provider, week.  [default: gpu,class]")
@click.option("--limit", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="The newest jobs.")
@with_output
def accuracy(
    out: Out,
    gpu: str | None,
    model_class: str | None,
    framework: str | None,
    team: str | None,
    provider: str | None,
    by: str | None,
    limit: int,
) -> None:
    """How far estimates were from what jobs took: hours and cost of the newest that completed.

    An error is a share of what happened; the goal is within 15%. A positive bias means that estimates were too high.
    The last lines are the weeks in which those jobs ended.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.accuracy import accuracy_note, accuracy_table, trend_table

    with connect(out) as client:
        said = client.accuracy(
            gpu=gpu, model_class=model_class, framework=framework, team=team, provider=provider, by=by, limit=limit
        )
    out.show(said, lambda: [*accuracy_table(said, out.width), *trend_table(said, out.width)])
    if not out.is_for_programs:
        out.note(accuracy_note(said))
