"""What a person does beside a rank, over a channel to its node: run a program, copy files, reach a port. The channel is
bound to this process: whatever it started on the node ends with it."""

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from crucible.agent import trees
from crucible.agent.relay import ERR, ERROR, EXIT, IN, OUT, Broken, Relay, Sink, unpacked
from crucible.agent.websocket import NORMAL, TEXT, Closed, WebSocket
from crucible.client.errors import ConnectionLost, ServerError, ServerTimeout, from_reply
from crucible.model.errors import Conflict

# How often something is looked at that makes no descriptor readable.
TICK_S = 0.1
# What shells answer for a program that was killed.
KILLED = 128
# Of what a copy complains.
MOST_WORDS = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """A program that ran on a node and has ended; 128 and the signal's number if it was killed."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    files: int
    size_bytes: int
    left_out: tuple[str, ...]  # what is neither a file nor a folder, in words


class Talk:
    """One channel, from its first message to its end. `sources` and `sinks` are by the kind of their data."""

    def __init__(
        self, line: WebSocket, request: Mapping[str, Any], sources: Mapping[int, int], sinks: Mapping[int, Sink]
    ) -> None:
        self._line = line
        line.send(json.dumps(dict(request)).encode(), TEXT)
        self.relay = Relay(line, dict(sources), dict(sinks))

    def run(self, look: Callable[[], None] = lambda: None) -> int:
        """The exit code of the program on the node. `look` is called again and again, and may raise."""
        try:
            while True:
                for kind, payload in self.relay.turn(TICK_S):
                    self._raise_error(kind, payload)
                    if kind == EXIT:
                        self.relay.finish()
                        return _exit_code(unpacked(payload))
                look()
        except Closed as closed:
            raise self._lost(closed) from closed
        except Broken as error:
            raise ServerError(f"the node says what nobody understands: {error}") from error
        finally:
            self._line.close()

    def carry(self) -> None:
        """Until both sides have said all they had to say: a connection."""
        try:
            while not self.relay.is_done and not any(sink.is_broken for sink in self.relay.sinks.values()):
                for kind, payload in self.relay.turn(TICK_S):
                    self._raise_error(kind, payload)
        except Closed as closed:
            if closed.code != NORMAL:
                raise self._lost(closed) from closed
            self.relay.finish()
        finally:
            self._line.close()

    def _raise_error(self, kind: int, payload: bytes) -> None:
        if kind == ERROR:
            self.relay.finish()
            raise from_reply(502, unpacked(payload))

    def _lost(self, closed: Closed) -> ConnectionLost:
        words = f"the channel broke off ({closed}); what ran on the node was ended"
        return ConnectionLost(words, hint="the job itself goes on; try again in a moment")


def _exit_code(ending: Mapping[str, Any]) -> int:
    code, signum = ending.get("exit_code"), ending.get("signal")
    if isinstance(code, int):
        return code
    return KILLED + signum if isinstance(signum, int) else 1


# --- programs -------------------------------------------------------------------------------------


def execute(line: WebSocket, argv: Sequence[str], stdin: bytes, timeout_s: float | None) -> Executed:
    """What it prints goes to the disk first: it may be large. Raises ServerTimeout; the program is then ended."""
    until = float("inf") if timeout_s is None else time.monotonic() + timeout_s

    def look() -> None:
        if time.monotonic() >= until:
            raise ServerTimeout(f"{argv[0]} takes longer than {timeout_s:g} s on the node; it was ended")

    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        request = {"kind": "exec", "argv": list(argv), "stdin": bool(stdin)}
        sources = {IN: given.fileno()} if stdin else {}
        talk = Talk(line, request, sources, {OUT: Sink(out.fileno()), ERR: Sink(err.fileno())})
        return Executed(exit_code=talk.run(look), stdout=_all_of(out), stderr=_all_of(err))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


# --- copies ---------------------------------------------------------------------------------------


def copy_in(line: WebSocket, source: str, target: str) -> Copied:
    """Raises Conflict with the words of whichever side could not."""
    left_out: list[str] = []
    with _Helper("pack") as helper:
        helper.start(lambda file: trees.pack(source, file, left_out.append))
        _copy(line, {"kind": "copy_in", "path": target}, {IN: helper.theirs}, {}, helper)
        files, size = helper.result()
    return Copied(files=files, size_bytes=size, left_out=tuple(left_out))


def copy_out(line: WebSocket, source: str, target: str) -> Copied:
    with _Helper("unpack") as helper:
        helper.start(lambda file: trees.unpack(file, target))
        sink = Sink(helper.theirs, helper.close_theirs)
        said = _copy(line, {"kind": "copy_out", "path": source}, {}, {OUT: sink}, helper)
        helper.close_theirs()
        files, size = helper.result()
    return Copied(files=files, size_bytes=size, left_out=tuple(said.splitlines()))


def _copy(
    line: WebSocket, request: Mapping[str, Any], sources: dict[int, int], sinks: dict[int, Sink], helper: "_Helper"
) -> str:
    """What the other side had to say. Raises Conflict."""
    with tempfile.TemporaryFile() as err:
        talk = Talk(line, request, sources, {**sinks, ERR: Sink(err.fileno())})
        code = talk.run(helper.raise_error)
        err.seek(0)
        said = err.read(MOST_WORDS).decode(errors="replace").strip()
    if code != 0:
        raise Conflict(said or f"the copy failed on the node with {code}")
    return said


class _Helper:
    """A thread at one end of a pipe: archives are read and written by functions that wait."""

    def __init__(self, verb: str) -> None:
        reader, writer = os.pipe()
        self._verb = verb
        self._ours, self.theirs = (writer, reader) if verb == "pack" else (reader, writer)
        self._is_theirs_open = True
        self._error: Exception | None = None
        self._result: tuple[int, int] = (0, 0)

    def __enter__(self) -> "_Helper":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close_theirs()
        self._thread.join()

    def start(self, work: Callable[[IO[bytes]], tuple[int, int]]) -> None:
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True, name="crucible-copy")
        self._thread.start()

    def _run(self, work: Callable[[IO[bytes]], tuple[int, int]]) -> None:
        try:
            with os.fdopen(self._ours, "wb" if self._verb == "pack" else "rb") as file:
                self._result = work(file)
        except (OSError, trees.Uncopied) as error:
            self._error = error

    def close_theirs(self) -> None:
        if self._is_theirs_open:
            self._is_theirs_open = False
            os.close(self.theirs)

    def raise_error(self) -> None:
        """What an early end made of it is the other side's doing, which says so itself."""
        if self._error is not None and self._is_theirs_open and not isinstance(self._error, BrokenPipeError):
            raise Conflict(str(self._error)) from self._error

    def result(self) -> tuple[int, int]:
        self._thread.join()
        if self._error is not None:
            raise Conflict(str(self._error)) from self._error
        return self._result


# --- connections ----------------------------------------------------------------------------------


def forward(line: WebSocket, port: int, connection: socket.socket) -> None:
    """Carries one connection to a port of the node; closes it."""
    with connection:
        connection.setblocking(False)
        sink = Sink(connection.fileno(), lambda: _half_close(connection))
        Talk(line, {"kind": "forward", "port": port}, {IN: connection.fileno()}, {OUT: sink}).carry()


def _half_close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
