"""Channels: what people ask for beside a rank. The node's loop only starts and ends them; each has a thread and a
WebSocket of its own, opened from here, because nothing listens on a node."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import deque

from . import disk
from .relay import ERROR, IN, OUT, Broken, Relay, Sink, packed
from .visit import Ended, Visit, command_of, end_leftovers
from .websocket import GOING_AWAY, NORMAL, Closed, Refused, WebSocket, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Deque, Dict, List, Optional, Tuple

    from .link import Servers
    from .protocol import ChannelWish
    from .rank import Rank
    from .words import Words

# Each costs a thread and some descriptors. A server asks for no more.
MOST_AT_ONCE = 64
_REMEMBERED = 1000
_CONNECT_S = 10.0
# To say the last words on a slow line.
_CLOSE_S = 5.0
_LOOPBACK = ("127.0.0.1", "::1")
_TICK_S = 0.1


class Unwelcome(Exception):
    """Told to the person: a code and words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Channels:
    def __init__(self, folder: str, program: str, servers: Servers, key: str, words: Words) -> None:
        self._folder = folder
        self._program = [sys.executable, "-I", "-S", program]
        self._servers = servers
        self._key = key
        self._words = words
        self._seen: Deque[str] = deque(maxlen=_REMEMBERED)
        self._open: List[Channel] = []

    def begin(self) -> None:
        end_leftovers(self._folder)

    def hear(self, wishes: List[ChannelWish], ranks: Dict[Tuple[str, int], Rank]) -> None:
        """A wish is repeated until somebody has come for it; each is carried out once."""
        for wish in wishes:
            if wish.id not in self._seen and len(self._open) < MOST_AT_ONCE:
                self._seen.append(wish.id)
                channel = Channel(wish, ranks.get(wish.key), self._program, self._servers, self._key, self._words)
                self._open.append(channel)
                channel.start()

    def look(self) -> None:
        """What stands beside a rank ends with it."""
        self._open = [channel for channel in self._open if channel.is_alive()]
        for channel in self._open:
            if channel.rank is not None and not channel.rank.is_live:
                channel.over.set()

    def close(self) -> None:
        """Every one of them, and waits for what they ran to be gone."""
        for channel in self._open:
            channel.over.set()
        until = time.monotonic() + _CLOSE_S
        for channel in self._open:
            channel.join(max(0.0, until - time.monotonic()))


class Channel(threading.Thread):
    def __init__(
        self, wish: ChannelWish, rank: Optional[Rank], program: List[str], servers: Servers, key: str, words: Words
    ) -> None:
        super().__init__(daemon=True, name="channel")
        self._wish = wish
        self.rank = rank
        self._program = program
        self._servers = servers
        self._key = key
        self._words = words
        self.over = threading.Event()

    def run(self) -> None:
        try:
            line = self._connect()
        except (OSError, ValueError, Refused) as error:
            self._words.say("a person waits in vain: no channel to %s: %s" % (self._wish.url, error))
            return
        code = NORMAL
        try:
            self._serve(line)
        except Unwelcome as error:
            _tell(line, error.code, str(error))
        except Ended:
            _tell(line, "conflict", "the rank has ended, and everything beside it")
        except Broken as error:
            _tell(line, "invalid_request", str(error))
        except Closed:
            code = GOING_AWAY
        line.close(code, _CLOSE_S)

    def _connect(self) -> WebSocket:
        """To the server that the person is at. The one that we hear usually is that one, and surely is within reach."""
        headers = {"Authorization": "Bearer %s" % self._key}
        path = "/agent/v1/channels/%s" % self._wish.id
        urls = list(dict.fromkeys([self._servers.current(), self._wish.url]))
        for url in urls[:-1]:
            try:
                return connect(url, path, headers, _CONNECT_S)
            except (OSError, ValueError, Refused):
                continue
        return connect(urls[-1], path, headers, _CONNECT_S)

    def _serve(self, line: WebSocket) -> None:
        if self.rank is None or not self.rank.is_live:
            raise Unwelcome("conflict", "the rank does not run on its node any more")
        request = self._wish.request
        if request["kind"] == "forward":
            self._forward(line, request["port"])
            return
        spec = disk.read_json(os.path.join(self.rank.folder, "spec.json"))
        if spec is None:
            raise Unwelcome("conflict", "the rank has not started yet; try again in a moment")
        try:
            is_boxed = self.rank.launch["container"] is not None
            visit = Visit(self._wish.id, self._program, spec, self._asked(request), is_boxed)
        except (OSError, ValueError) as error:
            raise Unwelcome("conflict", "could not start it on the node: %s" % error) from error
        self._words.say("channel %s: %s beside rank %s" % (self._wish.id, request["kind"], self.rank.rank_id))
        try:
            visit.carry(Relay(line, visit.sources, visit.sinks, is_called=True), self.over)
        finally:
            visit.end()

    def _asked(self, request: Dict[str, object]) -> Dict[str, object]:
        """The request as one for a program; copies are made by this one."""
        assert self.rank is not None
        if request["kind"] == "exec":
            return dict(request, argv=command_of(self.rank.launch, self._wish.id, request))
        verb = "--unpack" if request["kind"] == "copy_in" else "--pack"
        return {"argv": [*self._program, verb, request["path"]], "stdin": verb == "--unpack", "tty": None}

    def _forward(self, line: WebSocket, port: int) -> None:
        with _dialled(port) as sock:
            sock.setblocking(False)
            sink = Sink(sock.fileno(), lambda: _half_close(sock))
            relay = Relay(line, {OUT: sock.fileno()}, {IN: sink}, is_called=True)
            while not relay.is_done and not sink.is_broken:
                relay.turn(_TICK_S)
                if self.over.is_set():
                    raise Ended
            line.flush()


def _dialled(port: int) -> socket.socket:
    for host in _LOOPBACK:
        try:
            return socket.create_connection((host, port), _CONNECT_S)
        except OSError:
            continue
    raise Unwelcome("unreachable", "nothing listens on port %d of the node" % port)


def _half_close(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def _tell(line: WebSocket, code: str, message: str) -> None:
    line.send(bytes([ERROR]) + packed({"error": code, "message": message}))
