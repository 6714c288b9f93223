"""A seller that tells late, one that sells out, and two that never give a name twice."""

import pytest

from crucible.world.facts import Account, Facts, MachineType, Market, PricePoint, Sale, Zone
from crucible.world.machine import End, Launch, Machine, Refused, RefusedBy, State
from crucible.world.world import World

NOW = 1_800_000_000.0
TAKEN = NOW + 1_000


def world(**sale: object) -> World:
    fields: dict[str, object] = dict(zone="z", type="t", on_demand=1_000, spot=(PricePoint(0, 300),))
    return World(
        Facts(
            types=(MachineType(name="t", vcpus=4, memory_mib=1),),
            zones=(Zone(name="z", id="z1", region="r"),),
            sales=(Sale(**{**fields, **sale}),),  # type: ignore[arg-type]
            accounts=(Account(id="1"),),
        )
    )


def bought(market: World, kind: Market = Market.SPOT) -> Machine:
    ask = Launch(account="1", region="r", zone="z", type="t", market=kind, least=1, most=1)
    return market.launch(ask, NOW)[0]


@pytest.mark.parametrize("notice_s", [30.0, 600.0])
def test_a_machine_is_told_as_early_as_was_set(notice_s: float) -> None:
    market = world(taken_at=(int(TAKEN),))
    machine = bought(market)
    market.set_notice(machine.id, notice_s, NOW)
    market.tick(TAKEN - notice_s - 1)
    assert market.machine(machine.id).notice_at is None
    market.tick(TAKEN - notice_s)
    told = market.machine(machine.id)
    assert (told.notice_at, told.taken_at) == (TAKEN - notice_s, TAKEN)
    market.tick(TAKEN)
    assert market.machine(machine.id).end is End.SELLER


def test_a_machine_with_no_notice_is_taken_without_a_word() -> None:
    market = world(taken_at=(int(TAKEN),))
    machine = bought(market)
    market.set_notice(machine.id, 0.0, NOW)
    market.tick(TAKEN - 0.5)
    assert market.machine(machine.id).state is State.RUNNING
    market.tick(TAKEN)
    gone = market.machine(machine.id)
    assert (gone.state, gone.end, gone.notice_at, gone.ended_at) == (State.ENDED, End.SELLER, None, int(TAKEN))


def test_what_is_taken_by_hand_is_told_as_early_as_was_set() -> None:
    market = world()
    machine = bought(market)
    market.set_notice(machine.id, 30.0, NOW)
    market.preempt(machine.id, NOW + 100)
    told = market.machine(machine.id)
    assert (told.notice_at, told.taken_at) == (NOW + 100, NOW + 130)


def test_what_a_machine_was_told_stands() -> None:
    market = world()
    machine = bought(market)
    market.preempt(machine.id, NOW + 100)
    market.set_notice(machine.id, 30.0, NOW + 101)
    market.tick(NOW + 219)
    assert market.machine(machine.id).state is State.RUNNING
    market.tick(NOW + 220)
    assert market.machine(machine.id).ended_at == NOW + 220


def test_a_seller_sells_out_and_has_some_again() -> None:
    market = world(spot_capacity=5)
    held = bought(market)
    market.set_capacity("z", "t", Market.SPOT, 1)
    with pytest.raises(Refused) as refused:
        bought(market)
    assert refused.value.by is RefusedBy.CAPACITY
    assert market.machine(held.id).state is State.PENDING
    assert bought(market, Market.ON_DEMAND).market is Market.ON_DEMAND
    market.set_capacity("z", "t", Market.SPOT, None)
    assert len({bought(market).id for _ in range(4)}) == 4


def test_the_capacity_of_what_is_not_sold_cannot_be_set() -> None:
    with pytest.raises(Refused, match="is not sold"):
        world().set_capacity("z", "other", Market.SPOT, 1)


def test_the_same_luck_under_other_names() -> None:
    facts = world(hazard_per_hour=0.5).facts
    ask = Launch(account="1", region="r", zone="z", type="t", market=Market.SPOT, least=50, most=50)
    worlds = [World(facts, seed=1, salt=salt) for salt in ("one", "other")]
    mine, theirs = ([vars(machine) for machine in each.launch(ask, NOW)] for each in worlds)
    assert {machine["id"] for machine in mine}.isdisjoint(machine["id"] for machine in theirs)
    assert [machine["boots_at"] for machine in mine] == [machine["boots_at"] for machine in theirs]
    for each in worlds:
        each.tick(NOW + 86_400)
    ends = [sorted(one.ended_at or 0 for one in each.machines("1", None, NOW, is_omniscient=True)) for each in worlds]
    assert ends[0] == ends[1]
