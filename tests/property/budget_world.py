"""Jobs that run on machines of the Lab's world until their budget is spent: the world sells and bills, `core.ledger`
keeps the books, `core.budget` decides, and everything in between (the server, the agents, the network) is played here,
with its faults. Time passes in seconds of the world."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from crucible.core import ledger
from crucible.core.billables import billables, price_of, stop_time
from crucible.core.budget import Standing, decide, position, shortage
from crucible.model.budget import KEEPER, Budget, BudgetId, Payer, Period, Scope, Spender, Stakes
from crucible.model.ids import JobId, LeaseId, MachineId, OfferId, OrderId, TaskId, UserId
from crucible.model.job import Desired
from crucible.model.lease import Lease, LeasePhase, Machine, MachineState, Order, OrderPhase, SellerFacts
from crucible.model.ledger import ChargeKind, PriceSince, Rate, Terms, Usage
from crucible.model.offer import Target
from crucible.model.policy import Policy
from crucible.model.spec import WhenSpent
from crucible.model.units import MicroUsd
from crucible.world.facts import Account, Facts, MachineType, Market, PricePoint, Sale, Zone
from crucible.world.facts import Terms as WorldTerms
from crucible.world.machine import Launch, Refused, State
from crucible.world.machine import Machine as Sold
from crucible.world.world import World
from property.books import at

START = 1_767_225_600
REGION, ZONE, TYPE = "here-1", "here-1a", "big"
DISK_GIB = 100
RULES = WorldTerms()
TERMS = Terms(minimum_s=RULES.minimum_s, free_if_taken_within_s=RULES.free_if_taken_within_s)
DISK = Rate(ChargeKind.STORAGE, MicroUsd(RULES.disk_microusd_per_gib_month * DISK_GIB), RULES.month_s)
ADDRESS = Rate(ChargeKind.ADDRESS, MicroUsd(RULES.address_microusd_per_hour), 3600)
BESIDE = MicroUsd(sum(-(-rate.amount * 3600 // rate.per_s) for rate in (DISK, ADDRESS)))
POLICY = Policy()
TICK_S = int(POLICY.budget_tick.total_seconds())
STOP_S = int(stop_time(POLICY).total_seconds())
FACTS = SellerFacts(
    idempotent_create=True,
    visibility=timedelta(seconds=60),
    boot_time=timedelta(minutes=2),
    terms=TERMS,
    beside_per_hour=BESIDE,
)
PAYER = Payer(UserId("ada"), "vision", None)
ON_DEMAND, CHEAPEST = 10_000_000, 2_000_000  # micro-dollars per hour
STATES = {
    State.PENDING: MachineState.STARTING,
    State.RUNNING: MachineState.RUNNING,
    State.STOPPING: MachineState.STOPPING,
    State.ENDED: MachineState.GONE,
}


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Probabilities, and how long things last at worst."""

    lost_reply: float = 0.0  # to a purchase: the machines are there, and only a listing tells
    late_listing: float = 0.0  # a machine is missing from one
    lost_delete: float = 0.0  # a call that did nothing; it is repeated
    keeper_pause_s: tuple[int, ...] = ()  # how much later than its tick the keeper may look
    keeper_dies_s: int = 0  # once, for so long


CALM = Trouble()
ROUGH = Trouble(lost_reply=0.3, late_listing=0.3, lost_delete=0.4, keeper_pause_s=(0, 0, 0, 5, TICK_S))


@dataclass
class Run:
    """A job that wants machines for ever."""

    id: JobId
    machines: int
    is_spot: bool
    priority: int
    created_at: int
    order: Order | None = None
    leases: dict[int, Lease] = field(default_factory=dict)
    desired: Desired = Desired.RUN
    told_at: int | None = None
    saved_at: int | None = None  # when its ranks have ended
    deletes_at: dict[MachineId, int] = field(default_factory=dict)

    @property
    def spender(self) -> Spender:
        return Spender(
            id=self.id,
            root=self.id,
            payer=PAYER,
            priority=self.priority,
            created_at=at(self.created_at),
            is_over=False,
            desired=self.desired,
            desired_by=None if self.told_at is None else KEEPER,
            desired_at=None if self.told_at is None else at(self.told_at),
            budget=None,
            when_spent=WhenSpent.STOP,
        )


