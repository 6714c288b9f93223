"""Runs one command and turns whatever happens into words on stderr and an exit code. Nothing escapes as a traceback
except our own bugs, which say so."""

import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

import click

from crucible.cli import exits
from crucible.cli.advice import advice
from crucible.cli.root import root
from crucible.model.errors import PlatformError


def run(argv: Sequence[str]) -> int:
    _survive_odd_terminals()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    return code


def _run(argv: Sequence[str]) -> int:
    """Not click's own `main`: that one ends the process, and takes a broken pipe for an error."""
    try:
        with root.make_context("crucible", list(argv)) as context:
            result = root.invoke(context)
        return result if isinstance(result, int) else exits.OK
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        return _usage(error, argv)
    except click.ClickException as error:
        return _fail("usage", error.format_message(), "", exits.USAGE, argv)
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("\n")
        return exits.INTERRUPTED
    except PlatformError as error:
        return _fail(error.code, error.message, advice(error), exits.of_error(error), argv, dict(error.details))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            return _fail("system", error.strerror or str(error), "", exits.ERROR, argv)
        return _fail("file", f"{error.filename}: {error.strerror}", "", exits.USAGE, argv)


def _usage(error: click.UsageError, argv: Sequence[str]) -> int:
    command = error.ctx.command_path if error.ctx is not None else "crucible"
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        given = next((word for word in argv if word.startswith(error.option_name)), error.option_name)
        message = f"{given}: an amount below zero is none; a number that begins with - is taken for an option"
    return _fail("usage", message, f"see {command} --help", exits.USAGE, argv)


def _fail(
    code: str, message: str, hint: str, exit_code: int, argv: Sequence[str], details: dict[str, object] | None = None
) -> int:
    if wants_json(argv):
        said = {"error": code, "message": message, "hint": hint, "exit_code": exit_code, "details": details or {}}
        sys.stderr.write(json.dumps(said, default=str) + "\n")
    else:
        sys.stderr.write(f"error: {message}\n" + (f"  {hint}\n" if hint else ""))
    return exit_code


def wants_json(argv: Sequence[str]) -> bool:
    """Read from the raw arguments: a usage error comes before anything was parsed."""
    words = list(argv[: argv.index("--")] if "--" in argv else argv)
    if any(word in ("-ojson", "-o=json", "--output=json") for word in words):
        return True
    return any(flag in ("-o", "--output") and value == "json" for flag, value in pairwise(words))


def _survive_odd_terminals() -> None:
    """A log line with a character the terminal cannot show must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """`crucible logs | head`: the reader has what it wanted. Python must not complain at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.OK
