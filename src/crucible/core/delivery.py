"""How a message is tried until it is delivered or given up. A try is recorded before it is made: a server that dies
while it sends makes another, under the same id."""

from dataclasses import replace
from datetime import datetime, timedelta

from crucible.model.alert import Delivery, DeliveryState

# So that a try that died with its server is made again when nobody can be at it any more.
TRY_LASTS = timedelta(seconds=35)
FIRST_S = 10.0
LONGEST_S = 3 * 3600.0
# With waits of half of that on average, the last is about a day after the first.
MAX_TRIES = 24
MAX_ERROR = 500  # characters that are kept of what went wrong
# A receiver may ask for more patience than ours, but not for ever.
MOST_PATIENCE_S = 6 * 3600.0


def is_due(delivery: Delivery, now: datetime) -> bool:
    return delivery.state is DeliveryState.WAITING and delivery.not_before <= now


def begun(delivery: Delivery, now: datetime) -> Delivery:
    return replace(delivery, tries=delivery.tries + 1, not_before=now + TRY_LASTS)


def sent(delivery: Delivery, now: datetime) -> Delivery:
    return replace(delivery, state=DeliveryState.SENT, error=None, ended_at=now)


def refused(delivery: Delivery, reason: str, now: datetime) -> Delivery:
    """It would be refused again."""
    return replace(delivery, state=DeliveryState.DEAD, error=reason[:MAX_ERROR], ended_at=now)


def failed(
    delivery: Delivery, reason: str, now: datetime, *, chance: float, retry_after_s: float | None = None
) -> Delivery:
    """Tried again later, or given up. `chance` is from 0 to 1."""
    if delivery.tries >= MAX_TRIES:
        return refused(delivery, f"given up after {delivery.tries} tries: {reason}", now)
    return replace(delivery, error=reason[:MAX_ERROR], not_before=next_try(delivery.tries, now, chance, retry_after_s))


def next_try(tries: int, now: datetime, chance: float, retry_after_s: float | None = None) -> datetime:
    """Twice as long each time, and anywhere within that: not all come back at the same moment."""
    longest = min(FIRST_S * 2.0 ** min(tries - 1, 16), LONGEST_S)
    asked = min(max(retry_after_s or 0.0, 0.0), MOST_PATIENCE_S)
    return now + timedelta(seconds=max(1.0, asked, longest * chance))
