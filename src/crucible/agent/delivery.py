"""Reports: what goes into the next one, and what an answer means for what was sent. One at a time is on its way."""

from __future__ import annotations

import time

from . import protocol
from .facts import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .rank import Rank

# Records that a server did not acknowledge are sent again after this pause, so that they do not crowd out the rest.
_UNTAKEN_PAUSE_S = 5.0


class _Sent:
    """What the report on its way says about one rank."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.state = rank.state()
        self.progress = rank.progress()
        self.has_batch = False
        self.checkpoints: List[Dict[str, Any]] = []


class Delivery:
    def __init__(self, boot_id: str, ranks: Dict[Tuple[str, int], Rank], usage: Usage) -> None:
        self._boot_id = boot_id
        self._ranks = ranks
        self._usage = usage
        self._sent: List[_Sent] = []
        self._turn = 0
        # What the server was told last, and before when a rank's records are not sent again.
        self._told: Dict[Tuple[str, int], Tuple[str, bool, Any]] = {}
        self._held_until: Dict[Tuple[str, int], float] = {}

    def has_news(self, now: float) -> bool:
        return any(self._is_news(rank, now) for rank in self._ranks.values())

    def compose(self, now: float) -> bytes:
        reports, streams, checkpoints, progress = [], [], [], []
        budget, checkpoint_budget = protocol.LOG_BYTES, protocol.CHECKPOINT_BYTES
        self._sent = []
        for rank in self._in_turn():
            batch = self._batch(rank, budget, now)
            sent = _Sent(rank)
            if batch is not None:
                sent.has_batch = True
                budget -= len(batch)
                streams.append(batch)
            sent.checkpoints = rank.events.first_checkpoints(checkpoint_budget)
            for event in sent.checkpoints:
                checkpoints.append(protocol.of_rank(rank.launch, event))
                checkpoint_budget -= len(protocol.dumps(event))
            if sent.progress is not None and self._told.get(rank.key, ("", False, None))[2] != sent.progress:
                progress.append(protocol.of_rank(rank.launch, sent.progress))
            reports.append(rank.report(sent.state))
            self._sent.append(sent)
        return protocol.report(self._boot_id, reports, streams, checkpoints, progress, self._usage.figures())

    def accept(self, reply: protocol.Reply) -> None:
        now = time.monotonic()
        for sent in self._sent:
            rank = sent.rank
            ack = reply.acks.get(rank.key)
            has_progressed = ack is not None and rank.acknowledge(*ack)
            rank.is_synced = rank.is_synced or sent.has_batch
            if sent.has_batch and not has_progressed:
                self._held_until[rank.key] = now + _UNTAKEN_PAUSE_S
            rank.events.deliver(sent.checkpoints)
            rank.note_answer(has_progressed, now)
            rank.is_exit_delivered = sent.state == "exited"
            self._told[rank.key] = (sent.state, rank.events.is_checkpointing, sent.progress)

    def refuse(self) -> None:
        """The server could not use the report: ask how much it has before sending records again."""
        now = time.monotonic()
        for sent in self._sent:
            sent.rank.is_synced = False
            sent.rank.note_answer(False, now)

    def forget(self, key: Tuple[str, int]) -> None:
        self._told.pop(key, None)
        self._held_until.pop(key, None)

    def _is_news(self, rank: Rank, now: float) -> bool:
        told = self._told.get(rank.key)
        if told != (rank.state(), rank.events.is_checkpointing, rank.progress()):
            return True
        return rank.has_records() and now >= self._held_until.get(rank.key, 0.0)

    def _batch(self, rank: Rank, budget: int, now: float) -> Optional[bytes]:
        if budget <= 0 or not rank.has_records() or now < self._held_until.get(rank.key, 0.0):
            return None
        return rank.batch(budget)

    def _in_turn(self) -> List[Rank]:
        """Each report begins with another rank, so that one that floods does not silence the others."""
        ranks = list(self._ranks.values())
        self._turn += 1
        shift = self._turn % len(ranks) if ranks else 0
        return ranks[shift:] + ranks[:shift]
