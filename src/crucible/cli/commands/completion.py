"""Completion of commands, options and jobs in the shell."""

import click

from crucible.cli.entry import COMPLETE
from crucible.cli.options import example

SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=example("crucible completion bash >> ~/.bashrc", "crucible completion fish | source"))
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from crucible.cli.root import root

    kind = get_completion_class(shell)
    assert kind is not None  # click knows every shell of SHELLS
    click.echo(kind(root, {}, "crucible", COMPLETE).source())


def complete(instruction: str) -> int:
    """Answer the shell; the words typed so far are in the environment."""
    from click.shell_completion import shell_complete

    from crucible.cli.root import root

    return shell_complete(root, {}, "crucible", COMPLETE, instruction)
