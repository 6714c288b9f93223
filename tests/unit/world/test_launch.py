"""Buying machines: how many, where, for whom, and the same purchase once."""

import pytest

from crucible.world.facts import Account, Market, PricePoint
from crucible.world.machine import End, RefusedBy, State, What
from worlds import (
    BIG,
    EAST,
    FAR,
    ME,
    NEAR,
    NEXT,
    SMALL,
    START,
    WEST,
    YOU,
    a_sale,
    a_world,
    an_ask,
    launched,
    launched_spot,
    refused_by,
)


def test_a_new_machine_is_pending_and_then_boots_at_its_own_time() -> None:
    world = a_world()
    machine = launched(world, START + 0.75)
    assert (machine.state, machine.launched_at, machine.boots_at) == (State.PENDING, START, START + 30.75)
    assert world.machines(ME, EAST, START + 30)[0].state is State.PENDING
    assert world.machines(ME, EAST, START + 31)[0].state is State.RUNNING


def test_ids_look_like_the_vendors() -> None:
    machine = launched_spot(a_world())
    for id, prefix in ((machine.id, "i-0"), (machine.disk_id, "vol-0"), (machine.launch_id, "r-0")):
        assert id.startswith(prefix)
        assert len(id) == len(prefix) + 16
        int(id[len(prefix) :], 16)
    assert machine.request_id is not None
    assert machine.request_id.startswith("sir-")
    assert launched(a_world()).request_id is None


def test_the_same_seed_gives_the_same_machines_and_another_seed_others() -> None:
    first, same, other = (a_world(seed=seed).launch(an_ask(3), START) for seed in (1, 1, 2))
    assert first == same
    assert {machine.id for machine in first}.isdisjoint({machine.id for machine in other})


def test_machines_of_one_purchase_share_it_and_are_counted_from_zero() -> None:
    machines = a_world().launch(an_ask(3), START)
    assert len({machine.launch_id for machine in machines}) == 1
    assert [machine.index for machine in machines] == [0, 1, 2]


def test_as_many_as_there_is_room_for_up_to_the_most() -> None:
    world = a_world(a_sale(on_demand_capacity=5))
    assert len(world.launch(an_ask(least=1, most=3), START)) == 3
    assert len(world.launch(an_ask(least=1, most=3), START)) == 2
    assert refused_by(lambda: world.launch(an_ask(least=1, most=3), START)) is RefusedBy.CAPACITY


def test_fewer_than_the_least_is_none_at_all() -> None:
    world = a_world(a_sale(on_demand_capacity=5))
    assert refused_by(lambda: world.launch(an_ask(6), START)) is RefusedBy.CAPACITY
    assert world.machines(ME, EAST, START) == ()
    assert world.disks(ME, EAST) == ()
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 0


def test_capacity_is_shared_by_all_accounts_and_comes_back_with_the_end() -> None:
    world = a_world(a_sale(on_demand_capacity=1))
    mine = launched(world)
    assert refused_by(lambda: world.launch(an_ask(account=YOU), START)) is RefusedBy.CAPACITY
    world.end(ME, mine.id, START)
    assert refused_by(lambda: world.launch(an_ask(account=YOU), START + 4)) is RefusedBy.CAPACITY
    assert world.launch(an_ask(account=YOU), START + 5)


def test_spot_and_on_demand_have_their_own_capacity() -> None:
    world = a_world(a_sale(on_demand_capacity=0, spot_capacity=1))
    assert refused_by(lambda: world.launch(an_ask(), START)) is RefusedBy.CAPACITY
    assert launched_spot(world)


def test_all_machines_of_a_purchase_are_in_the_zone_with_the_most_room() -> None:
    world = a_world(a_sale(NEAR, on_demand_capacity=2), a_sale(NEXT, on_demand_capacity=4))
    machines = world.launch(an_ask(least=1, most=6), START)
    assert [machine.zone for machine in machines] == [NEXT] * 4


def test_of_zones_with_room_the_cheapest_is_taken() -> None:
    world = a_world(a_sale(NEAR), a_sale(NEXT, spot=(PricePoint(0, 100_000),)))
    assert launched_spot(world).zone == NEXT


def test_a_zone_that_was_named_is_kept_to() -> None:
    world = a_world(a_sale(NEAR, on_demand_capacity=0), a_sale(NEXT))
    assert refused_by(lambda: world.launch(an_ask(zone=NEAR), START)) is RefusedBy.CAPACITY
    assert launched(world, zone=NEXT).zone == NEXT


