"""Calls below the limit of the account, and a pause for everybody when it was met all the same."""

import asyncio

from crucible.providers.aws.pace import Allowance, Pace


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def pace(self, per_s: float, burst: int) -> Pace:
        return Pace(Allowance(per_s, burst), monotonic=lambda: self.now, sleep=self.sleep)


def turns(pace: Pace, count: int) -> None:
    async def story() -> None:
        for _ in range(count):
            await pace.turn()

    asyncio.run(story())


def test_a_burst_is_served_at_once_and_the_rest_at_the_rate() -> None:
    time = Time()
    turns(time.pace(2, 5), 5)
    assert time.now == 0
    time = Time()
    turns(time.pace(2, 5), 25)
    assert time.now == 10


def test_the_bucket_fills_again_but_no_further_than_its_brim() -> None:
    time = Time()
    pace = time.pace(2, 5)
    turns(pace, 5)
    time.now += 1_000
    turns(pace, 5)
    assert time.now == 1_000
    turns(pace, 1)
    assert time.now == 1_000.5


def test_who_was_throttled_makes_the_others_of_its_kind_wait() -> None:
    time = Time()
    pace = time.pace(10, 50)
    turns(pace, 1)
    pace.throttled(3.0)
    turns(pace, 1)
    assert 3.0 <= time.now <= 3.2


def test_many_who_ask_at_once_are_spread_over_the_time() -> None:
    async def story() -> list[float]:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        pace = Pace(Allowance(2, 1), monotonic=lambda: 0.0, sleep=sleep)
        await asyncio.gather(*(pace.turn() for _ in range(5)))
        return waits

    assert asyncio.run(story()) == [0.5, 1.0, 1.5, 2.0]
