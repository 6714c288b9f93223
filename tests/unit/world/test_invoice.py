"""What things come to, worked out by hand beside each invoice."""

from typing import Any

import pytest

from crucible.world.facts import PricePoint, Terms
from crucible.world.invoice import Invoice, Stretch
from crucible.world.machine import End, Machine
from crucible.world.world import World
from worlds import ME, NEAR, SMALL, START, YOU, a_sale, a_world, an_ask, launched, launched_spot

BARE = Terms(disk_microusd_per_gib_month=0, address_microusd_per_hour=0)
T = int(START)
LATER = START + 1_000_000


def ended(world: World, machine: Machine, after_s: float, by: End = End.OWNER) -> None:
    """So that its life is `after_s` long."""
    if by is End.SELLER:
        world.end(ME, machine.id, machine.launched_at + after_s, by)
    else:
        world.end(ME, machine.id, machine.launched_at + after_s - 5, by)  # it takes five seconds to stop


def amount(invoice: Invoice, kind: str = "machine") -> int:
    return invoice.by_kind.get(kind, 0)


def test_a_machine_its_disk_and_its_address_are_charged_by_the_second() -> None:
    world = a_world()
    ended(world, launched(world, disk_gib=100), 1000)
    invoice = world.invoice(ME, LATER)
    assert invoice.by_kind == {
        "machine": 200_000,  # 0.72 $ an hour are 200 a second
        "address": 1389,  # 5,000 x 1,000 / 3,600 = 1,388.9
        "disk": 3044,  # 100 GiB x 80,000 x 1,000 / (730 x 3,600) = 3,044.1
    }
    assert invoice.microusd == 204_433


def test_it_starts_and_ends_with_the_whole_seconds_that_are_reported() -> None:
    world = a_world(terms=BARE)
    machine = launched(world, START + 0.9)
    world.end(ME, machine.id, START + 100.2)
    (line,) = (line for line in world.invoice(ME, LATER).lines if line.kind == "machine")
    assert (line.from_at, line.to_at, line.microusd) == (T, T + 106, 106 * 200)
    assert world.machine(machine.id).ended_at == T + 106


@pytest.mark.parametrize(("life_s", "charged_s"), [(5, 60), (59, 60), (60, 60), (61, 61)])
def test_a_minute_is_the_least(life_s: int, charged_s: int) -> None:
    world = a_world()
    ended(world, launched(world, disk_gib=657), life_s)
    invoice = world.invoice(ME, LATER)
    assert {line.to_at - line.from_at for line in invoice.lines} == {charged_s}
    assert invoice.by_kind == {
        "machine": charged_s * 200,
        "address": round(charged_s * 25 / 18),
        "disk": charged_s * 20,  # 657 x 80,000 / 2,628,000 is 20
    }


@pytest.mark.parametrize(("seconds", "microusd"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (7, 4)])
def test_half_a_micro_dollar_goes_to_the_even_one(seconds: int, microusd: int) -> None:
    assert Stretch(from_at=0, to_at=seconds, microusd_per=1800).microusd == microusd


@pytest.mark.parametrize(("price", "microusd"), [(1799, 0), (1800, 0), (1801, 1)])
def test_a_hair_beside_the_half_is_not_the_half(price: int, microusd: int) -> None:
    assert Stretch(from_at=0, to_at=1, microusd_per=price).microusd == microusd


def test_every_stretch_of_a_spot_price_is_rounded_by_itself() -> None:
    line = (PricePoint(0, 1799), PricePoint(T + 101, 1801), PricePoint(T + 202, 3_600_000))
    world = a_world(a_sale(spot=line, on_demand=9_000_000), terms=BARE)
    ended(world, launched_spot(world), 212)
    (found,) = (line for line in world.invoice(ME, LATER).lines if line.kind == "machine")
    # 101 x 1,799 / 3,600 = 50.47; 101 x 1,801 / 3,600 = 50.53; 10 x 1,000. In one sum: 101.0.
    assert [stretch.microusd for stretch in found.stretches] == [50, 51, 10_000]
    assert found.microusd == 10_101


def test_a_repeated_price_makes_one_stretch() -> None:
    line = tuple(PricePoint(T + at, 1800) for at in range(-1, 100))
    world = a_world(a_sale(spot=line), terms=BARE)
    ended(world, launched_spot(world), 101)
    assert amount(world.invoice(ME, LATER)) == 50  # 50.5, not a hundred halves that vanish


def test_a_minimum_lengthens_the_last_stretch_at_its_price() -> None:
    line = (PricePoint(0, 360_000), PricePoint(T + 10, 720_000), PricePoint(T + 20, 1_080_000))
    world = a_world(a_sale(spot=line, on_demand=9_000_000), terms=BARE)
    ended(world, launched_spot(world), 20)
    assert amount(world.invoice(ME, LATER)) == 10 * 100 + 50 * 200  # the third price began when it had ended


def test_a_machine_that_ends_in_its_first_second_pays_the_price_of_its_launch() -> None:
    world = a_world(a_sale(spot=(PricePoint(0, 360_000), PricePoint(T + 1, 720_000))), terms=BARE)
    machine = launched_spot(world, START + 0.1)
    world.end(ME, machine.id, START + 0.9, End.GUEST)
    assert amount(world.invoice(ME, LATER)) == 1 * 100 + 59 * 200
    sudden = a_world(a_sale(spot=(PricePoint(0, 360_000), PricePoint(T + 1, 720_000))), terms=BARE, stop_s=(0.0, 0.0))
    machine = launched_spot(sudden, START)
    sudden.end(ME, machine.id, START)
    assert amount(sudden.invoice(ME, LATER)) == 60 * 100


