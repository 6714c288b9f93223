"""What is held besides machines: disks, reserved places, tags."""

import pytest

from crucible.world.facts import Account, Market
from crucible.world.machine import RefusedBy, State
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


def test_a_disk_goes_with_its_machine() -> None:
    world = a_world()
    machine = launched(world, disk_gib=100, disk_tags={"k": "v"})
    (disk,) = world.disks(ME, EAST)
    assert (disk.id, disk.machine, disk.gib, disk.tags) == (machine.disk_id, machine.id, 100, {"k": "v"})
    world.end(ME, machine.id, START)
    world.tick(START + 5)
    assert world.disks(ME, EAST) == ()


def test_a_disk_that_was_kept_survives_its_machine_until_it_is_deleted() -> None:
    world = a_world()
    machine = launched(world)
    world.keep_disk(machine.disk_id)
    world.end(ME, machine.id, START)
    world.tick(START + 5)
    (disk,) = world.disks(ME, EAST)
    assert (disk.machine, disk.deleted_at) == (None, None)
    world.delete_disk(ME, disk.id, START + 10)
    assert world.disks(ME, EAST) == ()
    assert refused_by(lambda: world.delete_disk(ME, disk.id, START + 10)) is RefusedBy.UNKNOWN


def test_it_is_too_late_to_keep_a_disk_whose_machine_has_ended() -> None:
    world = a_world()
    machine = launched(world)
    world.end(ME, machine.id, START)
    world.keep_disk(machine.disk_id, START + 5)
    assert world.disks(ME, EAST) == ()


def test_a_disk_in_use_cannot_be_deleted() -> None:
    world = a_world()
    machine = launched(world)
    assert refused_by(lambda: world.delete_disk(ME, machine.disk_id, START)) is RefusedBy.IN_USE
    assert refused_by(lambda: world.delete_disk(YOU, machine.disk_id, START)) is RefusedBy.UNKNOWN


def test_a_disk_can_be_made_alone() -> None:
    world = a_world()
    disk = world.create_disk(ME, FAR, 50, START + 0.5, {"k": "v"})
    assert (disk.region, disk.created_at, disk.machine) == (WEST, START, None)
    assert world.disks(ME, WEST) == (disk,)
    assert world.disks(ME, EAST) == world.disks(YOU, None) == ()


def test_reserved_places_are_taken_whether_used_or_not() -> None:
    world = a_world(a_sale(on_demand_capacity=3))
    held = world.reserve(ME, NEAR, SMALL, 2, START)
    assert held.id.startswith("cr-0")
    assert world.unused(held.id) == 2
    assert len(world.launch(an_ask(least=1, most=9, account=YOU), START)) == 1
    assert len(world.launch(an_ask(2, reservation=held.id), START)) == 2
    assert world.unused(held.id) == 0
    assert refused_by(lambda: world.launch(an_ask(reservation=held.id), START)) is RefusedBy.CAPACITY


def test_a_machine_on_a_reserved_place_takes_no_second_one() -> None:
    world = a_world(a_sale(on_demand_capacity=3))
    held = world.reserve(ME, NEAR, SMALL, 2, START)
    world.launch(an_ask(2, reservation=held.id), START)
    assert len(world.launch(an_ask(least=1, most=9), START)) == 1


def test_a_place_is_free_again_when_its_machine_has_ended() -> None:
    world = a_world()
    held = world.reserve(ME, NEAR, SMALL, 1, START)
    machine = launched(world, reservation=held.id)
    world.end(ME, machine.id, START)
    assert refused_by(lambda: world.launch(an_ask(reservation=held.id), START + 4)) is RefusedBy.CAPACITY
    assert launched(world, START + 5, reservation=held.id).reservation == held.id


