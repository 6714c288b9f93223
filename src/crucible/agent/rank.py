"""One rank as the agent sees it: files written by its supervisor, and what the server still has to hear of it.

The agent starts supervisors and writes to their control pipes; it never waits for a rank and never kills one itself
unless its supervisor is dead or deaf."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time

from . import disk, handover, journal, private, processes, protocol
from .events import Events
from .output import now_ms
from .prepare import cgroup_path
from .progress import Pattern
from .removal import Removal
from .spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set, Tuple

    from .cargo import Cargo
    from .outputs import Outputs

# An order through the control pipe is repeated until its effect is seen.
_REPEAT_S = 0.5
# A supervisor that has not ended its rank so long after the last moment is deaf.
_DEAF_AFTER_S = 10.0
# A server that answers but takes no records keeps an exit waiting no longer than this.
GIVE_UP_AFTER_S = 30.0
_MAX_ERROR = 1 << 16
# A variable of programs that work on items, which they ask the server for.
_ASKS = "CRUCIBLE_SHARDS"
# The control pipe takes this much in one piece.
_MAX_WORDS = 1000


class Rank:
    def __init__(
        self,
        folder: str,
        launch: Dict[str, Any],
        cgroup_parent: Optional[str],
        is_adopted: bool,
        outputs: Outputs,
        cargo: Optional[Cargo] = None,
    ) -> None:
        """`outputs` is what it leaves behind, `cargo` what carries its checkpoints, if the agent does."""
        self.folder = folder
        self.launch = launch
        self.key: Tuple[str, int] = (launch["attempt_id"], launch["rank"])
        self.rank_id = "%s/%d" % self.key
        self._cgroup = cgroup_path(cgroup_parent, self.rank_id)
        self.spool = Spool(os.path.join(folder, "log"))
        self.outputs = outputs
        self.cargo = cargo
        self.events = Events(os.path.join(folder, "events.jsonl"), None if cargo is None else cargo.take_reports())
        if cargo is not None:
            cargo.unheard = lambda: list(self.events.checkpoints)
        pattern = launch["progress_pattern"]
        self.pattern = None if pattern is None else Pattern(pattern, launch["progress_total"])
        self._complaints: List[str] = []
        self._unsaid: List[str] = []
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._has_begun = False
        self.started: Dict[str, Any] = {}
        self.result: Optional[Dict[str, Any]] = None
        self.cancelled = threading.Event()
        # Whether we know how much of it the server has: not after a restart of either.
        self.is_synced = not is_adopted
        self.is_in_work = True
        self.is_exit_delivered = False
        self.is_evicted = False
        self._order: Optional[Dict[str, Any]] = None
        self._order_sent_at = 0.0
        self._deaf_at = float("inf")
        self._orphans: Set[int] = set()
        self._removal: Optional[Removal] = None
        self._undelivered_since: Optional[float] = None
        self._has_given_up = False
        self._is_over = False
        self._last_lines: Optional[List[str]] = None
        self._told_servers: List[str] = []
        self.look()

    # --- its life ---------------------------------------------------------------------------

    def was_begun(self) -> bool:
        return self._has_begun or os.path.exists(self._path("supervisor.json"))

    def begin(self, argv: List[str], handed: bytes = b"") -> None:
        """Starts its supervisor, which outlives us, and gives it what only it may know. Raises OSError."""
        given = handover.nameless(handed)
        try:
            with open(self._path("supervisor.err"), "ab") as errors:
                self._process = subprocess.Popen(
                    argv, stdin=given, stdout=errors, stderr=errors, cwd="/", start_new_session=True
                )
        finally:
            os.close(given)
        self._has_begun = True

    @property
    def is_live(self) -> bool:
        return self.result is None

    def stop(self, reason: str, within_s: float = float("inf")) -> None:
        """SIGTERM, the rank's grace or what is left of the machine's time, SIGKILL."""
        grace_s = min(self.launch["stop_grace_s"], within_s)
        if self._order is None:
            self._give({"do": "stop", "text": reason, "grace_s": grace_s}, grace_s)

    def hear_stop(self, work: protocol.RankWork) -> None:
        """The server's word, which also says whether what it leaves counts all the same."""
        if work.keeps_outputs:
            self.outputs.keep()
        else:
            self.outputs.drop()
        self.stop(work.stop_reason, work.stop_within_s)

    def kill(self, reason: str) -> None:
        if self._order is None or self._order["do"] != "kill":
            self._give({"do": "kill", "text": reason}, 0.0)

    def conclude(self, reason: str) -> None:
        """It will not run (any more), and no supervisor is left to say so."""
        result = {"reason": reason, "started_at_ms": self.started.get("started_at_ms"), "ended_at_ms": now_ms()}
        self.cancelled.set()
        self.result = result
        private.remove(self.folder)
        try:
            disk.write_json(self._path("result.json"), result, durable=True)
        except OSError:
            pass  # a full disk: after a restart the same conclusion is drawn again

    def cancel(self, reason: str) -> bool:
        """Concludes a rank that has not begun; False if a supervisor has it after all.

        One that an earlier agent started may still be on its way: under the lock it finds the result, and gives way."""
        lock = None if self.was_begun() else self._take_lock()
        if lock is None:
            return False
        self.conclude(reason)
        os.close(lock)
        return True

    def _take_lock(self) -> Optional[int]:
        try:
            return disk.take_lock(self._path("lock"))
        except OSError:
            # Without a folder, or on a full disk, nobody else can begin it either.
            return os.open(os.devnull, os.O_RDONLY)

    def look(self) -> None:
        """Takes note of what it saved, of what its supervisor wrote, and of its supervisor's death."""
        self._unload()
        if self.result is not None:
            return
        self.result = disk.read_json(self._path("result.json"))
        if not self.started:
            self.started = disk.read_json(self._path("started.json")) or {}
        if self.result is None and self.was_begun() and not self._supervisor_lives():
            # It may have written its result since we looked.
            self.result = disk.read_json(self._path("result.json"))
            if self.result is None:
                self._reclaim()
        if self.result is None:
            self._press(time.monotonic())
        elif self._process is not None:
            self._process.poll()

    def _unload(self) -> None:
        """Takes over what the server and the log should hear of what it saved and left."""
        if self._is_over:
            return
        if self.cargo is not None:
            self.cargo.look()
            self.events.checkpoints += self.cargo.take_reports()
            self._unsaid += self.cargo.take_complaints()
        self._unsaid += self.outputs.take_words()
        self._unsaid = [text for text in self._unsaid if not self.say(text)]

    def _supervisor_lives(self) -> bool:
        if self._process is not None:
            if self._process.poll() is None:
                return True
            # It ended; or it gave way to one that an earlier agent had started, which holds the lock.
            self._process = None
        return disk.is_locked(self._path("lock"))

    def _reclaim(self) -> None:
        """Ends what a dead supervisor left behind; concludes when nothing is left."""
        processes.kill_cgroup(self._cgroup)
        left = processes.marked(self.rank_id, self.folder)
        processes.kill(left)
        self._orphans.update(process.pid for process in left)
        if not left and not processes.members(self._cgroup) and self._container_is_gone():
            for pid in self._orphans:
                processes.reap(pid)
            processes.remove_cgroup(self._cgroup)
            self.conclude("its supervisor ended before it; whatever it had started is dead" + self._last_error())

    def _container_is_gone(self) -> bool:
        """What ran in it may have been nobody's descendant and carry no mark that we may read."""
        if self._removal is None:
            self._removal = Removal(self.folder)
        return self._removal.is_over()

    def _last_error(self) -> str:
        """What a supervisor that broke has left: our bug, so its words belong into the report."""
        try:
            with open(self._path("supervisor.err"), encoding="utf-8", errors="replace") as file:
                lines = file.read(_MAX_ERROR).strip().splitlines()
        except OSError:
            return ""
        return ": " + lines[-1] if lines else ""

    def _give(self, order: Dict[str, Any], grace_s: float) -> None:
        if self.result is not None or self.cancel("stopped before it started: %s" % order["text"]):
            return
        if self.cargo is not None:
            self.cargo.hurry()
        order["text"] = str(order["text"])[:_MAX_WORDS]
        self._order, self._order_sent_at = order, 0.0
        self._deaf_at = time.monotonic() + grace_s + _DEAF_AFTER_S
        self._press(time.monotonic())

    def _press(self, now: float) -> None:
        """Repeats an order whose effect is not seen, and ends a supervisor that does not hear."""
        if self._order is None or now < self._order_sent_at + _REPEAT_S:
            return
        self._order_sent_at = now
        if self._order["do"] == "kill" or not os.path.exists(self._path("stop")):
            self._control(self._order)
        if now >= self._deaf_at:
            begun = disk.read_json(self._path("supervisor.json")) or {}
            supervisor = processes.find(int(begun.get("pid") or 0))
            if supervisor is not None and supervisor.started == begun.get("started"):
                processes.kill([supervisor])

    def say(self, text: str) -> bool:
        """A line of ours in its log, by its supervisor while it has one; False if nobody is there to write it yet."""
        if self.result is None:
            return self._control({"do": "say", "text": text[:_MAX_WORDS]})
        if not self._is_over:
            journal.add_line(self._path("log"), text[:_MAX_WORDS], now_ms())
        return True

    def _control(self, order: Dict[str, Any]) -> bool:
        try:
            pipe = os.open(self._path("control"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(pipe, json.dumps(order).encode() + b"\n")
        except OSError:
            return False
        finally:
            os.close(pipe)
        return True

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    # --- what the server hears --------------------------------------------------------------

    def state(self) -> str:
        """An exit is told last, when what it saved is stored and the server has everything that was printed before it;
        and then for ever."""
        if self.result is not None and not self._is_over and not self.is_carrying():
            self._unload()
            self._is_over = self._has_given_up or self.is_delivered()
        if self._is_over:
            return "exited"
        return "started" if self.started or (self.result or {}).get("started_at_ms") else "starting"

    def is_delivered(self) -> bool:
        return self.is_synced and self.spool.is_empty() and self.events.is_empty()

    def has_records(self) -> bool:
        """Something to send; nothing once it is over."""
        if self._is_over:
            return False
        return not self.is_synced or not self.spool.is_empty() or self.events.has_news()

    def is_carrying(self) -> bool:
        """What it saved or left is on its way to storage, and worth waiting for."""
        return not self._is_over and (self._is_saving() or self._is_storing())

    def _is_storing(self) -> bool:
        if self.result is None:
            return False
        self.outputs.consider(self.result, self.is_evicted)
        # Work whose results went with the machine is not done.
        self.is_evicted = self.is_evicted or self.outputs.is_given_up
        return not self.outputs.is_settled

    def _is_saving(self) -> bool:
        if self.cargo is None:
            return False
        if self.result is not None:
            # It may have saved until its last moment, and that is what counts.
            self.cargo.finish()
            self.cargo.look()
            self.cargo.hurry()
        return not self.cargo.is_settled(time.monotonic())

    def is_checkpointing(self) -> bool:
        """It writes a checkpoint; or was told to stop, and its last one is still on its way; or what it left takes its
        time."""
        if (self.result is None and self.events.is_checkpointing) or self.outputs.is_slow():
            return True
        return (self._order is not None or self.is_evicted) and self.is_carrying()

    def progress(self) -> Optional[Dict[str, Any]]:
        """What the program says itself goes before what its lines look like."""
        found = self.pattern.found if self.pattern is not None else None
        return self.events.progress or found

    def report(self, state: str) -> Dict[str, Any]:
        has_ended = state == "exited" and self.result is not None
        result = self.outputs.ending(self.result) if has_ended and self.result is not None else self._so_far()
        if state == "exited" and result.get("exit_code") != 0 and self._last_lines is None:
            self._last_lines = self.spool.last_lines()
        return protocol.rank_report(
            self.launch,
            state,
            result,
            evicted=self.is_evicted,
            is_checkpointing=self.is_checkpointing(),
            log_lines=self.spool.read_to,
            last_lines=self._last_lines or [],
            **({"outputs": self.outputs.digest} if has_ended and self.outputs.digest is not None else {}),
        )

    def _so_far(self) -> Dict[str, Any]:
        """When it started; and why it will have to go, so that its siblings elsewhere can save with it."""
        if not self.is_evicted or self._order is None:
            return self.started
        return dict(self.started, reason=self._order["text"])

    def tell_servers(self, urls: List[str]) -> None:
        """To a program that asks the server for its work itself: where that is, the likeliest first."""
        if urls == self._told_servers or not self.is_live or _ASKS not in self.launch["env"]:
            return
        path = self._path("servers.json")
        try:
            disk.write_json(path, {"servers": urls})
            os.chmod(path, 0o644)  # somebody else may be the user in a container; it holds no secret
        except OSError:
            return  # a full disk, or a folder that is still to be made: the next look tells it
        self._told_servers = urls

    def abandon_cargo(self) -> None:
        """Nobody wants what it saved and left any more."""
        self.outputs.drop()
        if self.cargo is not None:
            self.cargo.close()

    def tell_storage(self) -> None:
        """No server hears how it ended: leave word in storage, so that nobody runs again what is done."""
        if self.cargo is not None and self.result is not None and not self._is_storing():
            self.cargo.tell_result(protocol.dumps(self.report("exited")))

    def batch(self, limit_bytes: int) -> Optional[bytes]:
        """Records the server does not have, or the question how many it has; None if there is nothing to send."""
        if not self.is_synced:
            return protocol.stream_batch(self.launch, [], [])
        self.events.read()
        log = self.spool.batch(limit_bytes, None if self.pattern is None else self.pattern.search)
        metrics = self.events.metrics(min(limit_bytes, protocol.METRIC_BYTES))
        self._complain()
        return protocol.stream_batch(self.launch, log, metrics) if log or metrics else None

    def acknowledge(self, log: int, metrics: int) -> bool:
        """Whether the server has more than before."""
        before = (self.spool.acknowledged, self.events.acknowledged)
        self.spool.acknowledge(log)
        self.events.acknowledge(metrics)
        was_synced, self.is_synced = self.is_synced, True
        return (log, metrics) != before or not was_synced

    def note_answer(self, has_progressed: bool, now: float) -> None:
        """A server answered. One that takes nothing for too long does not keep the exit waiting."""
        if self.result is None or has_progressed or self._undelivered_since is None or self.is_carrying():
            self._undelivered_since = now
        elif now - self._undelivered_since >= GIVE_UP_AFTER_S:
            self._has_given_up = True

    def _complain(self) -> None:
        """Says once what is wrong with the program's own reports."""
        complaints = []
        if self.pattern is not None and self.pattern.problem is not None:
            complaints.append(self.pattern.problem)
        if self.events.refused:
            complaints.append("a line of events.jsonl was ignored: it is not an event, or too long")
        for text in complaints:
            if text not in self._complaints:
                self._complaints.append(text)
                self.say(text)
