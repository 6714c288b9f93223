"""What paid time was used for. Every second of a machine is useful (a rank of an attempt ran there), or idle for a
reason; where several share a machine, each second is divided by its devices. Pure, and in whole seconds and whole
micro-dollars: useful and idle together are what was charged, to the last of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from crucible.core.ledger import accrued, split
from crucible.model.attempt import Attempt, Rank
from crucible.model.ids import LeaseId, NodeId
from crucible.model.lease import Lease
from crucible.model.ledger import Usage
from crucible.model.units import NOTHING, MicroUsd

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


class Use(StrEnum):
    """In the order in which they win where two are true at once."""

    USEFUL = "useful"  # a rank ran
    UPLOAD = "upload"  # ranks have ended, and what they left was carried away
    SETUP = "setup"  # code, data, image or environment were brought
    GANG = "gang"  # it was there, and waited for the other machines of its gang
    BOOT = "boot"  # paid for, and no agent yet
    GIVE_BACK = "give_back"  # after the last attempt, until it was charged no more
    WAITING = "waiting"  # between two attempts
    SPARE = "spare"  # GPUs that no rank used, while others of the machine were
    UNHELD = "unheld"  # bought by us and held by nobody, until it was found


_AT_WORK = (Use.UPLOAD, Use.SETUP, Use.GANG)


@dataclass(frozen=True, slots=True)
class Span:
    """From one second of 1970 to another. No end: it goes on."""

    start_s: int
    end_s: int | None
    use: Use
    devices: int = 0  # of a rank; 0: it used the machine as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What went on on one machine."""

    gpus: int
    spans: tuple[Span, ...] = ()
    enrolled_s: int | None = None  # None: its agent never came
    last_s: int | None = None  # when its last attempt ended; None while there is one
    is_held: bool = True


@dataclass(frozen=True, slots=True)
class Stint:
    """So many devices, of all that the machine has, were used so from one second to another."""

    start_s: int
    end_s: int
    use: Use
    devices: int


def epoch_s(at: datetime) -> int:
    return (at - _EPOCH) // _SECOND


def stints(life: Life, from_s: int, to_s: int) -> Iterator[Stint]:
    """Of all devices in all of that time: their lengths times `devices` add up to the whole."""
    whole = max(life.gpus, 1)
    marks = [mark for mark in (life.enrolled_s, life.last_s) if mark is not None]
    cuts: dict[int, list[tuple[Span, int]]] = {mark: [] for mark in marks if from_s < mark < to_s}
    for span in life.spans:
        start, end = max(span.start_s, from_s), to_s if span.end_s is None else min(span.end_s, to_s)
        if start < end:
            cuts.setdefault(start, []).append((span, 1))
            cuts.setdefault(end, []).append((span, -1))
    running, busy, at = Counter[Use](), 0, from_s
    for cut in [*sorted(cuts), to_s]:
        if cut > at:
            yield from _between(life, at, cut, running, min(busy, whole), whole)
            at = cut
        for span, step in cuts.pop(cut, ()):
            running[span.use] += step
            if span.use is Use.USEFUL:
                busy += step * (min(span.devices, whole) or whole)


def _between(
    life: Life, start_s: int, end_s: int, running: Mapping[Use, int], busy: int, whole: int
) -> Iterator[Stint]:
    if busy:
        yield Stint(start_s, end_s, Use.USEFUL, busy)
    if busy < whole:
        why = Use.SPARE if busy else _why_idle(life, start_s, running)
        yield Stint(start_s, end_s, why, whole - busy)


def _why_idle(life: Life, at_s: int, running: Mapping[Use, int]) -> Use:
    if not life.is_held:
        return Use.UNHELD
    for use in _AT_WORK:
        if running.get(use):
            return use
    if life.enrolled_s is None or at_s < life.enrolled_s:
        return Use.BOOT
    return Use.GIVE_BACK if life.last_s is not None and at_s >= life.last_s else Use.WAITING


# --- lives of the machines of a job ---------------------------------------------------------------------------


