"""Check job files. Works offline: the rules are in this package."""

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example("crucible validate job.yaml", "crucible validate jobs/*.yaml", "crucible validate - < j.yaml")
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@with_output
def validate(out: Out, files: tuple[str, ...]) -> int:
    """Check job files without a server; - is stdin.

    Prints every problem as file:line:column: field: message (how to fix it). The exit code is 2 if there is one.
    """
    from crucible.cli.verdicts import check

    verdicts = [check(file) for file in files]
    out.show(
        {"items": [verdict._asdict() for verdict in verdicts]},
        lambda: [line for verdict in verdicts for line in verdict.lines(is_quiet=out.quiet)],
    )
    return exits.OK if all(verdict.valid for verdict in verdicts) else exits.USAGE
