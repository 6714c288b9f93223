"""How a provider is in a region, from one listing to the next. One that fails for a while is told of once, and once
more when it answers again."""

from dataclasses import replace
from datetime import datetime, timedelta

from crucible.model.health import PlaceHealth
from crucible.model.notice import Notice, NoticeKind, Severity, notice_key


def listed(
    known: PlaceHealth, now: datetime, *, latency_s: float, machines: int, removed: int
) -> tuple[PlaceHealth, Notice | None]:
    """It answered; `removed` machines were given back that nobody owned."""
    after = replace(
        known,
        looked_at=now,
        last_good_at=now,
        failing_since=None,
        error=None,
        latency_ms=round(1000 * latency_s),
        machines=machines,
        removed=known.removed + removed,
        noticed_at=None,
    )
    return after, None if known.noticed_at is None else _answers_again(known, now)


def failed(known: PlaceHealth, now: datetime, error: str, patience: timedelta) -> tuple[PlaceHealth, Notice | None]:
    since = known.failing_since or now
    after = replace(known, looked_at=now, failing_since=since, error=error)
    if known.noticed_at is not None or now - since < patience:
        return after, None
    return replace(after, noticed_at=now), _fails(after, now, since)


def is_worth_writing(known: PlaceHealth, after: PlaceHealth, every: timedelta) -> bool:
    """What everybody must know at once; the rest once in a while."""
    if (known.failing_since, known.noticed_at, known.removed) != (after.failing_since, after.noticed_at, after.removed):
        return True
    if (known.error, known.machines) != (after.error, after.machines):
        return True
    return after.looked_at - known.looked_at >= every


def _fails(place: PlaceHealth, now: datetime, since: datetime) -> Notice:
    return Notice(
        key=notice_key(f"provider:{place.name}", f"{since.isoformat()}:failing"),
        at=now,
        kind=NoticeKind.PROVIDER,
        severity=Severity.CRITICAL,
        title=f"{place.name} has not answered since {since:%Y-%m-%d %H:%M:%S} UTC",
        text=f"{place.error}. Machines there run on, but none can be bought, given back or looked after; "
        f"crucible doctor {place.provider} says what is missing.",
        details={"provider": place.provider, "region": place.region, "since": since.isoformat()},
    )


def _answers_again(place: PlaceHealth, now: datetime) -> Notice:
    since = place.failing_since or now
    return Notice(
        key=notice_key(f"provider:{place.name}", f"{since.isoformat()}:answers"),
        at=now,
        kind=NoticeKind.PROVIDER,
        severity=Severity.INFO,
        title=f"{place.name} answers again",
        text=f"It had not answered since {since:%Y-%m-%d %H:%M:%S} UTC. Nothing is to be done.",
        details={"provider": place.provider, "region": place.region, "since": since.isoformat()},
    )
