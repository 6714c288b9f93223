"""Who asks too often waits; nobody else does, and memory stays bounded."""

import pytest

from crucible.api.limits import MOST_KNOWN, Buckets, Limits, RateLimits, sustained
from crucible.model.errors import Busy


class Hands:
    """Of a clock."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def emptied(buckets: Buckets, name: str) -> int:
    """How many passed before one did not."""
    for passed in range(100_000):
        try:
            buckets.take(name)
        except Busy:
            return passed
    raise AssertionError("there is no limit")


def test_each_name_has_its_own_bucket() -> None:
    clock = Hands()
    buckets = Buckets(sustained(2), clock)
    assert emptied(buckets, "ann") == 20
    assert emptied(buckets, "bob") == 20
    with pytest.raises(Busy) as caught:
        buckets.check("ann")
    assert caught.value.retry_after_s == pytest.approx(0.5)
    clock.now_s = 1.0
    assert emptied(buckets, "ann") == 2


def test_people_agents_and_strangers_do_not_starve_each_other() -> None:
    limits = Limits(RateLimits(person=1, agent=1, stranger=1), Hands())
    for buckets in (limits.people, limits.agents, limits.signed, limits.anonymous, limits.failures):
        assert emptied(buckets, "the same name") == 10


def test_nothing_per_second_is_no_limit() -> None:
    buckets = Buckets(sustained(0), Hands())
    for _ in range(1000):
        buckets.take("ann")
        buckets.check("ann")
    assert len(buckets) == 0


def test_of_very_many_who_was_not_seen_for_the_longest_is_forgotten() -> None:
    buckets = Buckets(sustained(1), Hands())
    emptied(buckets, "attacker")
    for number in range(MOST_KNOWN * 2):
        buckets.take(str(number))
        if number % 1000 == 0:
            with pytest.raises(Busy):
                buckets.take("attacker")
    assert len(buckets) == MOST_KNOWN
