import asyncio
from datetime import UTC, datetime, timedelta

from crucible.system import SystemClock, SystemIds, uuid7

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_step_of_the_machines_clock_moves_no_deadline() -> None:
    wall, monotonic = [NOON], [100.0]
    clock = SystemClock(wall=lambda: wall[0], monotonic=lambda: monotonic[0])
    monotonic[0] += 5
    for step in (timedelta(hours=1), timedelta(hours=-2)):
        wall[0] += step
        assert clock.now() == NOON + timedelta(seconds=5)


def test_waiting_for_an_event_ends_with_the_event_or_the_time() -> None:
    async def scenario() -> None:
        clock, event = SystemClock(), asyncio.Event()
        assert not await clock.wait(event, 0.01)
        event.set()
        assert await clock.wait(event, 60)
        assert await clock.wait(event, 0)

    asyncio.run(scenario())


def test_names_sort_by_time_of_making_and_are_never_the_same() -> None:
    names = [SystemIds().new("task") for _ in range(200)]
    assert len(set(names)) == 200
    assert [name[:16] for name in names] == sorted(name[:16] for name in names)


def test_a_jobs_name_is_a_uuid_of_version_seven() -> None:
    early, late = uuid7(1, 0), uuid7(2, 0)
    assert (early.version, early.variant) == (7, "specified in RFC 4122")
    assert str(early) < str(late)
    assert len({uuid7(1, chance) for chance in (0, 1, 1 << 62, (1 << 74) - 1)}) == 4
