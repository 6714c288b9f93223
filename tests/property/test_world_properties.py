"""Whoever buys and ends whatever, in whatever order: nothing is sold twice, every bill is right, and it does not matter
how often anybody looks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import groupby
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.world.facts import Account, Facts, Market, PricePoint, Sale
from crucible.world.invoice import Invoice
from crucible.world.machine import End, Launch, Machine, Refused, State
from crucible.world.world import World
from worlds import EAST, ME, NEAR, NEXT, SMALL, START, TYPES, YOU, an_ask, some_facts

T = int(START)
VCPUS = {type.name: type.vcpus for type in TYPES}

# --- worlds and what is done in them --------------------------------------------------------------------------

lines = st.lists(st.tuples(st.integers(-500, 9000), st.integers(100_000, 900_000)), max_size=6).map(
    lambda points: (PricePoint(0, 333_333), *(PricePoint(T + at, price) for at, price in sorted(points)))
)
sales = st.builds(
    Sale,
    zone=st.sampled_from([NEAR, NEXT]),
    type=st.just(SMALL),
    on_demand=st.sampled_from([720_000, 1_006_001]),
    spot=lines,
    on_demand_capacity=st.sampled_from([6, 3, 12, 0]),
    spot_capacity=st.sampled_from([6, 3, 12, 0]),
    hazard_per_hour=st.sampled_from([0.0, 1.0, 6.0]),
    taken_at=st.lists(st.integers(T, T + 9000), max_size=2).map(lambda at: tuple(sorted(at))),
)
accounts = st.sampled_from([40, 17, 400, 3]).map(
    lambda vcpus: (Account(id=ME, quotas={(EAST, "g", Market.SPOT): vcpus}, default_quota=24), Account(id=YOU))
)
facts = st.builds(
    some_facts,
    sales,
    sales,
    accounts=accounts,
    boot_s=st.just((5.0, 90.0)),
    stop_s=st.sampled_from([(0.0, 0.0), (1.0, 9.0), (0.0, 400.0)]),
    notice_s=st.sampled_from([120.0, 30.0, 0.0]),
    rebalance_s=st.sampled_from([300.0, 0.0]),
)


@dataclass(frozen=True)
class Deed:
    """`which` picks one of the machines, disks or reservations that there are."""

    name: str
    wait_s: float
    which: int
    count: int
    fields: dict[str, Any]


deeds = st.builds(
    Deed,
    name=st.sampled_from(
        ["launch"] * 5 + ["end"] * 4 + ["shut_down", "preempt", "die", "keep", "delete", "reserve", "cancel", "held"]
    ),
    wait_s=st.sampled_from([0.0, 0.4, 1.0, 29.5, 100.0, 700.25, 2500.0]),
    which=st.integers(0, 50),
    count=st.integers(1, 4),
    fields=st.fixed_dictionaries(
        {
            "account": st.sampled_from([ME, ME, YOU]),
            "market": st.sampled_from([Market.SPOT, Market.ON_DEMAND]),
            "zone": st.sampled_from([None, NEAR]),
            "token": st.sampled_from([None, None, "t1", "t2"]),
            "max_price": st.sampled_from([None, 500_000]),
            "has_address": st.booleans(),
            "disk_gib": st.sampled_from([8, 657]),
        }
    ),
)
scripts = st.builds(
    lambda first, rest: [replace(first, name="launch"), *rest], deeds, st.lists(deeds, min_size=5, max_size=16)
)


@dataclass
class Player:
    """Does a script. What came of each deed is kept as text, to be compared."""

    world: World
    now: float = START
    results: list[str] = field(default_factory=list)
    bought: list[tuple[Launch, tuple[Machine, ...]]] = field(default_factory=list)

    def play(self, deed: Deed) -> None:
        try:
            self.results.append(str(self._do(deed)))
        except Refused as refused:
            self.results.append(refused.message)

    def everything(self, now: float) -> list[Machine]:
        found = [machine for id in (ME, YOU) for machine in self.world.machines(id, None, now, is_omniscient=True)]
        return sorted(found, key=lambda machine: machine.id)

    def _do(self, deed: Deed) -> object:
        world, now = self.world, self.now
        match deed.name:
            case "launch":
                return self._buy(an_ask(least=(deed.count + 1) // 2, most=deed.count, **deed.fields))
            case "held":
                held = self._one(world.reservations(ME, None), deed)
                plain = {**deed.fields, "account": ME, "market": Market.ON_DEMAND, "zone": None, "token": None}
                return self._buy(an_ask(reservation=held.id, **plain)) if held else None
            case "reserve":
                return world.reserve(ME, NEAR, SMALL, deed.count, now)
            case "cancel":
                held = self._one(world.reservations(ME, None), deed)
                return world.cancel_reservation(ME, held.id, now) if held else None
            case "delete":
                disk = self._one(world.disks(ME, None, now), deed)
                return world.delete_disk(ME, disk.id, now) if disk else None
        machine = self._one(sorted(self.everything(now), key=lambda found: found.disk_id), deed)
        return self._do_to(machine, deed) if machine else None

    def _do_to(self, machine: Machine, deed: Deed) -> object:
        match deed.name:
            case "end":
                return self.world.end(machine.account, machine.id, self.now)
            case "die":
                return self.world.end(machine.account, machine.id, self.now, End.SELLER)
            case "shut_down":
                return self.world.shut_down(machine.id, self.now)
            case "keep":
                return self.world.keep_disk(machine.disk_id, self.now)
        return self.world.preempt(machine.id, self.now, [None, 0.0, 30.0][deed.count % 3])

    def _buy(self, ask: Launch) -> tuple[Machine, ...]:
        machines = self.world.launch(ask, self.now)
        self.bought.append((ask, machines))
        return machines

    def _one(self, found: Any, deed: Deed) -> Any:
        return found[deed.which % len(found)] if found else None


def played(facts: Facts, script: list[Deed], seed: int) -> Iterator[Player]:
    """The world at first, and after each deed."""
    player = Player(World(facts, seed=seed))
    yield player
    for deed in script:
        player.now += deed.wait_s
        player.play(deed)
        yield player


seeds = st.integers(0, 3)
few = settings(max_examples=60, deadline=None)


# --- what holds in every world --------------------------------------------------------------------------------


@few
@given(facts, scripts, seeds)
def test_nothing_is_sold_twice_and_no_quota_is_passed(facts: Facts, script: list[Deed], seed: int) -> None:
    for player in played(facts, script, seed):
        alive = [machine for machine in player.everything(player.now) if machine.state is not State.ENDED]
        held = {held.id: held for held in player.world.reservations(ME, None) if held.ended_at is None}
        on_hold = Counter(machine.reservation for machine in alive if machine.reservation in held)
        assert all(on_hold[id] <= found.count for id, found in held.items())
        sold = Counter((machine.zone, machine.market) for machine in alive if machine.reservation not in held)
        for found in held.values():
            sold[found.zone, Market.ON_DEMAND] += found.count
        for sale in {sale.zone: sale for sale in facts.sales}.values():
            assert sold[sale.zone, Market.ON_DEMAND] <= sale.on_demand_capacity
            assert sold[sale.zone, Market.SPOT] <= sale.spot_capacity
        for account in facts.accounts:
            for market in Market:
                mine = [found for found in alive if (found.account, found.market) == (account.id, market)]
                used = sum(VCPUS[found.type] for found in mine)
                assert used <= player.world.usage(account.id, EAST, "g", market)
                assert player.world.usage(account.id, EAST, "g", market) <= player.world.quota(
                    account.id, EAST, "g", market
                )
        for addresses in ([m.private_address for m in alive], [m.public_address for m in alive if m.public_address]):
            assert len(addresses) == len(set(addresses))


@few
@given(facts, scripts, seeds)
def test_a_purchase_is_between_its_least_and_its_most_and_in_one_place(
    facts: Facts, script: list[Deed], seed: int
) -> None:
    for player in played(facts, script, seed):
        known = len(player.everything(player.now))
        assert known == sum(len(found) for found in {m[0].launch_id: m for _, m in player.bought}.values())
    for ask, machines in player.bought:
        if ask.token is None:
            assert ask.least <= len(machines) <= ask.most
        assert len({(machine.zone, machine.launch_id) for machine in machines}) == 1


@few
@given(facts, scripts, seeds)
def test_a_token_buys_once(facts: Facts, script: list[Deed], seed: int) -> None:
    *_, player = played(facts, script, seed)
    by_token: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for ask, machines in player.bought:
        if ask.token is not None:
            by_token.setdefault((ask.account, ask.token), set()).add(tuple(machine.id for machine in machines))
    assert all(len(found) == 1 for found in by_token.values())


@few
@given(facts, scripts, seeds, st.lists(st.floats(0, 12_000), max_size=12))
def test_it_does_not_matter_how_often_anybody_looks(
    facts: Facts, script: list[Deed], seed: int, looks: list[float]
) -> None:
    coarse, fine = Player(World(facts, seed=seed)), Player(World(facts, seed=seed))
    coarse_told, fine_told = list(coarse.world.tick(START)), list(fine.world.tick(START))
    due = sorted(START + look for look in looks)
    for deed in script:
        coarse.now = fine.now = coarse.now + deed.wait_s
        while due and due[0] <= fine.now:
            fine_told += fine.world.tick(due.pop(0))
            fine.world.invoice(ME, START)
        if deed.which % 2:
            fine_told += fine.world.tick(fine.now)
        coarse.play(deed)
        fine.play(deed)
    for second in range(0, 12_000, 977):
        fine_told += fine.world.tick(fine.now + second)
    end = fine.now + 12_000
    coarse_told += coarse.world.tick(end)
    fine_told += fine.world.tick(end)
    assert coarse.results == fine.results
    assert coarse_told == fine_told
    assert [happening.at for happening in fine_told] == sorted(happening.at for happening in fine_told)
    assert coarse.everything(end) == fine.everything(end)
    assert coarse.world.invoice(ME, end) == fine.world.invoice(ME, end)


@few
@given(facts, scripts, seeds, st.integers(0, 5000))
def test_no_bill_shrinks_and_nothing_that_ended_is_charged_on(
    facts: Facts, script: list[Deed], seed: int, later: int
) -> None:
    before: dict[tuple[str, str], int] = {}
    final: dict[tuple[str, str], int] = {}
    for player in played(facts, script, seed):
        before, final = check_growth(player, player.now, before, final)
    check_growth(player, player.now + later, before, final)


def check_growth(
    player: Player, now: float, before: dict[tuple[str, str], int], final: dict[tuple[str, str], int]
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    machines = {machine.id: machine for machine in player.everything(now)}
    invoices = [player.world.invoice(id, now) for id in (ME, YOU)]
    amounts = {(line.resource, line.kind): line.microusd for invoice in invoices for line in invoice.lines}
    assert sum(amounts.values()) == sum(invoice.microusd for invoice in invoices)  # each thing is charged once
    for key, amount in before.items():
        machine = machines.get(key[0])
        was_taken = machine is not None and machine.end is End.SELLER and machine.market is Market.SPOT
        assert amounts[key] >= amount or (was_taken and amounts[key] == 0)
    for key, amount in final.items():
        assert amounts[key] == amount
    return amounts, {key: amount for key, amount in amounts.items() if is_over(machines.get(key[0]))}


def is_over(machine: Machine | None) -> bool:
    return machine is not None and machine.state is State.ENDED


# --- the bill, worked out a second time -----------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(facts, scripts, seeds)
def test_the_invoice_is_what_counting_seconds_comes_to(facts: Facts, script: list[Deed], seed: int) -> None:
    *_, player = played(facts, script, seed)
    end = player.now + 4000
    invoice = player.world.invoice(ME, end)
    by_machine = {line.resource: line.microusd for line in invoice.lines if line.kind == "machine"}
    mine = {machine.id: machine for machine in player.everything(end) if machine.account == ME}
    assert by_machine.keys() == mine.keys()
    for machine in mine.values():
        assert by_machine[machine.id] == counted(machine, facts, player, int(end))
    check_the_rest(invoice, mine)


def counted(machine: Machine, facts: Facts, player: Player, until: int) -> int:
    """Second by second, one price after the other."""
    sale = {sale.zone: sale for sale in facts.sales}[machine.zone]
    end = until if machine.ended_at is None else machine.ended_at
    if machine.market is Market.SPOT and machine.end is End.SELLER and end - machine.launched_at < 3600:
        return 0
    free_until = machine.launched_at
    if machine.reservation is not None:
        (held,) = (held for held in player.world.reservations(ME, None) if held.id == machine.reservation)
        free_until = until + 60 if held.ended_at is None or held.ended_at >= end else held.ended_at
    prices = [price_at(sale, machine.market, second) for second in range(machine.launched_at, max(end, 1))]
    if not prices:
        prices = [price_at(sale, machine.market, machine.launched_at)] * (60 if machine.ended_at is not None else 0)
    elif machine.ended_at is not None:
        prices += [prices[-1]] * (60 - len(prices))
    paid = prices[max(free_until - machine.launched_at, 0) :]
    return sum(rounded(price, len(list(run)), 3600) for price, run in groupby(paid))


def price_at(sale: Sale, market: Market, second: int) -> int:
    if market is Market.ON_DEMAND:
        return sale.on_demand
    return [point.microusd_per_hour for point in sale.spot if point.at <= second][-1]


def check_the_rest(invoice: Invoice, mine: dict[str, Machine]) -> None:
    lives = {id: max((m.ended_at or invoice.until) - m.launched_at, 60 if m.ended_at else 0) for id, m in mine.items()}
    for line in invoice.lines:
        if line.kind == "address":
            assert line.microusd == rounded(5000, lives[line.resource], 3600)
        if line.kind == "disk" and line.note in mine:
            gib = {rounded(gib * 80_000, lives[line.note], 730 * 3600) for gib in (8, 657)}
            assert line.microusd in gib


def rounded(price: int, seconds: int, per_s: int) -> int:
    exact = Decimal(price * seconds) / Decimal(per_s)
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
