"""The two threads that wait for the server, so that the node never does: one asks for work, one delivers reports.

Each hands what it hears to the node's inbox and decides nothing. Only one question for work is on its way at a time:
an old answer that overtook a new one would kill what was just started."""

from __future__ import annotations

import queue
import threading
import time
import urllib.parse

from . import protocol
from .link import TIMEOUT_S, Answer, Backoff, Link, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    from .words import Words

_WAIT_S = 20
# A server that answers "unchanged" at once, without waiting, is not asked more often than this.
_ASK_EVERY_S = 0.5
GONE = 410


class Poller:
    """Calls `on_work` for every new picture, and `on_gone` if the node is retired."""

    def __init__(self, link: Link, words: Words, on_work: Callable[[protocol.Work], None], on_gone: Callable[[], None]):
        self._link = link
        self._words = words
        self._on_work = on_work
        self._on_gone = on_gone
        self._seen = ""
        self._nudged_at = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="work").start()

    def nudge(self, version: str) -> None:
        """A report's answer names a version: if it is another one, ask now instead of waiting on."""
        now = time.monotonic()
        if version != self._seen and now - self._nudged_at >= _ASK_EVERY_S:
            self._nudged_at = now
            self._link.interrupt()

    def _run(self) -> None:
        backoff = Backoff()
        while True:
            asked_at = time.monotonic()
            try:
                has_changed = self._ask()
            except (Unanswered, protocol.Malformed) as error:
                self._words.say_once("work", str(error))
                time.sleep(backoff.next_s())
                continue
            backoff.reset()
            if not has_changed:
                time.sleep(max(0.0, asked_at + _ASK_EVERY_S - time.monotonic()))

    def _ask(self) -> bool:
        query = urllib.parse.urlencode({"seen": self._seen, "wait": _WAIT_S})
        answer = self._link.call("GET", "/agent/v1/work?" + query, timeout_s=TIMEOUT_S + _WAIT_S)
        if answer.status == GONE:
            self._on_gone()
        if not answer.is_ok:
            raise Unanswered("the server says %s" % answer.complaint())
        work = protocol.Work(answer.data)
        if work.unchanged or work.version == self._seen:
            return False
        self._seen = work.version
        self._on_work(work)
        return True


class Reporter:
    """Sends one report at a time; `on_answer` gets the answer, or None if there was none."""

    def __init__(
        self, link: Link, words: Words, on_answer: Callable[[Optional[Answer]], None], timeout_s: float
    ) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._words = words
        self._on_answer = on_answer
        self._reports: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="report").start()

    def send(self, report: bytes) -> None:
        self._reports.put(report)

    def _run(self) -> None:
        while True:
            report = self._reports.get()
            try:
                self._on_answer(self._link.call("POST", "/agent/v1/report", report, self._timeout_s))
            except Unanswered as error:
                self._words.say_once("report", str(error))
                self._on_answer(None)
