"""Horovod's elastic driver, for nodes that come to it. Horovod decides who is worker of which rank; its workers are
started by the runners of the nodes, and its host discovery is: the nodes whose runner is connected."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time

from .channel import Broken, Channel, secret
from .children import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Set, Tuple

    from . import Options

# A runner says something every second.
SILENCE_S = 15.0
# The gang begins as soon as enough are there, but waits so long for the rest.
_LAST_CALL_S = 5.0
_JOIN_S = 1800.0
_LOOK_EVERY_S = 0.1
_MOST_SLOTS = 1024


def run(options: Options) -> int:
    least, most = options.number("min"), options.number("max")
    try:
        house = House(options.number("port"), secret())
    except (Broken, OSError) as error:
        say("the driver cannot start: %s" % error)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: house.close())
    code = _drive(house, options.text("address"), least, most)
    house.send_home(code)
    return code


def _drive(house: House, address: str, least: int, most: int) -> int:
    from horovod.runner.elastic.driver import ElasticDriver
    from horovod.runner.elastic.rendezvous import create_rendezvous_handler
    from horovod.runner.http.http_server import RendezvousServer

    rendezvous = RendezvousServer()
    driver = ElasticDriver(rendezvous, house, least, most, timeout=int(_JOIN_S))
    port = rendezvous.start(create_rendezvous_handler(driver))
    try:
        driver.wait_for_available_slots(least)
        driver.wait_for_available_slots(min(most, max(least, house.wait_for(most, _LAST_CALL_S))))
        where = {"HOROVOD_GLOO_RENDEZVOUS_ADDR": address, "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port)}
        # Whoever comes before there is a first worker to tell of it would never be told of.
        house.may_grow = lambda: _has_first_worker(driver)
        driver.start(least, lambda slot, events: house.run_worker(slot, events, where))
        results = driver.get_results()
    except Exception as error:  # Horovod raises whatever it likes; the runners must hear that it is over
        say("the driver failed: %s" % error)
        return 1
    finally:
        driver.stop()
    return _verdict(results)


def _has_first_worker(driver: Any) -> bool:
    first = driver.get_coordinator_info()
    return first is not None and driver.get_worker_client(first) is not None


def _verdict(results: Any) -> int:
    """Of the last round: earlier failures were recovered from."""
    if results.error_message is not None:
        say(str(results.error_message))
        return 1
    codes = [code for code, _ in sorted(results.worker_results.values(), key=lambda each: each[1])]
    return next((code for code in codes if code), 0 if codes else 1)


class House:
    """Who is here: Horovod's host discovery. A runner that comes again is a new host, for Horovod trusts none twice."""

    def __init__(self, port: int, key: bytes) -> None:
        """Raises OSError."""
        self._key = key
        self._guests: Dict[str, Guest] = {}
        # Of these Horovod has heard.
        self._seen: Set[str] = set()
        self.may_grow: Callable[[], bool] = lambda: True
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._is_closing = False
        self._door = socket.create_server(("", port))
        threading.Thread(target=self._welcome, daemon=True, name="door").start()

    def find_available_hosts_and_slots(self) -> Dict[str, int]:
        may_grow = self.may_grow()
        with self._changed:
            seen = {name: each.slots for name, each in self._guests.items() if may_grow or name in self._seen}
            self._seen = set(seen)
        return seen

    def wait_for(self, slots: int, timeout_s: float) -> int:
        """How many there are, as soon as there are enough or after this time."""
        with self._changed:
            self._changed.wait_for(lambda: self._slots() >= slots, timeout_s)
            return self._slots()

    def _slots(self) -> int:
        return sum(each.slots for each in self._guests.values())

    def run_worker(self, slot: Any, events: List[threading.Event], where: Dict[str, str]) -> Tuple[int, float]:
        """As Horovod wants it: until the worker has ended."""
        with self._changed:
            guest = self._guests.get(slot.hostname)
        code = 1 if guest is None else guest.run_worker(dict(_place(slot), **where), events)
        return code, time.time()

    def send_home(self, code: int) -> None:
        with self._changed:
            guests = list(self._guests.values())
        for guest in guests:
            guest.send_home(code)

    def close(self) -> None:
        """Told to stop, it stays until the last node has left: they stop too, and their workers may have to save."""
        self._is_closing = True
        if not self._guests:
            os._exit(1)

    def _welcome(self) -> None:
        while True:
            sock, _ = self._door.accept()
            threading.Thread(target=self._serve, args=(sock,), daemon=True, name="guest").start()

    def _serve(self, sock: socket.socket) -> None:
        name = None
        try:
            channel = Channel(sock, self._key, "driver", SILENCE_S)
            hello = channel.receive()
            name = "node-%d-%d" % (int(hello["node"]), next(self._numbers))
            guest = Guest(channel, max(1, min(int(hello["slots"]), _MOST_SLOTS)))
            self._admit(name, guest)
            guest.listen()
        except (Broken, OSError, ValueError, KeyError, TypeError) as error:
            say("%s: %s" % (name or "a connection was refused", error))
        finally:
            sock.close()
            self._see_off(name)

    def _admit(self, name: str, guest: Guest) -> None:
        say("%s is here with %d slots" % (name, guest.slots))
        with self._changed:
            self._guests[name] = guest
            self._changed.notify_all()

    def _see_off(self, name: Any) -> None:
        with self._changed:
            guest = self._guests.pop(name, None)
        if guest is not None:
            guest.lost()
        if self._is_closing and not self._guests:
            os._exit(1)


class Guest:
    """The runner of one node, and what it runs for us."""

    def __init__(self, channel: Channel, slots: int) -> None:
        self.slots = slots
        self._channel = channel
        self._numbers = itertools.count()
        self._codes: Dict[int, int] = {}
        self._changed = threading.Condition()
        self._is_lost = False

    def listen(self) -> None:
        """Until it goes. Raises Broken, and what a message without sense raises."""
        while True:
            message = self._channel.receive()
            if "beat" in message:
                self._channel.send({"beat": 1})
            if "exit" in message:
                with self._changed:
                    self._codes[int(message["exit"])] = int(message["code"])
                    self._changed.notify_all()

    def lost(self) -> None:
        with self._changed:
            self._is_lost = True
            self._changed.notify_all()

    def run_worker(self, env: Dict[str, str], events: List[threading.Event]) -> int:
        number, is_stopped = next(self._numbers), False
        try:
            self._channel.send({"do": "start", "id": number, "env": env})
            while not self._has_ended(number):
                if not is_stopped and any(event.is_set() for event in events):
                    is_stopped = True
                    self._channel.send({"do": "stop", "id": number})
        except Broken:
            return 1
        return self._codes.get(number, 1)

    def send_home(self, code: int) -> None:
        try:
            self._channel.send({"do": "end", "code": code})
        except Broken:
            pass

    def _has_ended(self, number: int) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: number in self._codes or self._is_lost, _LOOK_EVERY_S)
            return number in self._codes or self._is_lost


def _place(slot: Any) -> Dict[str, str]:
    names = ("hostname", "rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    return {"HOROVOD_" + name.upper(): str(getattr(slot, name)) for name in names}
