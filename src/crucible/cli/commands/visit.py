"""Programs beside a rank of a running job: one command, or a shell."""

from typing import Any

import click

from crucible.cli.options import example, job_argument
from crucible.cli.output import Out

NUMBER: dict[str, Any] = {"type": click.IntRange(0), "default": 0, "show_default": True, "metavar": "N"}
rank_option = click.option("--rank", **NUMBER, help="Beside which rank.")
task_option = click.option("--task", **NUMBER, help="Of which task; most jobs have one.")


@click.command(
    name="exec",
    epilog=example(
        "crucible exec resnet50 -- nvidia-smi",
        "crucible exec resnet50 --rank 3 -- sh -c 'ls -l; df -h .'",
        "cat fix.py | crucible exec resnet50 -- python -",
        "crucible exec -it resnet50 -- python",
    ),
)
@job_argument
@click.argument("argv", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@rank_option
@task_option
@click.option("-i", "--stdin", "is_asked", is_flag=True, help="Pass on what is typed; a pipe or file always is.")
@click.option("-t", "--tty", "has_terminal", is_flag=True, help="Give the command a terminal.")
def exec_command(job: str, argv: tuple[str, ...], rank: int, task: int, is_asked: bool, has_terminal: bool) -> int:
    """Run a command where a rank runs.

    In its folder and environment, with its GPUs. The exit code is the command's. It ends when you leave, and when the
    rank ends; the job itself never notices. In a loop that reads from a file, add < /dev/null: a command may read what
    was meant for the loop.
    """
    import os

    from crucible.cli.visiting import STDIN, is_terminal, visit

    if has_terminal and not is_terminal():
        raise click.UsageError("-t needs a terminal on both sides; leave it out in scripts and pipes")
    has_stdin = has_terminal or is_asked or not os.isatty(STDIN)
    return visit(Out(), job, list(argv), rank=rank, task=task, has_stdin=has_stdin, has_terminal=has_terminal)


@click.command(epilog=example("crucible ssh resnet50", "crucible ssh resnet50 3"))
@job_argument
@click.argument("rank", type=click.IntRange(0), default=0, metavar="[RANK]")
@task_option
def ssh(job: str, rank: int, task: int) -> int:
    """Open a shell where a rank runs.

    In its folder and environment, with its GPUs. No SSH is needed for it: the node's agent opens the way. Leave with
    exit, Ctrl-D, or ~. at the beginning of a line; Ctrl-C goes to what runs there. The shell ends when the rank ends.
    """
    from crucible.cli.visiting import is_terminal, visit

    if not is_terminal():
        raise click.UsageError("a shell needs a terminal; in scripts use crucible exec JOB -- COMMAND")
    return visit(Out(), job, [], rank=rank, task=task, has_stdin=True, has_terminal=True)