def lives(
    leases: Sequence[Lease], enrolled: Mapping[NodeId, datetime], attempts: Sequence[Attempt], now: datetime
) -> Mapping[LeaseId, Life]:
    """`enrolled` says when the agent of each node came."""
    found: dict[LeaseId, Life] = {}
    by_lease = _by_lease(leases, attempts)
    for lease in leases:
        mine = by_lease.get(lease.id, ())
        came = enrolled.get(lease.node_id) if lease.node_id is not None else None
        ends = [attempt.ended_at for attempt in mine]
        found[lease.id] = Life(
            gpus=lease.gpus,
            spans=tuple(span for one in mine for span in _spans(one, lease, came, enrolled, now)),
            enrolled_s=None if came is None else epoch_s(came),
            last_s=None if None in ends else max((epoch_s(end) for end in ends if end is not None), default=None),
        )
    return found


def _by_lease(leases: Sequence[Lease], attempts: Sequence[Attempt]) -> Mapping[LeaseId, Sequence[Attempt]]:
    """Attempts of an elastic gang forget the leases that they lost; their ranks do not."""
    lease_of = {lease.node_id: lease.id for lease in leases if lease.node_id is not None}
    found: dict[LeaseId, list[Attempt]] = {}
    for attempt in attempts:
        once_held = (lease_of[rank.node_id] for rank in attempt.ranks if rank.node_id in lease_of)
        for lease_id in dict.fromkeys((*attempt.leases, *once_held)):
            found.setdefault(lease_id, []).append(attempt)
    return found


def _spans(
    attempt: Attempt, lease: Lease, came: datetime | None, enrolled: Mapping[NodeId, datetime], now: datetime
) -> Iterator[Span]:
    """What the machine did for one attempt: waited for the gang, was set up, ran, carried away what was left."""
    if came is None:
        return
    ended = attempt.ended_at
    ready = max(came, attempt.created_at)
    mine = [rank for rank in attempt.ranks if rank.node_id == lease.node_id]
    if not mine:
        yield from _span(ready, ended, Use.GANG)
        return
    barrier = max([ready, *(enrolled[rank.node_id] for rank in attempt.ranks if rank.node_id in enrolled)])
    yield from _span(ready, barrier, Use.GANG)
    for rank in mine:
        yield from _of_rank(rank, barrier, ended, now)


def _of_rank(rank: Rank, barrier: datetime, ended: datetime | None, now: datetime) -> Iterator[Span]:
    yield from _span(barrier, rank.started_at or rank.ended_at or ended, Use.SETUP)
    if rank.started_at is not None:
        yield from _span(rank.started_at, rank.ended_at or ended, Use.USEFUL, len(rank.devices))
    if rank.ended_at is not None:
        yield from _span(rank.ended_at, ended or now, Use.UPLOAD)


def _span(start: datetime, end: datetime | None, use: Use, devices: int = 0) -> Iterator[Span]:
    if end is None or end > start:
        yield Span(epoch_s(start), None if end is None else epoch_s(end), use, devices)


# --- money ------------------------------------------------------------------------------------------------------


def by_use(usages: Iterable[Usage], lives_of: Mapping[LeaseId, Life], now: datetime) -> Mapping[Use, MicroUsd]:
    """What the stretches have come to, by what their time was used for; nothing is left out and nothing counts twice.
    What was charged without any time goes to the give-back."""
    found: Counter[Use] = Counter()
    for usage in usages:
        life = lives_of.get(usage.lease_id) if usage.lease_id is not None else None
        weights = weights_of(life or Life(gpus=1, is_held=usage.lease_id is not None), usage, now)
        for use, part in zip(weights, split(accrued(usage, now), list(weights.values())), strict=True):
            found[use] += part
    return {use: MicroUsd(found.get(use, NOTHING)) for use in Use if use in found}


def weights_of(life: Life, usage: Usage, now: datetime) -> Mapping[Use, int]:
    start, end = epoch_s(usage.from_at), epoch_s(usage.to_at or max(now, usage.from_at))
    weights: Counter[Use] = Counter()
    for stint in stints(life, start, end):
        weights[stint.use] += (stint.end_s - stint.start_s) * stint.devices
    return weights or {Use.GIVE_BACK: 1}
