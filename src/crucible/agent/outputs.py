"""What one rank leaves in $CRUCIBLE_OUTPUT: stored when its program has ended in good order, before the server hears of
the exit. The node's loop asks whether it is settled, and never waits.

    output/         what the program writes
    outputs.json    how storing it ended: its digest, or why not; written once
"""

from __future__ import annotations

import os
import threading
import time

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from .link import Link, Servers
    from .output_upload import Storing
    from .words import Words

# An upload that takes longer is told to the server: it may have to wait.
_SLOW_S = 5.0


class Outputs:
    def __init__(
        self, folder: str, launch: Dict[str, Any], servers: Servers, new_link: Callable[[], Link], words: Words
    ) -> None:
        """`folder` is the rank's."""
        self._folder = folder
        self._launch = launch
        self._servers = servers
        self._new_link = new_link
        self._words = words
        self._storing: Optional[Storing] = None
        self._is_dropped = False
        self._began_at = float("inf")
        self._said: List[str] = []
        self._lock = threading.Lock()
        self.digest: Optional[str] = None
        self.failure: Optional[str] = None
        # The machine went before it was stored.
        self.is_given_up = False
        self.is_settled = launch["output"] is None
        self._recall()

    def _recall(self) -> None:
        """What an earlier agent of this folder came to."""
        note = None if self.is_settled else disk.read_json(self._path("outputs.json"))
        if note is not None:
            self.digest, self.failure, self.is_settled = note.get("digest"), note.get("failure"), True

    # --- for the node's loop --------------------------------------------------------------------

    def keep(self) -> None:
        """It is to stop, and what it leaves counts all the same."""
        try:
            disk.write_json(self._path("kept.json"), {})
        except OSError as error:
            self._words.say_once("outputs", "no note of it could be written: %s" % error)

    def consider(self, result: Dict[str, Any], is_evicted: bool) -> None:
        """It has ended: store what it left, if that counts. An empty folder costs one look."""
        if self.is_settled or self._storing is not None:
            return
        from .output_tree import is_empty

        if is_evicted or self._is_dropped or not self._counts(result) or is_empty(self._path("output")):
            self.is_settled = True
            return
        from .output_upload import Storing

        self._began_at = time.monotonic()
        self._storing = Storing(self._path("output"), self._launch, self._servers, self._words)
        threading.Thread(target=self._run, daemon=True, name="outputs").start()

    def _counts(self, result: Dict[str, Any]) -> bool:
        """Whoever fails, is cancelled, timed out or killed may have written half of it."""
        if result.get("exit_code") != 0 or result.get("timed_out"):
            return False
        return not result.get("reason") or os.path.exists(self._path("kept.json"))

    def is_slow(self) -> bool:
        return not self.is_settled and time.monotonic() - self._began_at >= _SLOW_S

    def hurry(self) -> None:
        """The machine goes, or nobody hears it: no patience beyond what moves."""
        if self._storing is not None:
            self._storing.hurry()

    def drop(self) -> None:
        """Nobody wants it any more, or will."""
        self._is_dropped = True
        if self._storing is not None:
            self._storing.close()

    def give_up(self) -> None:
        """The machine has no time left."""
        with self._lock:
            if self._storing is not None and not self.is_settled:
                self.is_given_up = self.is_settled = True
        self.drop()

    def take_words(self) -> List[str]:
        """For the log of the rank, since the last call."""
        with self._lock:
            said, self._said = self._said, []
        return said

    def ending(self, result: Dict[str, Any]) -> Dict[str, Any]:
        """How the rank ended, with what came of its outputs."""
        if self.failure is not None:
            return dict(result, exit_code=None, reason="could not store the outputs: %s" % self.failure)
        if self.is_given_up:
            return dict(result, reason="the machine went before the outputs were stored")
        return result

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        from .output_upload import Failed, GivenUp, Interrupted

        assert self._storing is not None, "whoever starts the thread has made it"
        try:
            stored = self._storing.run(self._new_link())
            said = "left %d files behind (%d bytes): %s" % (stored.files, stored.size, stored.digest[:12])
            self._settle(stored.digest or None, None, said if stored.digest else None)
        except Interrupted:
            self._settle(None, None, None, is_noted=False)
        except GivenUp:
            self.give_up()
        except Failed as error:
            self._settle(None, str(error), "could not store the outputs: %s" % error)
        except Exception as error:
            # Our bug; but a rank must not stay for ever, and its work must not pass for done.
            self._settle(None, "%s: %s" % (type(error).__name__, error), None)

    def _settle(
        self, digest: Optional[str], failure: Optional[str], said: Optional[str], is_noted: bool = True
    ) -> None:
        if is_noted:
            try:
                disk.write_json(self._path("outputs.json"), {"digest": digest, "failure": failure}, durable=True)
            except OSError as error:
                # After a restart it is stored once more, which does no harm.
                self._words.say_once("outputs", "no note of it could be written: %s" % error)
        with self._lock:
            if not self.is_settled:
                self.digest, self.failure = digest, failure
                self._said += [said] if said is not None else []
                self.is_settled = True

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)
