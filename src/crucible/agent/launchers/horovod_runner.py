"""The runner of one node of an elastic Horovod gang: it starts the workers that the driver asks for and tells how they
ended. The first node's runner starts the driver too. It ends when the driver says so, or is gone."""

from __future__ import annotations

import signal
import threading
import time

from .channel import Broken, Channel, secret
from .children import GRACE_S, Children, own, say
from .horovod_driver import SILENCE_S
from .horovod_gang import connect, meeting, worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queue import SimpleQueue
    from typing import Any, Dict, List, Optional, Tuple

    from . import Options

_BEAT_EVERY_S = 1.0
_LOOK_EVERY_S = 0.05
_DRIVER = "driver"
# The driver's last words may come after its end; and after them it may take a moment to end.
_LAST_WORDS_S = 2.0
_DRIVER_ENDS_WITHIN_S = 10.0


def run(options: Options) -> int:
    master, children = options.address("master"), Children()
    if "drive" in options:
        given = ["--%s=%d" % (name, options.number(name)) for name in ("min", "max")]
        own_driver = own("horovod-driver", "--port=%d" % master[1], "--address=%s" % master[0], *given)
        children.start(_DRIVER, own_driver, {})
    try:
        sock = connect(master, children)
        if sock is None:
            raise Broken("no driver at %s:%d" % master)
        channel = Channel(sock, secret(), "runner", SILENCE_S)
        channel.send({"node": options.number("node"), "slots": options.number("slots")})
        code = Runner(channel, children, master, options.program).run()
    except (Broken, OSError) as error:
        say("this node leaves the gang: %s" % error)
        code = 1
    if "drive" in options and code == 0:
        children.linger(_DRIVER, _DRIVER_ENDS_WITHIN_S)
    children.stop()
    return code


class Runner:
    """One loop that owns the children; a thread brings what the driver says."""

    def __init__(self, channel: Channel, children: Children, master: Tuple[str, int], program: List[str]) -> None:
        import queue

        self._channel = channel
        self._children = children
        self._master = master
        self._program = program
        self._inbox: SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()
        self._kill_at: Dict[int, float] = {}
        self._next_beat = 0.0
        self._silence: Optional[Broken] = None
        self._driver_gone_at = float("inf")

    def run(self) -> int:
        """Until the driver ends; returns what it says. Raises Broken."""
        threading.Thread(target=self._listen, daemon=True, name="driver").start()
        while True:
            while not self._inbox.empty():
                message = self._inbox.get()
                if message.get("do") == "end":
                    return int(message["code"])
                self._obey(message)
            if self._silence is not None or time.monotonic() >= self._driver_gone_at:
                raise self._silence or Broken("the driver has ended")
            self._tell_exits()
            self._beat()
            time.sleep(_LOOK_EVERY_S)

    def _listen(self) -> None:
        try:
            while True:
                self._inbox.put(self._channel.receive())
        except Broken as error:
            self._silence = error

    def _obey(self, message: Dict[str, Any]) -> None:
        if "do" not in message:
            return
        number = int(message["id"])
        if message["do"] == "start" and not self._children.is_stopping:
            place = {str(name): str(value) for name, value in message["env"].items() if name.startswith("HOROVOD_")}
            env = dict(meeting(self._master), HOROVOD_ELASTIC="1")
            env.update(worker(place))
            self._children.start(number, self._program, env)
        elif message["do"] == "start":
            self._channel.send({"exit": number, "code": 1})
        elif message["do"] == "stop":
            self._children.signal(number, signal.SIGTERM)
            self._kill_at[number] = time.monotonic() + GRACE_S

    def _tell_exits(self) -> None:
        for number, code in self._children.ended().items():
            if number == _DRIVER:
                self._driver_gone_at = time.monotonic() + _LAST_WORDS_S
                continue
            self._kill_at.pop(number, None)
            self._channel.send({"exit": number, "code": code})
        for number, at in list(self._kill_at.items()):
            if time.monotonic() >= at:
                self._children.signal(number, signal.SIGKILL)

    def _beat(self) -> None:
        """So that a cut line is told from a long step, on both sides: the driver answers."""
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + _BEAT_EVERY_S
            self._channel.send({"beat": 1})
