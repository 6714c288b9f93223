"""The server on this computer: in the foreground, or in the background and back again. The server itself is found by
its entry point; this module knows only its data folder."""

import os
from typing import TYPE_CHECKING, Any

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out
from crucible.cli.root import from_entry_points

if TYPE_CHECKING:
    from crucible.client.embedded import Embedded

FOREGROUND = "run"

data_dir_option = click.option("--data-dir", metavar="DIR", help="The server's data folder.  [default: ~/.crucible]")


class ServerGroup(click.Group):
    """`crucible server` alone, or with options of the server, means `crucible server run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.list_commands(ctx) or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if is_named else [FOREGROUND, *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [FOREGROUND, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _foreground() if cmd_name == FOREGROUND else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Listed without loading the server."""
        rows = [(FOREGROUND, "Run it in the foreground until Ctrl-C; its --help lists the options")]
        rows += [(name, command.get_short_help_str(80)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=ServerGroup,
    epilog=example("crucible server --port 8750", "crucible server start", "crucible server status"),
)
def server() -> None:
    """Run, start, stop or look at the local server.

    Without a subcommand it runs in the foreground. A command that needs a server starts one in the background by
    itself, unless crucible login or CRUCIBLE_SERVER names another.
    """


@server.command(
    epilog=example("crucible server start", "crucible server start --local-gpus 4"),
    context_settings={"ignore_unknown_options": True},
)
@data_dir_option
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF RUN]...")
@with_output
def start(out: Out, data_dir: str | None, options: tuple[str, ...]) -> None:
    """Start it in the background."""
    local = _local(data_dir)
    already = local.running()
    running = already or local.start(options)
    word = "already runs" if already else "started"
    value = {"url": running.url, "pid": running.pid, "version": running.version, "data_dir": str(local.home)}
    out.show(value, lambda: [f"{word}: {running.url} (pid {running.pid}, {local.home})"])
    out.note(f"its page: {running.url}/ui/ (crucible dashboard opens it, signed in)")


@server.command(epilog=example("crucible server stop"))
@data_dir_option
@with_output
def stop(out: Out, data_dir: str | None) -> None:
    """Stop it. Running jobs go on; the next server takes them over."""
    stopped = _local(data_dir).stop()
    if stopped is None:
        out.note("no local server is running")
    else:
        out.show({"stopped": stopped.pid}, lambda: [f"stopped (pid {stopped.pid})"])


@server.command(epilog=example("crucible server status"))
@data_dir_option
@with_output
def status(out: Out, data_dir: str | None) -> int:
    """Say whether it runs, and where. The exit code is 1 if it does not."""
    local = _local(data_dir)
    running = local.running()
    value: dict[str, Any] = {"running": running is not None, "data_dir": str(local.home), "log": str(local.log)}
    if running is None:
        out.show(value, lambda: [f"not running ({local.home})"])
        return exits.ERROR
    value |= {"url": running.url, "pid": running.pid, "version": running.version}
    out.show(value, lambda: [f"running: {running.url} (pid {running.pid}, {running.version}, {local.home})"])
    return exits.OK


def _local(data_dir: str | None) -> "Embedded":
    from crucible.client import config

    environ = os.environ if data_dir is None else {**os.environ, config.HOME: data_dir}
    return config.embedded(environ)


def _foreground() -> click.Command | None:
    from crucible.client.embedded import check_installed

    check_installed()
    return from_entry_points("server")