@pytest.mark.parametrize(
    "changes",
    [
        {"account": "333333333333"},
        {"region": "eu-west-1"},
        {"region": WEST},  # not sold there
        {"zone": FAR},  # of another region
        {"zone": "us-east-1z"},
        {"type": "x9.huge"},
        {"type": BIG},
        {"reservation": "cr-0"},
    ],
)
def test_what_does_not_exist_cannot_be_bought(changes) -> None:
    assert refused_by(lambda: a_world().launch(an_ask(**changes), START)) is RefusedBy.UNKNOWN


def test_a_type_without_spot_prices_is_not_sold_as_spot() -> None:
    world = a_world(a_sale(spot=()))
    assert refused_by(lambda: launched_spot(world)) is RefusedBy.UNKNOWN
    assert world.spot_price(NEAR, SMALL, START) is None


def test_spot_prices_that_begin_later_are_no_room_yet() -> None:
    world = a_world(a_sale(spot=(PricePoint(int(START) + 60, 1),)))
    assert refused_by(lambda: launched_spot(world)) is RefusedBy.CAPACITY
    assert launched_spot(world, START + 60)


@pytest.mark.parametrize(("least", "most"), [(0, 1), (2, 1), (0, 0)])
def test_a_purchase_of_nothing_is_a_mistake_of_the_caller(least, most) -> None:
    with pytest.raises(ValueError, match="no purchase"):
        a_world().launch(an_ask(least=least, most=most), START)


# --- quotas ---------------------------------------------------------------------------------------------------


def with_quota(vcpus: int) -> Account:
    return Account(id=ME, quotas={(EAST, "g", Market.ON_DEMAND): vcpus}, default_quota=10_000)


def test_a_quota_counts_vcpus_of_machines_that_have_not_ended() -> None:
    world = a_world(accounts=(with_quota(10),))
    assert world.quota(ME, EAST, "g", Market.ON_DEMAND) == 10
    machines = world.launch(an_ask(least=1, most=9), START)
    assert len(machines) == 2
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 8
    assert refused_by(lambda: world.launch(an_ask(), START)) is RefusedBy.QUOTA
    world.end(ME, machines[0].id, START)
    assert refused_by(lambda: world.launch(an_ask(), START + 1)) is RefusedBy.QUOTA
    assert world.launch(an_ask(), START + 5)


def test_quotas_are_by_market_and_by_pool() -> None:
    world = a_world(a_sale(), a_sale(type=BIG), accounts=(with_quota(0),))
    assert refused_by(lambda: world.launch(an_ask(), START)) is RefusedBy.QUOTA
    assert launched_spot(world)
    assert launched(world, type=BIG)
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 0
    assert world.usage(ME, EAST, "p", Market.ON_DEMAND) == 192


# --- price limits ---------------------------------------------------------------------------------------------


def test_a_limit_below_the_price_is_refused_and_one_at_the_price_is_not() -> None:
    world = a_world()
    assert refused_by(lambda: launched_spot(world, max_price=359_999)) is RefusedBy.PRICE
    assert launched_spot(world, max_price=360_000).max_price == 360_000


def test_without_a_limit_it_is_the_on_demand_price() -> None:
    world = a_world(a_sale(spot=(PricePoint(0, 720_001),)))
    assert refused_by(lambda: launched_spot(world)) is RefusedBy.PRICE
    assert launched_spot(world, max_price=720_001)


# --- tokens ---------------------------------------------------------------------------------------------------


def test_the_same_token_gives_the_same_machines_again() -> None:
    world = a_world()
    ask = an_ask(2, token="order-1", fingerprint="f")
    first = world.launch(ask, START)
    assert world.launch(ask, START + 1) == first
    assert len(world.machines(ME, EAST, START + 1)) == 2


def test_the_same_token_gives_machines_that_have_ended_too() -> None:
    world = a_world()
    machine = launched(world, token="order-1")
    world.end(ME, machine.id, START)
    (again,) = world.launch(an_ask(token="order-1"), START + 100_000)
    assert (again.id, again.state, again.end) == (machine.id, State.ENDED, End.OWNER)


def test_the_same_token_with_another_purchase_is_refused() -> None:
    world = a_world()
    launched(world, token="order-1", fingerprint="f")
    again = an_ask(token="order-1", fingerprint="g")
    assert refused_by(lambda: world.launch(again, START)) is RefusedBy.TOKEN


def test_a_refused_purchase_leaves_its_token_unused() -> None:
    world = a_world(a_sale(on_demand_capacity=1))
    mine = launched(world)
    ask = an_ask(token="order-1", fingerprint="f")
    assert refused_by(lambda: world.launch(ask, START)) is RefusedBy.CAPACITY
    world.end(ME, mine.id, START)
    assert world.launch(an_ask(token="order-1", fingerprint="g"), START + 60)


