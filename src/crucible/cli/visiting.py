"""Programs beside a rank, with this command's own input and output."""

import os
import sys
from contextlib import ExitStack
from typing import Any

from crucible.agent.relay import ERR, IN, OUT, SIZE, Sink, sized
from crucible.cli import exits
from crucible.cli.output import Out
from crucible.cli.session import connect, find_job
from crucible.client.talking import Talk

STDIN, STDOUT, STDERR = 0, 1, 2


def visit(out: Out, job: str, argv: list[str], *, rank: int, task: int, has_stdin: bool, has_terminal: bool) -> int:
    """The exit code of the program; without `argv`, of a shell."""
    sys.stdout.flush()
    with connect(out) as client:
        line = client.open_channel(find_job(client, job), rank=rank, task=task)
    if has_terminal:
        return _at_terminal(out, line, argv)
    request = {"kind": "exec", "argv": argv, "stdin": has_stdin}
    sources = {IN: STDIN} if has_stdin else {}
    talk = Talk(line, request, sources, {OUT: Sink(STDOUT), ERR: Sink(STDERR)})
    return talk.run(lambda: _raise_if_broken(talk))


def _raise_if_broken(talk: Talk) -> None:
    """`crucible exec … | head`: the reader has what it wanted."""
    if talk.relay.sinks[OUT].is_broken:
        raise BrokenPipeError


def _at_terminal(out: Out, line: Any, argv: list[str]) -> int:
    from crucible.cli.terminal import Left, WayOut, Window, raw, term

    with ExitStack() as stack:
        window = stack.enter_context(Window().watched())
        rows, columns = window.size()
        tty = {"rows": rows, "columns": columns, "term": term()}
        talk = Talk(line, {"kind": "exec", "argv": argv, "stdin": True, "tty": tty}, {IN: STDIN}, {OUT: Sink(STDOUT)})
        talk.relay.edit = WayOut().passed
        talk.relay.wakes.append(window.wake)

        def look() -> None:
            if window.has_changed():
                talk.relay.send(SIZE, sized(*window.size()))

        stack.enter_context(raw(STDIN))
        try:
            return talk.run(look)
        except Left:
            pass
    out.note("left; what ran there was ended")
    return exits.OK


def is_terminal() -> bool:
    return os.isatty(STDIN) and os.isatty(STDOUT)
