"""Where the next checkpoint of a rank may go. One slot is always in hand, signed for longer than a server is likely to
be away: a notice then costs nothing but the upload."""

from __future__ import annotations

import threading
import time

from . import protocol
from .courier import Unreachable
from .link import Backoff, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .link import Answer, Link
    from .words import Words

# Parts that are asked for before anybody knows the size of a checkpoint.
FIRST_PARTS = 16
# The protocol's MAX_SIGNED: signed requests in one answer.
AT_ONCE = 4096
_MOST_PARTS = 100_000
# A server that answers, but gives nothing, is not asked more often than this.
_REFUSED_PAUSE_S = 10.0
_PASSING = (401, 403, 408, 429)
_FORBIDDEN, _ASK_AGAIN = "forbidden", "stale_version"


class NoSlot(Exception):
    """A server answered and gives none."""


class Slot:
    def __init__(self, reply: protocol.SlotReply) -> None:
        self.name = reply.slot
        self.prefix = reply.prefix
        self.parts = reply.parts
        self.lock = threading.Lock()
        self.take(reply)

    def take(self, reply: protocol.SlotReply) -> None:
        """The newest signatures of everything but the parts."""
        self.manifest = reply.manifest
        self.result = reply.result
        self.renew_at = time.monotonic() + reply.lives_s / 2


class Slots:
    """Of one rank. A thread keeps one slot in hand; others take it, and renew what they took."""

    def __init__(self, launch: Dict[str, Any], new_link: Callable[[], Link], words: Words) -> None:
        self._launch = launch
        self._new_link = new_link
        self._words = words
        # Ranks other than the first may never save: they only need to say how they ended.
        self._count = FIRST_PARTS if launch["rank"] == 0 else 0
        self._spare: Optional[Slot] = None
        self._changed = threading.Condition()
        self._is_nudged = False
        self._is_closed = False
        # Where to say how the rank ended, by the newest signature.
        self.result: Optional[protocol.Signed] = None

    def start(self) -> None:
        threading.Thread(target=self._keep, daemon=True, name="slots").start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def take(self, wait_s: float) -> Optional[Slot]:
        """The one in hand; None if there is none within `wait_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._spare is not None or self._is_closed, wait_s)
            taken, self._spare = self._spare, None
            self._is_nudged = True
            self._changed.notify_all()
        return taken

    def expect(self, count: int) -> None:
        """The next checkpoint will need about as many parts as this one."""
        with self._changed:
            self._count = min(_MOST_PARTS, max(FIRST_PARTS, count + count // 4))
            self._is_nudged = True
            self._changed.notify_all()

    def reopen(self, name: str, count: int) -> Slot:
        """One that an earlier agent of this folder took. Raises Unreachable, NoSlot."""
        link = self._new_link()
        slot = Slot(self._ask(link, name, 0, min(count, AT_ONCE)))
        self._fill(link, slot, count)
        return slot

    def extend(self, slot: Slot, count: int) -> None:
        """At least `count` parts. Raises Unreachable, NoSlot."""
        with slot.lock:
            self._fill(self._new_link(), slot, count)

    def renew(self, slot: Slot, was: object = None) -> None:
        """Signs everything anew, unless that was done since `was` was handed out. Raises Unreachable, NoSlot."""
        with slot.lock:
            if was is None or was in slot.parts or was is slot.manifest:
                self._renew(self._new_link(), slot)

    # --- the thread ---------------------------------------------------------------------------

    def _keep(self) -> None:
        link, backoff = self._new_link(), Backoff()
        while not self._is_closed:
            self._is_nudged = False
            try:
                pause_s = self._look_after(link)
                backoff.reset()
            except Unreachable as error:
                self._words.say_once("slot", str(error))
                pause_s = backoff.next_s()
            except NoSlot as error:
                self._words.say_once("slot", str(error))
                pause_s = _REFUSED_PAUSE_S
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._is_nudged, pause_s)
        link.close()

    def _look_after(self, link: Link) -> float:
        """Seconds until there is something to do, unless the slot is taken before."""
        slot = self._spare
        if slot is None:
            slot = Slot(self._ask(link, None, 0, min(self._count, AT_ONCE)))
            with self._changed:
                self._spare = slot
                self._changed.notify_all()
        with slot.lock:
            if time.monotonic() >= slot.renew_at:
                self._renew(link, slot)
            self._fill(link, slot, self._count)
        return max(0.0, slot.renew_at - time.monotonic())

    # --- the server ---------------------------------------------------------------------------

    def _fill(self, link: Link, slot: Slot, count: int) -> None:
        while len(slot.parts) < count:
            reply = self._ask(link, slot.name, len(slot.parts), min(count - len(slot.parts), AT_ONCE))
            if not reply.parts:
                raise NoSlot("the server signs no more than %d parts" % len(slot.parts))
            slot.parts += reply.parts

    def _renew(self, link: Link, slot: Slot) -> None:
        reply = self._ask(link, slot.name, 0, min(len(slot.parts), AT_ONCE))
        parts, count = reply.parts, len(slot.parts)
        while len(parts) < count:
            more = self._ask(link, slot.name, len(parts), min(count - len(parts), AT_ONCE)).parts
            if not more:
                raise NoSlot("the server signs no more than %d parts" % len(parts))
            parts += more
        slot.parts = parts
        slot.take(reply)

    def _ask(self, link: Link, name: Optional[str], first: int, count: int) -> protocol.SlotReply:
        body = protocol.slot_request(self._launch, name, first, count)
        try:
            answer = link.call("POST", "/agent/v1/storage/slot", body)
            if not answer.is_ok:
                words = "the server gives no place for a checkpoint (%s)" % answer.complaint()
                raise Unreachable(words) if may_pass(answer) else NoSlot(words)
            reply = protocol.SlotReply(answer.data)
        except (Unanswered, protocol.Malformed) as error:
            raise Unreachable(str(error)) from error
        if name is not None and reply.slot != name:
            raise NoSlot("the server gave another slot than was asked for")
        self.result = reply.result
        return reply


def may_pass(answer: Answer) -> bool:
    """A stranger in between, or a server that was busy with the same row; not one that knows what was asked."""
    return (answer.status in _PASSING and answer.code != _FORBIDDEN) or answer.code == _ASK_AGAIN
