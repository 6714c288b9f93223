"""Reports: what goes into the next one, and what an answer means for what was sent. One at a time is on its way."""

from __future__ import annotations

import time

from . import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .facts import Usage
    from .rank import Rank

# What a server did not take is sent again after this pause. Until then reports say only how the rank is, so that a
# record nobody can take silences neither the heartbeat nor the other ranks.
_PAUSE_S = 5.0


class _Sent:
    """What the report on its way says about one rank."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.batch: Optional[bytes] = None
        self.checkpoints: List[Dict[str, Any]] = []
        self.progress: Optional[Dict[str, Any]] = None
        self.state = ""
        self.is_checkpointing = False


class Delivery:
    def __init__(self, boot_id: str, ranks: Dict[Tuple[str, int], Rank], usage: Usage) -> None:
        self._boot_id = boot_id
        self._ranks = ranks
        self._usage = usage
        self._sent: List[_Sent] = []
        self._turn = 0
        # What the server knows of each rank, and until when nothing but its state is sent.
        self._told: Dict[Tuple[str, int], Tuple[str, bool]] = {}
        self._told_progress: Dict[Tuple[str, int], Dict[str, Any]] = {}
        self._paused_until: Dict[Tuple[str, int], float] = {}

    def has_news(self, now: float) -> bool:
        return any(self._is_news(rank, now) for rank in self._ranks.values())

    def compose(self, now: float) -> bytes:
        self._sent = []
        log_bytes, checkpoint_bytes = protocol.LOG_BYTES, protocol.CHECKPOINT_BYTES
        for rank in self._in_turn():
            sent = self._take(rank, log_bytes, checkpoint_bytes, now)
            log_bytes -= len(sent.batch or b"")
            checkpoint_bytes -= sum(len(protocol.dumps(each)) for each in sent.checkpoints)
            self._sent.append(sent)
        return protocol.report(
            self._boot_id,
            [sent.rank.report(sent.state) for sent in self._sent],
            [sent.batch for sent in self._sent if sent.batch is not None],
            [protocol.of_rank(sent.rank.launch, each) for sent in self._sent for each in sent.checkpoints],
            [protocol.of_rank(sent.rank.launch, sent.progress) for sent in self._sent if sent.progress is not None],
            self._usage.figures(),
        )

    def accept(self, reply: protocol.Reply) -> None:
        now = time.monotonic()
        for sent in self._sent:
            rank = sent.rank
            ack = reply.acks.get(rank.key)
            has_progressed = ack is not None and rank.acknowledge(*ack)
            if sent.batch is not None:
                rank.is_synced = True
                if not has_progressed:
                    self._paused_until[rank.key] = now + _PAUSE_S
            rank.events.deliver(sent.checkpoints)
            rank.note_answer(has_progressed, now)
            rank.is_exit_delivered = sent.state == "exited"
            self._told[rank.key] = (sent.state, sent.is_checkpointing)
            if sent.progress is not None:
                self._told_progress[rank.key] = sent.progress

    def refuse(self) -> None:
        """The server could not use the report: ask how much it has before sending records again."""
        now = time.monotonic()
        for sent in self._sent:
            sent.rank.is_synced = False
            sent.rank.note_answer(False, now)
            self._paused_until[sent.rank.key] = now + _PAUSE_S

    def forget(self, key: Tuple[str, int]) -> None:
        self._told.pop(key, None)
        self._told_progress.pop(key, None)
        self._paused_until.pop(key, None)

    def _is_news(self, rank: Rank, now: float) -> bool:
        if self._told.get(rank.key) != (rank.state(), rank.is_checkpointing()):
            return True
        if self._is_paused(rank, now):
            return False
        return rank.has_records() or self._new_progress(rank) is not None

    def _take(self, rank: Rank, log_bytes: int, checkpoint_bytes: int, now: float) -> _Sent:
        sent = _Sent(rank)
        if not self._is_paused(rank, now):
            if log_bytes > 0 and rank.has_records():
                sent.batch = rank.batch(log_bytes)
            sent.checkpoints = rank.events.first_checkpoints(checkpoint_bytes)
            sent.progress = self._new_progress(rank)
        # After the records, which may have been the last thing that kept the exit waiting.
        sent.state, sent.is_checkpointing = rank.state(), rank.is_checkpointing()
        return sent

    def _new_progress(self, rank: Rank) -> Optional[Dict[str, Any]]:
        progress = rank.progress()
        return progress if progress != self._told_progress.get(rank.key) else None

    def _is_paused(self, rank: Rank, now: float) -> bool:
        return now < self._paused_until.get(rank.key, 0.0)

    def _in_turn(self) -> List[Rank]:
        """Each report begins with another rank, so that one that floods does not silence the others."""
        ranks = list(self._ranks.values())
        self._turn += 1
        shift = self._turn % len(ranks) if ranks else 0
        return ranks[shift:] + ranks[:shift]