class Story:
    """One budget from its first purchase until nothing runs."""

    def __init__(self, seed: int, trouble: Trouble) -> None:
        self.chance, self.trouble = random.Random(seed), trouble
        self.now, self.next_look, self.is_dead_until = START, START, 0
        self.world = World(facts(self.chance), seed=seed)
        self.usages: dict[MachineId, tuple[Usage, ...]] = {}
        self.posted = 0
        self.runs = [self.a_run(number) for number in range(self.chance.randint(1, 3))]
        one_machine = price_of(1, MicroUsd(ON_DEMAND), None, FACTS, POLICY).to_begin
        self.budget = a_budget(round(one_machine * self.chance.uniform(0.9, 4)), self.chance.random() < 0.5)
        self.most_microusd_per_s = 0.0
        self.dies_at = START + self.chance.randint(60, 400) if trouble.keeper_dies_s else None
        self.stops = self.machines_bought = 0

    def a_run(self, number: int) -> Run:
        chance = self.chance
        is_spot, priority = chance.random() < 0.75, chance.randint(0, 2)
        return Run(JobId(f"j{number}"), chance.randint(1, 2), is_spot, priority, START + number)

    def tell(self) -> "Story":
        """Sellers are listed and places given when something moves, and else with every look of the keeper; between two
        looks the world goes on by itself."""
        self.buy()
        while self.is_anything_open() and self.now < START + 12 * 3600:
            self.now += self.pause()
            self.listing()
            self.look()
            self.carry_out()
        self.now += 7200
        return self

    def pause(self) -> int:
        is_moving = any(run.told_at is not None and run.leases for run in self.runs)
        return self.chance.choice((2, 3, 5)) if is_moving else max(self.next_look - self.now, 1)

    @property
    def bill(self) -> int:
        return self.world.invoice("me", self.now).microusd

    def is_anything_open(self) -> bool:
        return any(run.leases for run in self.runs)

    # --- buying -------------------------------------------------------------------------------------------------

    def buy(self) -> None:
        """In turn, each what all budgets can pay for beside what was promised to those before."""
        standing = None
        for run in self.runs:
            if run.order is not None or run.desired is not Desired.RUN:
                continue
            per_hour = MicroUsd(self.spot_price if run.is_spot else ON_DEMAND)
            price = price_of(run.machines, per_hour, MicroUsd(ON_DEMAND), FACTS, POLICY)
            standing = standing or self.standing()
            if shortage([standing], price) is not None:
                continue
            standing = standing.promising(price.to_begin)
            self.order(run, per_hour)

    @property
    def spot_price(self) -> int:
        return self.world.spot_price(ZONE, TYPE, self.now) or ON_DEMAND

    def order(self, run: Run, per_hour: MicroUsd) -> None:
        ask = Launch(
            account="me",
            region=REGION,
            zone=ZONE,
            type=TYPE,
            market=Market.SPOT if run.is_spot else Market.ON_DEMAND,
            least=run.machines,
            most=run.machines,
            max_price=ON_DEMAND if run.is_spot else None,
            disk_gib=DISK_GIB,
            tags={"order": run.id},
            visible_after_s=self.chance.choice((0, 5, 45)) if self.trouble.late_listing else 0,
        )
        sold = self.world.launch(ask, self.now)
        self.machines_bought += len(sold)
        is_lost = self.chance.random() < self.trouble.lost_reply
        run.order = an_order(run, per_hour, self.now, OrderPhase.UNKNOWN if is_lost else OrderPhase.FILLED)
        run.leases = {one.index: a_lease(run.order, one.index, self.now) for one in sold}
        if not is_lost:
            for one in sold:
                self.bind(run, one)

    def bind(self, run: Run, sold: Sold) -> None:
        lease = run.leases[sold.index]
        if lease.machine_id is None:
            phase = LeasePhase.ACTIVE if lease.phase is LeasePhase.REQUESTED else lease.phase
            run.leases[sold.index] = replace(lease, machine_id=MachineId(sold.id), phase=phase)

    # --- looking ------------------------------------------------------------------------------------------------

    def listing(self) -> None:
        listed = {one.id: one for one in self.world.machines("me", REGION, self.now)}
        for run in self.runs:
            for sold in listed.values():
                is_shown = self.chance.random() >= self.trouble.late_listing
                if is_shown and sold.tags["order"] == run.id and sold.index in run.leases:
                    self.see(run, sold)
            if run.order is not None and all(lease.machine_id for lease in run.leases.values()):
                run.order = replace(run.order, phase=OrderPhase.FILLED)

    def see(self, run: Run, sold: Sold) -> None:
        assert run.order is not None
        self.bind(run, sold)
        machine = self.seen(sold)
        known = self.usages.get(machine.id, ())
        for record in ledger.account(known, machine, run.order, run.leases[sold.index].id, TERMS, at(self.now)):
            if isinstance(record, Usage):
                kept = [one for one in known if (one.rate.kind, one.from_at) != (record.rate.kind, record.from_at)]
                known = (*kept, record)
            else:
                self.posted += sum(entry.amount for entry in record.entries if entry.account.startswith("job:"))
        self.usages[machine.id] = known
        if sold.state is State.ENDED:
            del run.leases[sold.index]

    def seen(self, sold: Sold) -> Machine:
        prices: tuple[PriceSince, ...] = ()
        if sold.market is Market.SPOT:
            until = self.now if sold.ended_at is None else sold.ended_at
            history = self.world.spot_history(REGION, [TYPE], sold.launched_at, until)
            prices = tuple(PriceSince(at(point.at), MicroUsd(point.microusd_per_hour)) for _, _, point in history)
        return Machine(
            id=MachineId(sold.id),
            order_id=OrderId(sold.tags["order"]),
            index=sold.index,
            state=STATES[sold.state],
            started_at=at(sold.launched_at),
            ended_at=None if sold.ended_at is None else at(sold.ended_at),
            was_taken=sold.end is not None and sold.end.value == "seller",
            prices=prices,
            extras=(DISK, ADDRESS),
        )

    def standing(self) -> Standing:
        leases = tuple(lease for run in self.runs for lease in run.leases.values())
        usages = tuple(one for mine in self.usages.values() for one in mine if one.to_at is None)
        stakes = Stakes(
            spenders=tuple(run.spender for run in self.runs),
            usages=usages,
            leases=leases,
            orders=tuple(run.order for run in self.runs if run.order is not None and run.leases),
            seen=frozenset(self.usages),
            wanted=(),
        )
        machines = billables(stakes, {("world", REGION): FACTS}, POLICY)
        return Standing(self.budget, position(self.budget, MicroUsd(self.posted), machines, at(self.now), POLICY))

    def look(self) -> None:
        """The keeper's tick, unless it is late or dead."""
        if self.dies_at is not None and self.now >= self.dies_at:
            self.next_look, self.dies_at = self.dies_at + self.trouble.keeper_dies_s, None
        if self.now < self.next_look:
            return
        late = self.chance.choice(self.trouble.keeper_pause_s) if self.trouble.keeper_pause_s else 0
        self.next_look = self.now + TICK_S + late
        standing = self.standing()
        self.most_microusd_per_s = max(self.most_microusd_per_s, standing.at.per_hour / 3600)
        verdict = decide(standing)
        if standing.left > 0 and self.chance.random() < 0.3:
            self.buy()
        for run in self.runs:
            if run.id in verdict.stop:
                self.stop(run)
            if run.id in verdict.cut and run.saved_at is not None:
                run.saved_at = min(run.saved_at, self.now)

    # --- what follows -------------------------------------------------------------------------------------------

    def stop(self, run: Run) -> None:
        """Ranks that are quick, that take all the time that they have, and that would take more."""
        self.stops += 1
        run.desired, run.told_at = Desired.HOLD, self.now
        run.saved_at = self.now + self.chance.choice((2, 30, STOP_S - 10, STOP_S, 600))

    def carry_out(self) -> None:
        for run in self.runs:
            if run.saved_at is not None and self.now >= run.saved_at:
                for index, lease in run.leases.items():
                    if lease.phase is not LeasePhase.CLOSING:
                        run.leases[index] = replace(lease, phase=LeasePhase.CLOSING)
                for sold in self.mine(run):
                    self.delete(run, sold)

    def mine(self, run: Run) -> Iterator[Sold]:
        """Only what somebody has seen can be deleted."""
        for lease in run.leases.values():
            if lease.machine_id is not None:
                yield self.world.machine(lease.machine_id)

    def delete(self, run: Run, sold: Sold) -> None:
        machine_id = MachineId(sold.id)
        if sold.state is State.ENDED or self.now < run.deletes_at.get(machine_id, 0):
            return
        tries = run.deletes_at.setdefault(machine_id, 0)
        run.deletes_at[machine_id] = self.now + (2 if tries == 0 else 4)
        if (tries and self.now - (run.saved_at or 0) > 15) or self.chance.random() >= self.trouble.lost_delete:
            try:
                self.world.end("me", sold.id, self.now)
            except Refused:
                pass