def test_reserved_places_count_against_the_quota_once() -> None:
    account = Account(id=ME, quotas={(EAST, "g", Market.ON_DEMAND): 8})
    world = a_world(accounts=(account,))
    held = world.reserve(ME, NEAR, SMALL, 2, START)
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 8
    launched(world, reservation=held.id)
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 8
    assert refused_by(lambda: world.launch(an_ask(), START)) is RefusedBy.QUOTA
    assert refused_by(lambda: world.reserve(ME, NEAR, SMALL, 1, START)) is RefusedBy.QUOTA
    world.cancel_reservation(ME, held.id, START)
    assert world.usage(ME, EAST, "g", Market.ON_DEMAND) == 4


def test_what_there_is_no_room_for_cannot_be_reserved() -> None:
    world = a_world(a_sale(on_demand_capacity=1))
    assert refused_by(lambda: world.reserve(ME, NEAR, SMALL, 2, START)) is RefusedBy.CAPACITY
    assert refused_by(lambda: world.reserve(ME, NEAR, BIG, 1, START)) is RefusedBy.UNKNOWN
    assert refused_by(lambda: world.reserve("nobody", NEAR, SMALL, 1, START)) is RefusedBy.UNKNOWN
    with pytest.raises(ValueError, match="no reservation"):
        world.reserve(ME, NEAR, SMALL, 0, START)
    assert world.reservations(ME, None) == ()


def test_a_cancelled_reservation_leaves_its_machines_and_gives_back_the_rest() -> None:
    world = a_world(a_sale(on_demand_capacity=2))
    held = world.reserve(ME, NEAR, SMALL, 2, START)
    machine = launched(world, reservation=held.id)
    cancelled = world.cancel_reservation(ME, held.id, START + 60)
    assert cancelled.ended_at == START + 60
    assert world.cancel_reservation(ME, held.id, START + 90) == cancelled
    assert world.machine(machine.id).state is State.RUNNING
    assert len(world.launch(an_ask(least=1, most=9), START + 100)) == 1
    assert refused_by(lambda: world.launch(an_ask(reservation=held.id), START + 100)) is RefusedBy.UNKNOWN


def test_a_reservation_holds_what_it_says_and_nothing_else() -> None:
    world = a_world(a_sale(), a_sale(NEXT), a_sale(type=BIG))
    held = world.reserve(ME, NEAR, SMALL, 2, START)
    for changes in ({"zone": NEXT}, {"type": BIG}, {"account": YOU}, {"market": Market.SPOT}):
        ask = an_ask(reservation=held.id, **changes)
        assert refused_by(lambda ask=ask: world.launch(ask, START)) is RefusedBy.UNKNOWN


def test_a_reservation_is_made_once_per_token() -> None:
    world = a_world()
    first = world.reserve(ME, NEAR, SMALL, 2, START, token="t", fingerprint="f")
    assert world.reserve(ME, NEAR, SMALL, 2, START, token="t", fingerprint="f") == first
    other = (ME, NEAR, SMALL, 3, START)
    assert refused_by(lambda: world.reserve(*other, token="t", fingerprint="g")) is RefusedBy.TOKEN
    assert world.reservations(ME, EAST) == (first,)
    assert launched(world, token="t")  # a purchase of machines is another matter


def test_everything_that_is_held_can_be_tagged_by_its_owner() -> None:
    world = a_world()
    machine = launched_spot(world, tags={"a": "1"})
    held = world.reserve(ME, NEAR, SMALL, 1, START)
    for id in (machine.id, machine.disk_id, held.id):
        world.tag(ME, id, {"b": "2", "c": "3"})
        world.untag(ME, id, ["c", "never there"])
        assert refused_by(lambda id=id: world.tag(YOU, id, {"b": "x"})) is RefusedBy.UNKNOWN
    assert world.machine(machine.id).tags == {"a": "1", "b": "2"}
    assert world.disks(ME, EAST)[0].tags == world.reservations(ME, EAST)[0].tags == {"b": "2"}
    assert refused_by(lambda: world.tag(ME, "vol-0", {})) is RefusedBy.UNKNOWN