# --- taken by the seller --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("life_s", "seconds"), [(30, 0), (3599, 0), (3600, 3600), (3601, 3601)])
def test_a_spot_machine_taken_within_its_first_hour_is_free_but_not_its_disk(life_s: int, seconds: int) -> None:
    world = a_world()
    ended(world, launched_spot(world, disk_gib=657), life_s, End.SELLER)
    invoice = world.invoice(ME, LATER)
    assert amount(invoice) == seconds * 100
    assert amount(invoice, "disk") == max(life_s, 60) * 20
    assert amount(invoice, "address") == round(max(life_s, 60) * 25 / 18)


@pytest.mark.parametrize("by", [End.OWNER, End.GUEST])
def test_a_spot_machine_that_its_owner_ends_is_charged_even_after_a_notice(by: End) -> None:
    world = a_world(terms=BARE)
    machine = launched_spot(world)
    world.preempt(machine.id, START + 100)
    ended(world, machine, 150, by)
    assert amount(world.invoice(ME, LATER)) == 150 * 100


def test_an_on_demand_machine_that_dies_early_is_charged() -> None:
    world = a_world(terms=BARE)
    ended(world, launched(world), 100, End.SELLER)
    assert amount(world.invoice(ME, LATER)) == 100 * 200


# --- what still runs ------------------------------------------------------------------------------------------


def test_what_runs_is_charged_up_to_now_even_while_it_boots() -> None:
    world = a_world(terms=BARE)
    launched(world)
    assert [amount(world.invoice(ME, START + s)) for s in (0, 1, 10.9, 100)] == [0, 200, 2000, 20_000]


def test_what_stops_is_charged_until_it_has_ended() -> None:
    world = a_world(terms=BARE)
    machine = launched(world)
    world.end(ME, machine.id, START + 100)
    assert [amount(world.invoice(ME, START + s)) for s in (104, 105, 9999)] == [20_800, 21_000, 21_000]


def test_an_end_that_nobody_has_seen_yet_is_on_the_invoice() -> None:
    world = a_world(a_sale(taken_at=(T + 7200,)), terms=BARE)
    launched_spot(world)
    assert amount(world.invoice(ME, LATER)) == 7200 * 100


# --- disks and reservations -----------------------------------------------------------------------------------


def test_a_disk_that_survives_its_machine_is_charged_until_it_is_deleted() -> None:
    world = a_world()
    machine = launched(world, disk_gib=657)
    world.keep_disk(machine.disk_id)
    ended(world, machine, 100)
    assert amount(world.invoice(ME, START + 5000), "disk") == 5000 * 20
    world.delete_disk(ME, machine.disk_id, START + 6000)
    assert amount(world.invoice(ME, LATER), "disk") == 6000 * 20
    assert amount(world.invoice(ME, LATER)) == 100 * 200


def test_a_machine_without_a_public_address_pays_for_none() -> None:
    world = a_world()
    launched(world, has_address=False)
    assert "address" not in world.invoice(ME, LATER).by_kind


def test_a_reservation_is_charged_used_or_not_and_its_machines_are_not() -> None:
    world = a_world(terms=BARE)
    held = world.reserve(ME, NEAR, SMALL, 3, START)
    ended(world, launched(world, START + 10, reservation=held.id), 100)
    world.cancel_reservation(ME, held.id, START + 1000)
    invoice = world.invoice(ME, LATER)
    assert amount(invoice) == 0
    assert amount(invoice, "reservation") == 3 * 200 * 1000
    assert {line.note for line in invoice.lines if line.kind == "machine"} == {f"paid for by {held.id}"}


def test_machines_that_outlive_their_reservation_are_charged_from_then_on() -> None:
    world = a_world(terms=BARE)
    held = world.reserve(ME, NEAR, SMALL, 1, START)
    ended(world, launched(world, START, reservation=held.id), 0)
    machine = launched(world, START + 100, reservation=held.id)
    world.cancel_reservation(ME, held.id, START + 1000)
    ended(world, machine, 2000)
    invoice = world.invoice(ME, LATER)
    assert amount(invoice) == 1100 * 200  # from 1,000 to 2,100
    assert amount(invoice, "reservation") == 1000 * 200


def test_a_machine_that_ends_with_its_reservation_owes_no_minimum() -> None:
    world = a_world(terms=BARE)
    held = world.reserve(ME, NEAR, SMALL, 1, START)
    ended(world, launched(world, reservation=held.id), 30)
    world.cancel_reservation(ME, held.id, START + 30)
    assert amount(world.invoice(ME, LATER)) == 0


def test_everybody_gets_his_own_invoice() -> None:
    world = a_world()
    launched(world)
    assert world.invoice(YOU, LATER).lines == ()


def test_a_line_is_for_one_thing_of_one_kind_and_the_sum_of_its_stretches() -> None:
    line: Any = tuple(PricePoint(T + at, 300_000 + at) for at in range(-100, 20_000, 700))
    world = a_world(a_sale(spot=line))
    world.launch(an_ask(3), START)
    launched_spot(world)
    invoice = world.invoice(ME, START + 10_000)
    keys = [(found.resource, found.kind) for found in invoice.lines]
    assert len(keys) == len(set(keys)) == 12
    assert all(found.microusd == sum(part.microusd for part in found.stretches) for found in invoice.lines)
    assert sum(invoice.by_kind.values()) == invoice.microusd