def test_a_token_is_one_accounts_in_one_region() -> None:
    world = a_world(a_sale(), a_sale(FAR))
    asks = [an_ask(token="t"), an_ask(token="t", account=YOU), an_ask(token="t", region=WEST)]
    assert len({world.launch(ask, START)[0].id for ask in asks}) == 3


# --- what is listed -------------------------------------------------------------------------------------------


def test_a_machine_may_be_listed_later_than_it_is_bought() -> None:
    world = a_world()
    machine = launched(world, visible_after_s=40.0)
    assert world.machines(ME, EAST, START + 39) == ()
    assert [seen.id for seen in world.machines(ME, EAST, START + 39, is_omniscient=True)] == [machine.id]
    assert [seen.id for seen in world.machines(ME, EAST, START + 40)] == [machine.id]


def test_an_ended_machine_is_listed_for_an_hour_and_then_unknown() -> None:
    world = a_world()
    machine = launched(world)
    world.end(ME, machine.id, START)
    assert world.machines(ME, EAST, START + 3604)[0].state is State.ENDED
    assert world.end(ME, machine.id, START + 3604).state is State.ENDED
    assert world.machines(ME, EAST, START + 3605) == ()
    assert refused_by(lambda: world.end(ME, machine.id, START + 3605)) is RefusedBy.UNKNOWN
    assert world.machines(ME, EAST, START + 3605, is_omniscient=True)


def test_listings_are_of_one_account_and_of_one_region_or_all() -> None:
    world = a_world(a_sale(), a_sale(FAR))
    here, there = launched(world), launched(world, region=WEST)
    launched(world, account=YOU)
    assert [seen.id for seen in world.machines(ME, EAST, START)] == [here.id]
    assert [seen.id for seen in world.machines(ME, None, START)] == [here.id, there.id]


def test_what_is_handed_out_is_a_copy() -> None:
    world = a_world()
    machine = launched(world, tags={"a": "1"})
    machine.tags["a"] = "2"
    machine.state = State.ENDED
    seen = world.machine(machine.id)
    assert (seen.tags, seen.state) == ({"a": "1"}, State.PENDING)


def test_a_refusal_is_remembered_for_people() -> None:
    world = a_world(a_sale(on_demand_capacity=0))
    refused_by(lambda: world.launch(an_ask(), START))
    (event,) = world.events()
    assert (event.what, event.subject) == (What.REFUSED, f"{SMALL}@{EAST}")


# --- addresses ------------------------------------------------------------------------------------------------


def test_machines_that_live_have_different_addresses() -> None:
    machines = a_world().launch(an_ask(50), START)
    assert len({machine.private_address for machine in machines}) == 50
    assert len({machine.public_address for machine in machines}) == 50


def test_a_machine_without_a_public_address_has_none() -> None:
    assert launched(a_world(), has_address=False).public_address is None


def test_addresses_come_back_at_once_only_where_that_is_wanted() -> None:
    world = a_world()
    old = launched(world)
    world.end(ME, old.id, START)
    other = launched(world, START + 10)
    world.reuse_addresses = True
    new, newer = launched(world, START + 20), launched(world, START + 20)
    assert other.private_address != old.private_address
    assert (new.private_address, new.public_address) == (old.private_address, old.public_address)
    assert newer.private_address not in {new.private_address, other.private_address}


def test_the_freshest_address_comes_back_first() -> None:
    world = a_world()
    first, last = world.launch(an_ask(2), START)
    world.end(ME, first.id, START)
    world.end(ME, last.id, START + 10)
    world.reuse_addresses = True
    again = [launched(world, START + 20).private_address for _ in range(2)]
    assert again == [last.private_address, first.private_address]


def test_addresses_go_round_and_pass_over_those_in_use() -> None:
    world = a_world(private_network="127.64.0.0/28")  # 8 for machines
    stays = launched(world)
    seen = []
    for turn in range(20):
        machine = launched(world, START + turn * 10)
        seen.append(machine.private_address)
        world.end(ME, machine.id, START + turn * 10)
    assert set(seen[:7]) == set(seen)
    assert len(set(seen)) == 7
    assert stays.private_address not in seen


def test_a_purchase_for_which_there_are_no_addresses_is_refused_whole() -> None:
    world = a_world(private_network="127.64.0.0/28")  # 8 for machines
    world.launch(an_ask(5), START)
    assert refused_by(lambda: world.launch(an_ask(4, token="t"), START)) is RefusedBy.CAPACITY
    assert len(world.launch(an_ask(3, token="t", fingerprint="f"), START)) == 3
