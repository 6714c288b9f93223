"""What is old enough to go. Pure: the moment is an argument."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from crucible.model.errors import InvalidRequest
from crucible.model.retention import DEFAULT_DAYS, Ages, Kept, Retained

# A typing error must not empty the database: what is younger than a day is never old.
LEAST_DAYS = 1
MOST_DAYS = 36_500
NEVER = "never"
DEFAULT = "default"
# Machines are given back after their job has ended, which its log tells of.
SETTLING = timedelta(days=1)
_UNITS = {"": 1, "d": 1, "w": 7, "y": 365}
_AGE = re.compile(r"(\d{1,6})\s*(d|w|y)?(?:ays?|eeks?|ears?)?\Z", re.IGNORECASE)


def days_of(text: str) -> int | None:
    """`90d`, `2y`, `never` (0), `default` (None). Raises InvalidRequest."""
    word = text.strip().lower()
    if word in (NEVER, DEFAULT):
        return 0 if word == NEVER else None
    found = _AGE.match(word)
    days = int(found[1]) * _UNITS[found[2] or ""] if found else 0
    if not LEAST_DAYS <= days <= MOST_DAYS:
        raise InvalidRequest(
            f"{text!r} is no age: write 90d, 12w, 2y or never, at least {LEAST_DAYS} day", field="days"
        )
    return days


def kind_of(text: str) -> Kept:
    try:
        return Kept(text.strip().lower())
    except ValueError:
        kinds = ", ".join(Kept)
        raise InvalidRequest(
            f"{text!r} is not kept by age: there are {kinds}; money is kept for ever", field="kind"
        ) from None


def settings(text: str) -> Mapping[Kept, int]:
    """`logs=30d,jobs=never`: what a server is started with. Raises InvalidRequest."""
    found: dict[Kept, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, age = part.partition("=")
        days = days_of(age)
        if days is not None:
            found[kind_of(name)] = days
    return found


def ages(stored: Iterable[Retained], given: Mapping[Kept, int]) -> Ages:
    """What an admin has set goes before what the server was started with, and that before the defaults."""
    days = {**DEFAULT_DAYS, **given, **{one.what: one.days for one in stored if one.days is not None}}
    return {what: timedelta(days=days[what]) if days[what] else None for what in Kept}


def cutoffs(ages: Ages, now: datetime) -> Mapping[Kept, datetime]:
    """Per kind the moment before which things are old; a kind that is kept for ever has none."""
    return {what: now - age for what, age in ages.items() if age is not None}


def erasable(cutoffs: Mapping[Kept, datetime]) -> Mapping[Kept, datetime]:
    """What the database may be told to let go of: a job takes its history along, however long histories are kept."""
    history = [cutoffs[what] for what in (Kept.EVENTS, Kept.JOBS) if what in cutoffs]
    audit = {Kept.AUDIT: cutoffs[Kept.AUDIT]} if Kept.AUDIT in cutoffs else {}
    return {**({Kept.EVENTS: max(history)} if history else {}), **audit}


def is_ended_before(what: Kept, cutoff: datetime) -> datetime:
    """Of jobs: who ended earlier is due. A history is looked at once its last lines are old too."""
    return cutoff - SETTLING if what in (Kept.EVENTS, Kept.JOBS) else cutoff
