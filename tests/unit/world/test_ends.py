"""How machines end: asked for, switched off, taken with and without notice."""

import pytest

from crucible.world.facts import Market, PricePoint
from crucible.world.machine import End, RefusedBy, State, What
from worlds import (
    EAST,
    ME,
    NEAR,
    SMALL,
    START,
    YOU,
    a_sale,
    a_world,
    an_ask,
    launched,
    launched_spot,
    refused_by,
    whats,
)


def test_an_end_takes_a_few_seconds_and_is_reported_as_a_whole_one() -> None:
    world = a_world(stop_s=(2.0, 8.0))
    machine = launched(world)
    stopping = world.end(ME, machine.id, START + 100.25)
    assert (stopping.state, stopping.end, stopping.ended_at) == (State.STOPPING, End.OWNER, None)
    assert stopping.stops_at is not None
    assert START + 102 <= stopping.stops_at <= START + 109
    world.tick(START + 500)
    ended = world.machine(machine.id)
    assert (ended.state, ended.ended_at) == (State.ENDED, stopping.stops_at)


def test_a_second_end_changes_nothing() -> None:
    world = a_world()
    machine = launched(world)
    first = world.end(ME, machine.id, START + 10)
    assert world.end(ME, machine.id, START + 12) == first
    world.end(ME, machine.id, START + 60)
    assert world.machine(machine.id).ended_at == START + 15


def test_nobody_ends_what_is_not_his() -> None:
    world = a_world()
    machine = launched(world)
    assert refused_by(lambda: world.end(YOU, machine.id, START)) is RefusedBy.UNKNOWN
    assert refused_by(lambda: world.end(ME, "i-0", START)) is RefusedBy.UNKNOWN
    assert world.machine(machine.id).state is State.PENDING


def test_a_machine_that_is_ended_while_it_boots_never_runs() -> None:
    world = a_world()
    machine = launched(world)
    world.end(ME, machine.id, START + 1)
    assert whats(world.tick(START + 100)) == [
        (START, What.LAUNCHED),
        (START + 1, What.STOPPING),
        (START + 6, What.ENDED),
        (START + 6, What.DISK_DELETED),
    ]


def test_a_guest_that_switches_itself_off_ends_its_machine() -> None:
    world = a_world()
    machine = launched(world)
    world.shut_down(machine.id, START + 40)
    ended = world.machines(ME, EAST, START + 45)[0]
    assert (ended.state, ended.end, ended.ended_at) == (State.ENDED, End.GUEST, START + 45)


def test_a_guest_that_may_not_end_its_machine_leaves_it_running() -> None:
    world = a_world()
    machine = launched(world, ends_on_shutdown=False)
    world.shut_down(machine.id, START + 40)
    assert world.machines(ME, EAST, START + 100)[0].state is State.RUNNING
    assert (START + 40, What.SHUT_DOWN) in whats(world.tick(START + 100))


def test_what_the_seller_ends_is_gone_at_once() -> None:
    world = a_world()
    machine = world.end(ME, launched(world).id, START + 50.5, End.SELLER)
    assert (machine.state, machine.end, machine.ended_at) == (State.ENDED, End.SELLER, START + 50)


def test_the_first_who_ends_a_machine_has_ended_it() -> None:
    world = a_world(a_sale(taken_at=(int(START) + 103,)), notice_s=0.0)
    machine = launched_spot(world)
    world.end(ME, machine.id, START + 100)
    world.shut_down(machine.id, START + 101)
    world.end(ME, machine.id, START + 101, End.SELLER)
    world.tick(START + 200)
    ended = world.machine(machine.id)
    assert (ended.end, ended.ended_at) == (End.OWNER, START + 105)


# --- taken ----------------------------------------------------------------------------------------------------


