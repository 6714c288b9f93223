"""Why tasks wait, as one of a few kinds: a person reads the whole sentence, a graph counts the kinds. Sentences are
written where it is decided (`core/rules.py`, `core/cycle.py`, `core/budget_words.py`, the reasons of attempts) and are
told apart here by words in them. Whoever writes a new one adds its words here and an example to the test: what nobody
knows is counted as NOTHING_FITS, or as RETRY if the task has run. That misleads a graph; nothing is decided by it."""

from enum import StrEnum


class Waits(StrEnum):
    NEW = "new"  # nobody has looked yet
    CAPACITY = "capacity"  # what would do is taken, or was refused a moment ago
    QUOTA = "quota"
    PRICE = "price"  # what is free costs more per hour than the spec allows
    BUDGET = "budget"
    DEADLINE = "deadline"
    NOTHING_FITS = "nothing_fits"  # nothing that is enabled can ever run it as its spec is
    RETRY = "retry"  # its last attempt ended, and the next is not yet placed


# The first that a sentence contains.
_PHRASES = (
    ("quota", Waits.QUOTA),
    ("more per hour than", Waits.PRICE),
    ("budget", Waits.BUDGET),
    ("deadline", Waits.DEADLINE),
    ("within the limits", Waits.DEADLINE),
    ("are free", Waits.CAPACITY),
    ("can be had", Waits.CAPACITY),
    ("there are", Waits.CAPACITY),
    ("asked again after", Waits.CAPACITY),
)


def kind_of(reason: str | None, *, has_run: bool) -> Waits:
    """`reason` is the task's; one that `has_run` says why its last attempt ended until somebody has looked."""
    if reason is None:
        return Waits.RETRY if has_run else Waits.NEW
    for phrase, kind in _PHRASES:
        if phrase in reason:
            return kind
    return Waits.RETRY if has_run else Waits.NOTHING_FITS
