"""The node: one loop that applies the work it hears, looks after its ranks and reports.

Only this thread changes anything; the others wait for the network or prepare folders and leave word in the inbox.
A server that is away changes nothing for a rank: only a picture of the work that does not hold it ends one."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque

from . import private, processes, protocol
from .attempts import Attempts
from .carrier import Carrier
from .channels import Channels
from .container import Unusable
from .delivery import Delivery
from .exchange import GONE, Poller, Reporter
from .facts import Usage
from .fence import GRACE_S, Fence
from .fetch import Cancelled
from .link import Answer, Backoff, Link, Servers
from .meter import Meter
from .package import BadPackage
from .prepare import Preparation
from .restore import NoRoom

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

    from .identity import Identity
    from .rank import Rank
    from .rendezvous import Rendezvous
    from .words import Words

# How often files are looked at while a rank runs, and while only a server is waited for.
_TICK_S = 0.025
_IDLE_TICK_S = 0.2
# Reports are at least this far apart, so that a talkative program fills them.
_GATHER_S = 0.05
# An answer to a report is waited for as long as so many reports take. Where requests arrive and answers do not, the
# server must hear the next one before it takes the node for silent.
_PATIENCE = 3
# Told to end, the agent tries so long to deliver what is left; a later agent of the same folder goes on. Of the time
# that a machine has left, a third is kept for it, but no more than this.
_LAST_WORDS_S = 10.0
# Of a notice, at most this share is kept for what the ranks save last to get to storage.
_UPLOAD_SHARE = 0.6
# No server for so long: how a rank ended is left in storage.
_UNHEARD_S = 5.0
_NEVER = float("inf")
# Ranks that ran here are not started again by an old picture of the work.
_REMEMBERED = 1000
# The server could not use a report.
_REFUSED = (400, 413, 422)


class Node:
    def __init__(
        self,
        folder: str,
        program: str,
        boot: Dict[str, Any],
        boot_id: str,
        identity: Identity,
        servers: Servers,
        rendezvous: Rendezvous,
        words: Words,
    ) -> None:
        self._program = program
        self._identity = identity
        self._servers = servers
        self._rendezvous = rendezvous
        self._words = words
        self._inbox: queue.SimpleQueue[Tuple[Callable[..., None], Tuple[Any, ...]]] = queue.SimpleQueue()
        meter = Meter()
        self._carrier = Carrier(folder, servers, identity.node_key, meter, words)
        self._attempts = Attempts(folder, boot.get("cgroup"), self._carrier)
        self._preparation = Preparation(folder, boot, self._carrier, words)
        self._ranks: Dict[Tuple[str, int], Rank] = {}
        self._usage = Usage(meter, folder)
        self._delivery = Delivery(boot_id, self._ranks, self._usage)
        key = identity.node_key
        self._channels = Channels(folder, program, servers, key, words)
        self._poller = Poller(Link(servers, key), words, self._told(self._apply), self._told(self._retired_long_ago))
        every_s = identity.report_every_s
        self._reporter = Reporter(Link(servers, key), words, self._told(self._hear), _PATIENCE * every_s)
        self._backoff = Backoff(every_s)
        self._is_reporting = False
        self._next_report = 0.0
        self._next_heartbeat = 0.0
        self._forgotten: Deque[Tuple[str, int]] = deque(maxlen=_REMEMBERED)
        self._powers_off = bool(boot.get("power_off"))
        self._fence = Fence(folder, boot)
        self._max_life_s = float(boot.get("max_life_s") or _NEVER)
        self._life_ends_at = time.monotonic() + self._max_life_s
        self._is_retiring = False
        self._is_told_to_close = False
        # How the node will end, once it has stopped its ranks because the machine goes.
        self._leaving: Optional[str] = None
        self._kill_at = self._silent_at = _NEVER
        self._is_gone = False
        self._quiet_since: Optional[float] = None
        self._end: Optional[str] = None

    def run(self) -> str:
        """Until the node is retired, orphaned, outlived, taken back or told to close; returns which."""
        for rank in self._attempts.load():
            self._ranks[rank.key] = rank
            self._words.say("found rank %s (%s)" % (rank.rank_id, "running" if rank.is_live else "ended"))
            self._begin(rank)
        self._channels.begin()
        self._poller.start()
        self._reporter.start()
        # After the threads were started: they wait for the server meanwhile.
        processes.become_subreaper()
        while self._end is None:
            self._turn()
        self._channels.close()
        return self._end

    def watch_gpus(self) -> None:
        self._usage.watch_gpus()

    def close(self) -> None:
        """For a signal handler: stop the ranks with their grace, deliver, end. A second call ends at once."""
        self._tell(self._close)

    def take_back(self, at: str, left_s: float) -> None:
        """The machine goes at that time: the same, within what is left."""
        self._tell(self._give_back, at, left_s)

    # --- the loop ---------------------------------------------------------------------------

    def _turn(self) -> None:
        is_busy = any(rank.is_live for rank in self._ranks.values()) or self._delivery.has_news(time.monotonic())
        try:
            action, arguments = self._inbox.get(timeout=_TICK_S if is_busy else _IDLE_TICK_S)
            action(*arguments)
        except queue.Empty:
            pass
        for rank in list(self._ranks.values()):
            was_live = rank.is_live
            rank.look()
            if was_live and not rank.is_live:
                self._words.say("rank %s ended: %s" % (rank.rank_id, _words_of(rank.result or {})))
            rank.tell_servers(self._servers.known())
        self._channels.look()
        self._forget_settled()
        if not any(rank.is_live for rank in self._ranks.values()):
            self._rendezvous.hold()
        now = time.monotonic()
        self._fence.note(self._servers.heard_at)
        self._look_after_cargo(now)
        self._report_if_due(now)
        self._end = self._end or self._reason_to_end(now)

    def _tell(self, action: Callable[..., None], *arguments: Any) -> None:
        self._inbox.put((action, arguments))

    def _told(self, action: Callable[..., None]) -> Callable[..., None]:
        """The same as a message to the loop."""
        return lambda *arguments: self._tell(action, *arguments)

    def _look_after_cargo(self, now: float) -> None:
        """What ranks saved and how they ended, while nobody hears of it."""
        is_unheard = now - self._servers.heard_at >= _UNHEARD_S
        for rank in self._ranks.values():
            if now >= self._silent_at:
                rank.outputs.give_up()
            if self._leaving is not None:
                rank.outputs.hurry()
            if rank.cargo is None:
                continue
            if now >= self._silent_at:
                rank.cargo.give_up()
            if is_unheard and self._leaving is None:
                rank.cargo.be_patient()
            if is_unheard and not rank.is_exit_delivered:
                rank.tell_storage()

    def _reason_to_end(self, now: float) -> Optional[str]:
        if any(rank.is_live or rank.is_carrying() for rank in self._ranks.values()):
            self._quiet_since = None
            self._press(now)
            return None
        self._quiet_since = self._quiet_since or now
        if self._is_gone:
            return "gone"
        if self._leaving is None and now >= self._life_ends_at:
            self._leaving = "outlived"
        if self._leaving is not None:
            is_said = self._is_all_told() or now - self._quiet_since >= _LAST_WORDS_S
            return self._leaving if is_said else None
        if self._is_retiring and self._is_all_told():
            return "retired"
        return "orphaned" if self._is_orphan(now) else None

    def _press(self, now: float) -> None:
        """Ends ranks that the machine must not run any longer: nobody would ever switch it off."""
        if self._leaving is None and self._powers_off and self._is_orphan(now):
            self._leave("orphaned", "no server was heard for %g s" % self._identity.orphan_after_s)
        elif self._leaving is None and self._fence.is_passed(self._servers.heard_at, now):
            self._leave("orphaned", "no server was heard for %g s" % self._fence.after_s, GRACE_S)
        elif self._leaving is None and now >= self._life_ends_at:
            self._leave("outlived", "the machine has reached its longest life of %g s" % self._max_life_s)
        elif now >= self._kill_at:
            for rank in self._ranks.values():
                rank.kill("the machine has no time left")

    def _is_orphan(self, now: float) -> bool:
        return now - self._servers.heard_at >= self._identity.orphan_after_s

    def _is_all_told(self) -> bool:
        return not self._is_reporting and all(rank.is_exit_delivered for rank in self._ranks.values())

    # --- work -------------------------------------------------------------------------------

    def _apply(self, work: protocol.Work) -> None:
        self._learn(work.servers)
        wanted = {each.key: each for each in work.ranks}
        for key, each in wanted.items():
            if key not in self._ranks and self._leaving is None:
                self._accept(each)
            if key in self._ranks and each.stop:
                self._ranks[key].hear_stop(each)
        for key, rank in self._ranks.items():
            rank.is_in_work = key in wanted
            if not rank.is_in_work:
                rank.kill("it is no longer in the work of this node")
                rank.abandon_cargo()
        self._channels.hear(work.channels, self._ranks)
        if work.retire and not self._is_retiring:
            self._is_retiring = True
            self._words.say("the server retires this node")

    def _accept(self, work: protocol.RankWork) -> None:
        rank, problem = self._attempts.make(work)
        self._ranks[rank.key] = rank
        self._carrier.forget({each.launch["task_id"] for each in self._ranks.values()})
        if rank.key in self._forgotten:
            # An old picture of the work, overtaken on its way: a rank runs once.
            problem = "it ran on this node before and was ended"
        if problem is not None:
            rank.cancel(problem)
        elif not work.stop:
            self._begin(rank)

    def _begin(self, rank: Rank) -> None:
        if rank.is_live and not rank.was_begun():
            threading.Thread(target=self._prepare, args=(rank,), daemon=True, name="prepare").start()
        elif rank.is_live and rank.cargo is not None:
            rank.cargo.start()

    def _prepare(self, rank: Rank) -> None:
        """In a thread of its own."""
        problem, handed = None, b""
        try:
            link = Link(self._servers, self._identity.node_key)
            handed = self._preparation.prepare(rank.folder, rank.launch, link, rank.cancelled)
        except Cancelled:
            return
        except (BadPackage, NoRoom, Unusable, protocol.Malformed) as error:
            problem = str(error)
        except OSError as error:
            problem = "could not prepare the folder of the rank: %s" % error
        self._tell(self._start, rank, problem, handed)

    def _start(self, rank: Rank, problem: Optional[str], handed: bytes) -> None:
        if not rank.is_live:
            private.remove(rank.folder)
            return
        if problem is not None:
            rank.cancel(problem)
            return
        self._rendezvous.release()
        try:
            rank.begin([sys.executable, "-I", "-S", self._program, "--rank", rank.folder], handed)
        except OSError as error:
            rank.conclude("could not start the supervisor of the rank: %s" % error)
        if rank.cargo is not None:
            rank.cargo.start()

    def _forget_settled(self) -> None:
        """An attempt goes when no rank of it is in the work and the server knows how each ended."""
        kept = {rank.key[0] for rank in self._ranks.values() if rank.is_in_work or not rank.is_exit_delivered}
        for key in [key for key in self._ranks if key[0] not in kept]:
            self._ranks.pop(key).abandon_cargo()
            self._forgotten.append(key)
            self._delivery.forget(key)
            self._carrier.discard(key[0])
            self._attempts.discard(key[0])

    def _close(self) -> None:
        if self._is_told_to_close:
            self._end = "closed at once"
            return
        self._is_told_to_close = True
        self._leave("closed", "the agent was told to stop")

    def _give_back(self, at: str, left_s: float) -> None:
        """Before the machine goes, what the ranks save last must be in storage, and the last report have arrived."""
        words_s = min(_LAST_WORDS_S, left_s / 3)
        needs_s = max([rank.cargo.needs_s() for rank in self._ranks.values() if rank.cargo is not None] or [0.0])
        grace_s = left_s - max(words_s, min(words_s / 2 + needs_s, left_s * _UPLOAD_SHARE))
        self._kill_at = time.monotonic() + grace_s
        self._silent_at = time.monotonic() + left_s - words_s / 2
        self._leave("taken", "the provider takes the machine back at %s" % at, grace_s)

    def _leave(self, end: str, reason: str, within_s: float = _NEVER) -> None:
        """Nobody's failure: the machine goes and takes its ranks along."""
        self._words.say("%s: stopping every rank" % reason)
        self._leaving = self._leaving or end
        for rank in self._ranks.values():
            rank.is_evicted = rank.is_evicted or rank.is_live
            rank.stop(reason, within_s)

    def _retired_long_ago(self) -> None:
        """Nothing here is wanted, and nothing will be taken."""
        if not self._is_gone:
            self._words.say("the server says that this node is gone: ending everything")
        self._is_gone = True
        for rank in self._ranks.values():
            rank.kill("the node is retired")
            rank.abandon_cargo()

    # --- reports ----------------------------------------------------------------------------

    def _report_if_due(self, now: float) -> None:
        if self._is_reporting or now < self._next_report:
            return
        if now >= self._next_heartbeat or self._delivery.has_news(now):
            self._is_reporting = True
            self._next_report = now + _GATHER_S
            self._next_heartbeat = now + self._identity.report_every_s
            self._reporter.send(self._delivery.compose(now))

    def _hear(self, answer: Optional[Answer]) -> None:
        self._is_reporting = False
        reply = self._read_reply(answer)
        if reply is None:
            self._next_report = time.monotonic() + self._backoff.next_s()
            # What was in the lost report is news still, a heartbeat too.
            self._next_heartbeat = self._next_report
            return
        self._backoff.reset()
        self._delivery.accept(reply)
        self._learn(reply.servers)
        if reply.work_version is not None:
            self._poller.nudge(reply.work_version)

    def _read_reply(self, answer: Optional[Answer]) -> Optional[protocol.Reply]:
        """None if nothing was taken. A stranger in between (401, 403, 404) is no reason to end work."""
        if answer is None:
            return None
        if answer.status == GONE:
            self._retired_long_ago()
        elif answer.status in _REFUSED:
            self._delivery.refuse()
        elif answer.is_ok:
            try:
                return protocol.Reply(answer.data)
            except protocol.Malformed as error:
                self._words.say_once("report", "the answer makes no sense: %s" % error)
                return None
        self._words.say_once("report", "the server says %s" % answer.complaint())
        return None

    def _learn(self, servers: List[str]) -> None:
        self._servers.learn(servers)
        self._identity.keep_servers(self._servers.known())


def _words_of(result: Dict[str, Any]) -> str:
    if result.get("reason"):
        return str(result["reason"])
    if result.get("signal") is not None:
        return "signal %s" % result["signal"]
    return "exit %s" % result.get("exit_code")
