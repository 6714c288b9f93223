"""What one rank saved, on its way to storage: one checkpoint at a time, in a thread of its own. When it falls behind,
the newest that waits is next. The node's loop asks whether everything is settled, and never waits."""

from __future__ import annotations

import threading
import time

from .bodies import Bytes
from .courier import Courier, Declined, Unreachable
from .keep import Keeper
from .link import Backoff
from .saves import Saves
from .slots import Slots
from .upload import Failed, Interrupted, Upload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from .hold import Hold
    from .link import Link
    from .meter import Meter, Transfer
    from .saves import Save
    from .words import Words

# Without a byte moving for so long, nobody waits for an upload any more.
STALLED_S = 60.0


class Cargo:
    def __init__(
        self,
        launch: Dict[str, Any],
        events: str,
        folder: str,
        hold: Hold,
        meter: Meter,
        new_link: Callable[[], Link],
        words: Words,
    ) -> None:
        """`events` is the file that the rank writes, `folder` where an upload is kept, `hold` what its task has."""
        self._launch = launch
        self._folder = folder
        self._hold = hold
        self._meter = meter
        self._words = words
        self._saves = Saves(events)
        self._slots = Slots(launch, new_link, words)
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._waiting: List[Save] = []
        self._current: Optional[Save] = None
        # Of which shards were carried last: the others of this rank come next.
        self._step: Optional[int] = None
        self._transfer: Optional[Transfer] = None
        self._reports: List[Dict[str, Any]] = list(self._saves.reports)
        self._patient_since = time.monotonic()
        self._has_begun = self._has_thread = self._is_hurried = self._is_given_up = False
        self._is_keeping = False
        # The last upload: seconds for so many bytes of checkpoint. And the size of the newest one saved.
        self._seconds_per_byte = 0.0
        self._newest_bytes = 0
        # For the log of the rank.
        self._complaints: List[str] = []
        self.unheard: Callable[[], List[Dict[str, Any]]] = list
        self._result: Optional[threading.Thread] = None
        # What the program keeps by itself, on the first node.
        self._keeper = Keeper(launch, events, hold, words) if launch["rank"] == 0 else None

    # --- for the node's loop --------------------------------------------------------------------

    def start(self) -> None:
        """The rank runs, or has left something: a slot is needed."""
        if not self._has_begun:
            self._has_begun = True
            self._slots.start()
            if self._keeper is not None:
                self._keeper.start()

    def look(self) -> None:
        """Takes note of what was saved."""
        is_kept = self._keeper is None or self._keeper.is_done()
        saved = self._saves.read()
        if is_kept:
            self._is_keeping = False
        if not saved or self._closed.is_set():
            return
        self.start()
        with self._changed:
            if not self._waiting and self._current is None:
                self._patient_since = time.monotonic()
            self._waiting += saved
            self._newest_bytes = saved[-1].event["size_bytes"]
            self._changed.notify_all()
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._run, daemon=True, name="cargo").start()

    def is_carrying(self) -> bool:
        with self._changed:
            return not self._closed.is_set() and (bool(self._waiting) or self._current is not None or self._is_keeping)

    def is_settled(self, now: float) -> bool:
        """Nothing is on its way, or nobody should wait for it."""
        return self._is_given_up or not self.is_carrying() or now - self._moved_at() >= STALLED_S

    def finish(self) -> None:
        """The rank has ended: what it kept is carried too."""
        if self._keeper is not None and not self._keeper.is_done():
            self._is_keeping = True
            self._keeper.finish()

    def be_patient(self) -> None:
        """Nobody could hear that the rank ended: let storage have its time too."""
        self._patient_since = time.monotonic()

    def hurry(self) -> None:
        """The rank is to stop: its last checkpoint counts, others do not."""
        self._is_hurried = True

    def give_up(self) -> None:
        """The machine has no time left."""
        self._is_given_up = True

    def take_reports(self) -> List[Dict[str, Any]]:
        """Of checkpoints that are in storage since the last call."""
        with self._changed:
            reports, self._reports = self._reports, []
        return reports

    def take_complaints(self) -> List[str]:
        """For the log of the rank, since the last call."""
        with self._changed:
            complaints, self._complaints = self._complaints, []
        return complaints

    def needs_s(self) -> float:
        """What the last upload suggests for what is on its way and the newest size."""
        transfer = self._transfer
        left = 0.0 if transfer is None else 1.0 - transfer.done_bytes / max(1, transfer.total_bytes)
        return self._seconds_per_byte * self._newest_bytes * (1.0 + max(0.0, left))

    def close(self) -> None:
        self._closed.set()
        self._slots.close()
        with self._changed:
            self._changed.notify_all()

    def _moved_at(self) -> float:
        transfer = self._transfer
        return max(self._patient_since, 0.0 if transfer is None else transfer.moved_at)

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            save = self._next()
            if save is not None:
                report = self._carry(save)
                self._settle(save, report)
        # Whoever closed it has removed this already; what was being written meanwhile has not gone with it.
        self._discard()

    def _next(self) -> Optional[Save]:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closed.is_set())
            if self._closed.is_set():
                return None
            save = choose(self._waiting, self._is_hurried, self._step)
            self._step = save.step
            dropped = [each for each in self._waiting if is_overtaken(each, save)]
            self._waiting = [each for each in self._waiting if each is not save and each not in dropped]
            self._current = save
            self._patient_since = time.monotonic()
        for each in dropped:
            self._words.say("step %d is not carried: a newer one is there already" % each.step)
        return save

    def _carry(self, save: Save) -> Optional[Dict[str, Any]]:
        """What a report says of it; None if it is not in storage, or is there already."""
        event = save.event
        if self._hold.has(event["manifest_sha256"]):
            return None
        upload = Upload(self._folder, self._slots, self._closed, self._words)
        try:
            upload.load(self._hold.manifest_path(event, self._launch["number"]), event["manifest_sha256"])
            if upload.node.rank != (self._launch["rank"] if save.saver is None else save.saver):
                return None  # whoever saved it carries it
            report = dict(event, **self._send(upload))
        except Interrupted:
            return None
        except Failed as error:
            with self._changed:
                self._complaints.append("the checkpoint of step %d did not get to storage: %s" % (save.step, error))
            self._words.say("step %d of %s: %s" % (save.step, self._launch["attempt_id"], error))
            return None
        except Exception as error:
            # Our bug; but the checkpoints after this one must not wait for ever.
            self._words.say("step %d: broken: %s: %s" % (save.step, type(error).__name__, error))
            return None
        self._hold.keep(upload.node.rank, upload.node, upload.objects)
        return report

    def _send(self, upload: Upload) -> Dict[str, Any]:
        began = time.monotonic()
        self._transfer = transfer = self._meter.begin("upload", upload.plan(self._hold.known(upload.node.rank)))
        try:
            report = upload.send(transfer)
        finally:
            self._transfer = None
            self._meter.end("upload", transfer)
        self._seconds_per_byte = (time.monotonic() - began) / max(1, upload.node.size_bytes)
        return report

    def _settle(self, save: Save, report: Optional[Dict[str, Any]]) -> None:
        if self._closed.is_set():
            return
        with self._changed:
            reports = self._reports + ([] if report is None else [report])
            is_first = all(each.end > save.end for each in self._waiting)
        try:
            self._saves.settle(save if is_first else None, self.unheard() + reports)
        except OSError as error:
            # After a restart it is carried once more, which does no harm.
            self._words.say_once("upload", "no note of it could be written: %s" % error)
        self._discard()
        with self._changed:
            self._reports = reports
            self._current = None
            self._patient_since = time.monotonic()

    def _discard(self) -> None:
        Upload(self._folder, self._slots, self._closed, self._words).discard()

    # --- how the rank ended ---------------------------------------------------------------------

    def tell_result(self, report: bytes) -> None:
        """Leaves word of the exit in storage, where no server hears of it; once."""
        if self._result is None:
            self._result = threading.Thread(target=self._tell_result, args=(report,), daemon=True, name="result")
            self._result.start()

    def _tell_result(self, report: bytes) -> None:
        courier, backoff = Courier(), Backoff()
        while not self._closed.is_set():
            signed = self._slots.result
            try:
                if signed is not None:
                    courier.put(signed, Bytes(report), lambda _: None)
                    self._words.say("no server hears: how %s ended is in storage" % self._launch["attempt_id"])
                    return
            except Declined as error:
                self._words.say_once("result", str(error))
                return
            except Unreachable as error:
                self._words.say_once("result", str(error))
            self._closed.wait(backoff.next_s())


def is_overtaken(older: Save, chosen: Save) -> bool:
    """What was said before the chosen one is not carried any more; but of processes that share a rank one may already
    have said the next step, whose other shards are yet to come."""
    is_next = older.event["shards"] > 1 and older.step > chosen.step
    return older.end < chosen.end and not is_next


def choose(waiting: List[Save], is_hurried: bool, begun: Optional[int] = None) -> Save:
    """The newest. Ranks that save together must not each choose another step: they take the roundest, until the end.
    Where several processes of one rank save together, all shards of a step go before another is begun."""
    if all(each.event["shards"] == 1 for each in waiting):
        return waiting[-1]
    steps = [each for each in waiting if each.step == begun] or waiting
    chosen = steps[-1] if is_hurried else max(steps, key=lambda each: (each.roundness, each.end))
    return next(each for each in waiting if each.step == chosen.step)