def test_a_trace_takes_every_spot_machine_of_its_sale_and_tells_it_before() -> None:
    world = a_world(a_sale(taken_at=(int(START) - 1, int(START) + 1000, int(START) + 2000)))
    spot, plain = launched_spot(world), launched(world)
    world.tick(START + 579)
    assert world.machine(spot.id).rebalance_at is None
    world.tick(START + 580)
    assert world.machine(spot.id).rebalance_at == START + 580
    assert world.machine(spot.id).taken_at is None
    world.tick(START + 880)
    told = world.machine(spot.id)
    assert (told.notice_at, told.taken_at, told.state) == (START + 880, START + 1000, State.RUNNING)
    world.tick(START + 1000)
    taken = world.machine(spot.id)
    assert (taken.state, taken.end, taken.ended_at) == (State.ENDED, End.SELLER, START + 1000)
    assert world.machine(plain.id).state is State.RUNNING


def test_a_machine_bought_shortly_before_it_is_taken_is_told_at_once() -> None:
    world = a_world(a_sale(taken_at=(int(START) + 60,)))
    machine = launched_spot(world)
    world.tick(START)
    told = world.machine(machine.id)
    assert (told.rebalance_at, told.notice_at, told.taken_at) == (START, START, START + 60)


def test_a_moment_of_the_trace_takes_those_who_were_there_before() -> None:
    world = a_world(a_sale(taken_at=(int(START),)))
    machine = launched_spot(world)
    assert world.machines(ME, EAST, START + 9999)[0].state is State.RUNNING
    assert world.machine(machine.id).rebalance_at is None


def test_without_notice_the_end_is_sudden() -> None:
    world = a_world(a_sale(taken_at=(int(START) + 600,)), notice_s=0.0, rebalance_s=0.0)
    machine = launched_spot(world)
    assert [what for _, what in whats(world.tick(START + 600))] == [
        What.LAUNCHED, What.BOOTED, What.ENDED, What.DISK_DELETED,
    ]  # fmt: skip
    assert world.machine(machine.id).notice_at is None


def test_a_price_above_the_limit_takes_the_machine_after_a_notice() -> None:
    line = (PricePoint(0, 360_000), PricePoint(int(START) + 500, 500_000), PricePoint(int(START) + 550, 100_000))
    world = a_world(a_sale(spot=line))
    low, high = launched_spot(world, max_price=499_999), launched_spot(world, max_price=500_000)
    world.tick(START + 500)
    told = world.machine(low.id)
    assert (told.notice_at, told.taken_at) == (START + 500, START + 620)
    world.tick(START + 5000)
    assert world.machine(low.id).ended_at == START + 620
    assert world.machine(high.id).state is State.RUNNING


def test_interruptions_follow_the_hazard() -> None:
    world = a_world(a_sale(hazard_per_hour=0.5), seed=7)
    world.launch(an_ask(2000, market=Market.SPOT), START)
    world.tick(START + 2 * 3600)
    alive = sum(1 for machine in world.machines(ME, EAST, START + 2 * 3600) if machine.end is None)
    assert 0.34 < alive / 2000 < 0.40  # 1/e is 0.368, one standard deviation 0.011


def test_a_machine_can_be_taken_by_hand() -> None:
    world = a_world()
    machine = launched_spot(world)
    world.preempt(machine.id, START + 100)
    told = world.machine(machine.id)
    assert (told.rebalance_at, told.notice_at, told.taken_at) == (START + 100, START + 100, START + 220)
    world.tick(START + 220)
    assert world.machine(machine.id).end is End.SELLER


def test_taken_by_hand_without_notice_it_is_gone_at_once() -> None:
    world = a_world()
    machine = launched_spot(world)
    world.preempt(machine.id, START + 100.5, notice_s=0)
    gone = world.machine(machine.id)
    assert (gone.state, gone.ended_at, gone.notice_at) == (State.ENDED, START + 100, None)


def test_of_two_ends_the_earlier_stands() -> None:
    world = a_world()
    machine = launched_spot(world)
    world.preempt(machine.id, START, notice_s=30)
    world.preempt(machine.id, START, notice_s=120)
    assert world.machine(machine.id).taken_at == START + 30
    world.preempt(machine.id, START + 10, notice_s=5)
    assert world.machine(machine.id).taken_at == START + 15
    world.tick(START + 1000)
    assert world.machine(machine.id).ended_at == START + 15


