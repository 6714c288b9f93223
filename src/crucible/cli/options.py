"""Options that mean the same everywhere."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import click

from crucible.cli.output import FORMATS, Out

F = TypeVar("F", bound=Callable[..., Any])


def with_output(command: F) -> F:
    """-o and -q; the command gets an Out as its argument `out`."""

    def wrapped(output: str, quiet: bool, **arguments: Any) -> Any:
        return command(out=Out(output, quiet), **arguments)

    return click.option(  # type: ignore[return-value]  # update_wrapper keeps the name and the options, not the type
        "-q", "--quiet", is_flag=True, help="Only what was asked for: ids, values, no notes."
    )(
        click.option(
            "-o",
            "--output",
            type=click.Choice(FORMATS),
            default="table",
            show_default=True,
            help="How to print it; json and yaml are for programs.",
        )(update_wrapper(wrapped, command))
    )


def example(*lines: str) -> str:
    """An epilog that keeps its lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


task_option = click.option(
    "--task", type=click.IntRange(0, 999_999), metavar="N", help="Of a job with many: that task.  [default: 0]"
)
job_argument = click.argument("job", metavar="JOB", shell_complete=lambda *_: _jobs(_[2]))
jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=lambda *_: _jobs(_[2]))


def _jobs(incomplete: str) -> list[str]:
    from crucible.cli.session import complete_jobs

    return complete_jobs(incomplete)
