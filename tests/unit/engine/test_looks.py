"""Answers that are dear to get."""

import asyncio

from crucible.engine.looks import Look
from crucible.model.errors import StorageFailed
from crucible.system import SystemClock
from crucible.testing.virtual import run_virtually, virtual_clock


class Source:
    """The first answer is 1, the next 2 …"""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.clock: SystemClock = virtual_clock(asyncio.get_running_loop())
        self.takes_s, self.looks, self.is_broken = takes_s, 0, False

    async def __call__(self) -> int:
        self.looks += 1
        await self.clock.sleep(self.takes_s)
        if self.is_broken:
            raise StorageFailed("gone")
        return self.looks

    def look(self) -> Look[int]:
        return Look("things", self, self.clock, keep_s=5, rest_per_look=10)


def test_an_answer_is_kept_for_a_while() -> None:
    async def asked() -> None:
        source = Source()
        look = source.look()
        assert [await look.latest(1), await look.latest(1)] == [1, 1]
        await source.clock.sleep(6)
        assert await look.latest(1) == 2

    run_virtually(asked())


def test_many_who_ask_share_one_look() -> None:
    async def asked() -> None:
        source = Source(takes_s=0.5)
        look = source.look()
        assert await asyncio.gather(*(look.latest(3) for _ in range(5))) == [1] * 5
        assert source.looks == 1

    run_virtually(asked())


def test_who_is_impatient_gets_the_last_answer_and_the_look_goes_on() -> None:
    async def asked() -> None:
        source = Source(takes_s=20)
        look = source.look()
        assert await look.latest(1) is None and look.age_s == float("inf")
        await source.clock.sleep(20)
        assert await look.latest(1) == 1

    run_virtually(asked())


def test_a_long_look_is_followed_by_a_longer_rest() -> None:
    async def asked() -> None:
        source = Source(takes_s=20)
        look = source.look()
        await look.latest(30)
        await source.clock.sleep(150)
        assert await look.latest(30) == 1
        await source.clock.sleep(60)
        assert await look.latest(30) == 2

    run_virtually(asked())


def test_a_look_that_fails_leaves_the_answer_as_it_was() -> None:
    async def asked() -> None:
        source = Source()
        look = source.look()
        await look.latest(1)
        source.is_broken = True
        await source.clock.sleep(6)
        assert await look.latest(1) == 1 and look.age_s >= 6

    run_virtually(asked())


def test_a_look_under_way_is_given_up_at_the_end() -> None:
    async def asked() -> None:
        look = Source(takes_s=3600).look()
        await look.latest(1)
        await look.stop()
        assert look.answer is None

    run_virtually(asked())