def facts(chance: random.Random) -> Facts:
    """Prices that jump up to what was agreed to, at any moment."""
    points, moment = [PricePoint(START - 100, chance.randint(CHEAPEST, ON_DEMAND))], START
    for _ in range(chance.randint(0, 12)):
        moment += chance.randint(1, 300)
        points.append(PricePoint(moment, chance.choice((ON_DEMAND, chance.randint(CHEAPEST, ON_DEMAND)))))
    sale = Sale(
        zone=ZONE, type=TYPE, on_demand=ON_DEMAND, spot=tuple(points), hazard_per_hour=chance.choice((0.0, 0.0, 2.0))
    )
    return Facts(
        types=(MachineType(name=TYPE, vcpus=8, memory_mib=1),),
        zones=(Zone(name=ZONE, id="z1", region=REGION),),
        sales=(sale,),
        accounts=(Account(id="me"),),
        terms=RULES,
    )


def a_budget(limit: int, pauses: bool) -> Budget:
    return Budget(
        id=BudgetId("team:vision:once"),
        scope=Scope.TEAM,
        name="vision",
        period=Period.ONCE,
        limit=MicroUsd(limit),
        when_spent=WhenSpent.PAUSE if pauses else WhenSpent.STOP,
        created_by=UserId("ada"),
        created_at=at(START),
    )


def an_order(run: Run, per_hour: MicroUsd, now: int, phase: OrderPhase) -> Order:
    return Order(
        id=OrderId(run.id),
        job_id=run.id,
        task_id=TaskId(run.id),
        target=Target("world", REGION, "vm"),
        offer=OfferId("x"),
        zone=ZONE,
        instance_type=TYPE,
        count=run.machines,
        gpus=0,
        is_spot=run.is_spot,
        price_per_hour=per_hour,
        body={},
        created_at=at(now),
        deadline_at=at(now),
        phase=phase,
        called_at=at(now),
        on_demand_per_hour=MicroUsd(ON_DEMAND),
    )


def a_lease(order: Order, index: int, now: int) -> Lease:
    return Lease(
        id=LeaseId(f"{order.id}-{index}"),
        order_id=order.id,
        job_id=order.job_id,
        task_id=order.task_id,
        target=order.target,
        index=index,
        gpus=0,
        price_per_hour=order.price_per_hour,
        created_at=at(now),
        deadline_at=None,
    )