def test_a_machine_is_told_once_of_one_end() -> None:
    world = a_world(a_sale(taken_at=(int(START) + 1000,)))
    machine = launched_spot(world)
    world.set_notice(machine.id, 120.0, START + 10)  # as it is anyway
    assert [what for _, what in whats(world.tick(START + 1000))].count(What.NOTICED) == 1


@pytest.mark.parametrize("is_ended", [True, False])
def test_only_a_spot_machine_at_work_can_be_taken(is_ended) -> None:
    world = a_world()
    machine = launched_spot(world) if is_ended else launched(world)
    if is_ended:
        world.end(ME, machine.id, START)
    assert refused_by(lambda: world.preempt(machine.id, START + 1)) is RefusedBy.UNKNOWN


# --- what tick tells ------------------------------------------------------------------------------------------


def test_a_late_tick_tells_everything_in_order_of_its_own_time() -> None:
    world = a_world(a_sale(spot=(PricePoint(0, 1), PricePoint(int(START) + 50, 2)), taken_at=(int(START) + 1000,)))
    launched_spot(world)
    told = world.tick(START + 9999)
    assert [(at, what) for at, what in whats(told)] == [
        (START, What.LAUNCHED),
        (START + 30, What.BOOTED),
        (START + 50, What.PRICE_CHANGED),
        (START + 580, What.WARNED),
        (START + 880, What.NOTICED),
        (START + 1000, What.ENDED),
        (START + 1000, What.DISK_DELETED),
    ]
    assert [happening.number for happening in told] == [1, 2, 3, 4, 5, 6, 7]
    assert world.tick(START + 9999) == ()


def test_looking_in_between_hides_nothing_from_tick() -> None:
    world = a_world()
    machine = launched(world)
    world.machines(ME, EAST, START + 60)
    assert world.next_at() == START
    assert [happening.subject for happening in world.tick(START + 60)] == [machine.id] * 2
    assert world.next_at() is None


def test_it_says_when_something_is_due() -> None:
    world = a_world()
    assert world.next_at() is None
    machine = launched(world)
    world.tick(START)
    assert world.next_at() == START + 30
    world.tick(START + 30)
    world.end(ME, machine.id, START + 40)
    world.tick(START + 40)
    assert world.next_at() == START + 45


def test_events_are_read_on_from_a_number() -> None:
    world = a_world()
    launched(world)
    world.tick(START + 60)
    assert [event.what for event in world.events()] == [What.LAUNCHED, What.BOOTED]
    assert [event.what for event in world.events(after=1)] == [What.BOOTED]


def test_a_clock_that_goes_back_changes_nothing() -> None:
    world = a_world()
    machine = launched(world)
    world.tick(START + 60)
    world.end(ME, machine.id, START + 20)
    assert world.machine(machine.id).stops_at == START + 65


# --- prices ---------------------------------------------------------------------------------------------------


def test_the_price_in_force_is_the_last_one_not_later() -> None:
    world = a_world(a_sale(spot=(PricePoint(100, 5), PricePoint(200, 7))))
    assert [world.spot_price(NEAR, SMALL, at) for at in (99, 100, 199.9, 200, 1e9)] == [None, 5, 5, 7, 7]


def test_history_is_newest_first_and_starts_with_the_price_in_force() -> None:
    world = a_world(a_sale(spot=(PricePoint(100, 5), PricePoint(200, 7), PricePoint(300, 6), PricePoint(400, 8))))
    history = world.spot_history(EAST, [SMALL], 250, 399)
    assert history == ((NEAR, SMALL, PricePoint(300, 6)), (NEAR, SMALL, PricePoint(200, 7)))
    assert world.spot_history(EAST, ["p5.48xlarge"], 250, 399) == ()
    assert world.spot_history("us-west-2", [SMALL], 250, 399) == ()
    assert [point.at for _, _, point in world.spot_history(EAST, [], 0, 1000)] == [400, 300, 200, 100]


def test_a_price_that_is_repeated_is_no_change() -> None:
    world = a_world(a_sale(spot=(PricePoint(100, 5), PricePoint(200, 5), PricePoint(300, 6), PricePoint(300, 7))))
    assert [point for _, _, point in world.spot_history(EAST, [SMALL], 0, 1000)] == [
        PricePoint(300, 7),
        PricePoint(100, 5),
    ]
