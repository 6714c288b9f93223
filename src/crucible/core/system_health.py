"""How the whole system is: each thing by itself, with a sentence and what to do. Pure: from counts and times."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from crucible.core.health import worst
from crucible.model.health import Health, PlaceHealth, SystemFacts

# A turn of a loop may take this long over its time: a round of thousands of jobs, a busy disk.
LATE_S = 60.0
# Tasks that wait longer than this are worth a word: nothing that fits was free for an hour.
LONG_WAIT = timedelta(hours=1)
# A purchase without an answer.
LONG_ORDER = timedelta(minutes=15)
SLOW_DATABASE_S = 0.5
LEAST_FREE_BYTES, LEAST_FREE_SHARE = 1 << 30, 0.05
# Listings come every half a minute; without one for so long nobody looks.
UNSEEN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str  # provider, loop, queue, ledger, database, streams, prices, agents
    subject: str = ""  # which one, where there are several
    status: Health = Health.OK
    words: str
    advice: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSeen:
    name: str
    turns: int
    restarts: int
    age_s: float | None  # since the last turn
    late_s: float
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSeen:
    name: str
    rows: int
    told_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSeen:
    """What is known of the system at one moment; what could not be read is None."""

    facts: SystemFacts | None
    database_s: float | None
    places: Sequence[str] = ()  # that are enabled
    healths: Mapping[str, PlaceHealth] = field(default_factory=dict)
    refusals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # place -> code -> times
    cooldowns: Mapping[str, int] = field(default_factory=dict)  # place -> offers that rest
    loops: Sequence[LoopSeen] = ()
    feeds: Sequence[FeedSeen] = ()
    price_stale: timedelta = timedelta(hours=1)
    streams: Mapping[str, int] = field(default_factory=dict)  # channel -> bytes
    room: tuple[int, int] | None = None  # of their disk: all, and free


def checks(seen: SystemSeen, now: datetime) -> tuple[Check, ...]:
    return (
        *(place(name, seen, now) for name in seen.places),
        loops(seen.loops),
        *facts_checks(seen.facts, seen.database_s, now),
        streams(seen.streams, seen.room),
        *(feed(one, seen.price_stale, now) for one in seen.feeds),
    )


def overall(found: Sequence[Check]) -> Health:
    return worst([one.status for one in found])


def place(name: str, seen: SystemSeen, now: datetime) -> Check:
    known = seen.healths.get(name)
    refusals, resting = dict(seen.refusals.get(name, {})), seen.cooldowns.get(name, 0)
    details: dict[str, Any] = {"refusals": refusals, "cooldowns": resting}
    if known is None:
        return Check(name="provider", subject=name, status=Health.UNKNOWN, words="not looked at yet", details=details)
    details |= {
        "last_good_at": known.last_good_at,
        "failing_since": known.failing_since,
        "error": known.error,
        "latency_ms": known.latency_ms,
        "machines": known.machines,
        "removed": known.removed,
    }
    status, words = _place(known, now)
    if resting:
        words += f"; {resting} of its offers rest"
    advice = f"crucible doctor {known.provider}" if status is not Health.OK else ""
    return Check(name="provider", subject=name, status=status, words=words, advice=advice, details=details)


def _place(known: PlaceHealth, now: datetime) -> tuple[Health, str]:
    if known.failing_since is not None:
        is_long = known.noticed_at is not None
        since = f"has not answered since {known.failing_since:%Y-%m-%d %H:%M:%S} UTC"
        return (Health.CRITICAL if is_long else Health.WARNING), f"{since}: {known.error}"
    if now - known.looked_at > UNSEEN:
        return Health.WARNING, "nobody has looked at it for a while"
    machines = "1 machine" if known.machines == 1 else f"{known.machines} machines"
    removed = f", {known.removed} without an owner removed" if known.removed else ""
    return Health.OK, f"answers in {known.latency_ms} ms, {machines}{removed}"


def loops(found: Sequence[LoopSeen]) -> Check:
    late = [one.name for one in found if one.late_s > LATE_S]
    restarts = sum(one.restarts for one in found)
    details = {
        one.name: {"turns": one.turns, "restarts": one.restarts, "age_s": one.age_s, "error": one.error}
        for one in found
    }
    if late:
        words = f"stand still: {', '.join(late)}"
        advice = "the server's log says why; a restart is always safe"
        return Check(name="loops", status=Health.CRITICAL, words=words, advice=advice, details=details)
    words = f"{len(found)} turn" + (f"; started again {restarts} times" if restarts else "")
    return Check(name="loops", words=words, details=details)


def facts_checks(facts: SystemFacts | None, database_s: float | None, now: datetime) -> Iterator[Check]:
    if facts is None or database_s is None:
        yield Check(
            name="database", status=Health.CRITICAL, words="does not answer", advice="the server's log says why"
        )
        return
    yield database(facts, database_s)
    yield queue(facts, now)
    yield orders(facts, now)
    yield ledger(facts)
    yield agents(facts)


def database(facts: SystemFacts, took_s: float) -> Check:
    is_slow = took_s > SLOW_DATABASE_S
    return Check(
        name="database",
        status=Health.WARNING if is_slow else Health.OK,
        words=f"answers in {1000 * took_s:.0f} ms, {facts.database_bytes / (1 << 20):.1f} MiB, schema {facts.revision}",
        advice="is its disk busy, or the way there long?" if is_slow else "",
        details={"latency_s": took_s, "bytes": facts.database_bytes, "revision": facts.revision},
    )


def queue(facts: SystemFacts, now: datetime) -> Check:
    oldest = None if facts.oldest_waiting_at is None else (now - facts.oldest_waiting_at).total_seconds()
    is_long = oldest is not None and oldest > LONG_WAIT.total_seconds()
    words = "nothing waits" if oldest is None else f"{facts.waiting_tasks} tasks wait, one for {_time(oldest)}"
    return Check(
        name="queue",
        status=Health.WARNING if is_long else Health.OK,
        words=words,
        advice="crucible ps --status pending; crucible why JOB says what each waits for" if is_long else "",
        details={"waiting": facts.waiting_tasks, "oldest_s": oldest},
    )


def orders(facts: SystemFacts, now: datetime) -> Check:
    oldest = None if facts.oldest_order_at is None else (now - facts.oldest_order_at).total_seconds()
    is_late = oldest is not None and oldest > LONG_ORDER.total_seconds()
    words = f"{facts.unsettled_orders} under way, {facts.closing_leases} machines on their way back"
    return Check(
        name="orders",
        status=Health.WARNING if is_late else Health.OK,
        words=f"{words}; one has had no answer for {_time(oldest)}" if is_late and oldest is not None else words,
        advice="is its provider all right?" if is_late else "",
        details={"unsettled": facts.unsettled_orders, "closing": facts.closing_leases, "oldest_s": oldest},
    )


def ledger(facts: SystemFacts) -> Check:
    share = facts.estimated_stretches / facts.stretches if facts.stretches else 0.0
    details = {
        "balance_microusd": facts.balance_microusd,
        "open_stretches": facts.open_stretches,
        "stray_stretches": facts.stray_stretches,
        "estimate_share": share,
    }
    if facts.balance_microusd != 0:
        words = f"the accounts do not come to nothing: {facts.balance_microusd} micro-dollars are left over"
        advice = "this is a bug: keep the database as it is, and report it"
        return Check(name="ledger", status=Health.CRITICAL, words=words, advice=advice, details=details)
    words = f"comes to nothing; {facts.open_stretches} stretches run, {share:.1%} of all ended by estimate"
    if facts.stray_stretches:
        words += f"; {facts.stray_stretches} of machines that nobody holds any more"
        advice = "the next listing of their provider closes them; if not, crucible doctor PROVIDER"
        return Check(name="ledger", status=Health.WARNING, words=words, advice=advice, details=details)
    return Check(name="ledger", words=words, details=details)


def agents(facts: SystemFacts) -> Check:
    details = {"nodes": facts.nodes, "silent": facts.silent_nodes}
    if not facts.silent_nodes:
        return Check(name="agents", words=f"{facts.nodes} heard", details=details)
    words = f"{facts.silent_nodes} of {facts.nodes} are silent"
    advice = "their work is moved; crucible nodes shows where they are"
    return Check(name="agents", status=Health.WARNING, words=words, advice=advice, details=details)


def streams(sizes: Mapping[str, int], room: tuple[int, int] | None) -> Check:
    held = sum(sizes.values())
    if room is None:
        return Check(name="streams", status=Health.UNKNOWN, words="their disk cannot be looked at")
    total, free = room
    is_full = free < min(LEAST_FREE_BYTES, LEAST_FREE_SHARE * total)
    words = f"{held / (1 << 20):.1f} MiB of logs and metrics, {free / (1 << 30):.1f} GiB free"
    return Check(
        name="streams",
        status=Health.CRITICAL if is_full else Health.OK,
        words=words,
        advice="free space: without it no log is taken" if is_full else "",
        details={"bytes": dict(sizes), "free_bytes": free, "total_bytes": total},
    )


def feed(one: FeedSeen, stale: timedelta, now: datetime) -> Check:
    age = None if one.told_at is None else (now - one.told_at).total_seconds()
    details = {"rows": one.rows, "age_s": age, "error": one.error}
    if one.error is not None:
        advice = "mend that, then crucible prices refresh"
        return Check(
            name="prices", subject=one.name, status=Health.WARNING, words=one.error, advice=advice, details=details
        )
    if age is None or age > stale.total_seconds():
        words = "has told nothing yet" if age is None else f"told its prices {_time(age)} ago"
        return Check(
            name="prices",
            subject=one.name,
            status=Health.WARNING,
            words=words,
            advice="crucible prices refresh",
            details=details,
        )
    return Check(name="prices", subject=one.name, words=f"{one.rows} prices, {_time(age)} old", details=details)


def _time(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
