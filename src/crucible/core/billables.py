"""Machines that are charged for, or may be: what each has cost, and what it must keep back. Pure.

What is kept back is what a machine may still cost before it can be over: two looks of the keeper, the time to save and
stop, the seller's time to end it, and never less than the seller's minimum. It is reckoned at the most that the seller
may ask, not at today's price."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crucible.core.ledger import HOUR_S, accrued, amount
from crucible.model.budget import Spender, Stakes
from crucible.model.ids import LeaseId, MachineId, OrderId
from crucible.model.lease import Lease, LeasePhase, Order, SellerFacts
from crucible.model.ledger import ChargeKind, Usage
from crucible.model.policy import Policy
from crucible.model.units import NOTHING, MicroUsd

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Billable:
    spender: Spender
    facts: SellerFacts
    limit_per_hour: MicroUsd  # the most that may be asked for it, with all that is charged beside
    usages: tuple[Usage, ...] = ()  # its open stretches
    since: datetime | None = None  # nobody has seen it: it may have run since then,
    unseen_for: timedelta | None = None  # but no longer than this; None: nobody can say
    is_leaving: bool = False  # its end is asked for, or owed
    lease_id: LeaseId | None = None

    @property
    def per_hour(self) -> MicroUsd:
        """As it is now, or at most where nobody says."""
        if not self.usages:
            return self.limit_per_hour
        return MicroUsd(sum(amount(usage.rate, HOUR_S) for usage in self.usages))

    @property
    def most_per_hour(self) -> MicroUsd:
        return max(self.limit_per_hour, self.per_hour)


# --- what it has cost -----------------------------------------------------------------------------------------


def owed(machine: Billable, now: datetime, since: datetime | None) -> MicroUsd:
    """After `since`, as far as nothing of it is posted."""
    if machine.usages:
        return MicroUsd(sum(accrued(usage, now) - before(usage, since, now) for usage in machine.usages))
    if machine.since is None:
        return NOTHING
    begun = machine.since if since is None else max(machine.since, since)
    ran = now - begun if machine.unseen_for is None else min(now - begun, machine.unseen_for)
    return priced(machine.limit_per_hour, ran)


def before(usage: Usage, border: datetime | None, now: datetime) -> MicroUsd:
    """The part of a stretch that lies before a border of periods, at its own rate. The rest lies after it, with all
    that was set right later: what an earlier period came to never changes."""
    if border is None or usage.from_at >= border:
        return NOTHING
    seconds = (min(border, usage.to_at or now) - usage.from_at) // _SECOND
    return amount(usage.rate, max(seconds, 0))


# --- what it keeps back ---------------------------------------------------------------------------------------


def stop_time(policy: Policy) -> timedelta:
    """From the wish that a job stops until its machines are told to end, whatever its ranks do."""
    return policy.stop_grace + policy.stop_margin + policy.budget_save


def kept_back(machine: Billable, now: datetime, policy: Policy, told_at: datetime | None) -> MicroUsd:
    """`told_at`: when its job was told to stop; None: it was not."""
    lasts = max(_lasts(machine, now, policy, told_at), _least(machine, now))
    unheard = machine.most_per_hour - machine.per_hour  # of a price that may have risen already
    whole = priced(machine.most_per_hour, lasts + machine.facts.terms.unit_s * _SECOND)
    return MicroUsd(whole + priced(unheard, policy.budget_sight))


def _lasts(machine: Billable, now: datetime, policy: Policy, told_at: datetime | None) -> timedelta:
    last_look = policy.budget_tick + machine.facts.ends_within
    if machine.is_leaving or machine.spender.is_over:
        return last_look
    if told_at is None:
        return policy.budget_tick + stop_time(policy) + last_look
    return max(told_at - now + stop_time(policy) + last_look, last_look)  # the look that ends it, if nothing else did


def _least(machine: Billable, now: datetime) -> timedelta:
    """What is left of the time that is charged in any case. A start that lies ahead is one of a clock that is."""
    begun = min((usage.from_at for usage in machine.usages), default=machine.since or now)
    return min(begun, now) + machine.facts.terms.minimum_s * _SECOND - now


@dataclass(frozen=True, slots=True)
class Price:
    """Of machines that somebody wants to buy."""

    to_begin: MicroUsd = NOTHING  # until they could be ended again, at the most that may be asked for them
    to_be_worth_it: MicroUsd = NOTHING  # beside that, where jobs are paused: stops would else follow on starts

    def __add__(self, other: "Price") -> "Price":
        begin, worth = self.to_begin + other.to_begin, self.to_be_worth_it + other.to_be_worth_it
        return Price(MicroUsd(begin), MicroUsd(worth))


def price_of(count: int, per_hour: MicroUsd, most: MicroUsd | None, facts: SellerFacts, policy: Policy) -> Price:
    """Of so many machines, each for `per_hour` now, and for `most` at worst; None: that does not move."""
    lasts = 2 * policy.budget_tick + stop_time(policy) + facts.ends_within
    lasts = max(lasts, facts.terms.minimum_s * _SECOND) + facts.terms.unit_s * _SECOND
    most = max(per_hour, most or NOTHING)
    begin = priced(most_of(most, facts), lasts) + priced(most - per_hour, policy.budget_sight)
    worth = priced(most_of(per_hour, facts), policy.budget_start)
    return Price(MicroUsd(count * begin), MicroUsd(count * worth))


def most_of(per_hour: MicroUsd, facts: SellerFacts) -> MicroUsd:
    return MicroUsd(per_hour + facts.beside_per_hour) if per_hour else NOTHING


def priced(per_hour: int, lasts: timedelta) -> MicroUsd:
    """Rounded up: what is kept back is never short by a fraction."""
    seconds = -(-max(lasts, timedelta(0)) // _SECOND)
    return MicroUsd(-(-per_hour * seconds // HOUR_S))


# --- all of them ----------------------------------------------------------------------------------------------


def billables(stakes: Stakes, facts_of: Mapping[tuple[str, str], SellerFacts], policy: Policy) -> tuple[Billable, ...]:
    """What the books show running, and what was ordered and nobody has seen. `facts_of` by provider and region; a
    seller that is not there any more is taken for one without any."""
    spenders = {spender.id: spender for spender in stakes.spenders}
    leases: dict[OrderId, list[Lease]] = defaultdict(list)
    usages: dict[OrderId, dict[MachineId, list[Usage]]] = defaultdict(lambda: defaultdict(list))
    for lease in stakes.leases:
        leases[lease.order_id].append(lease)
    for usage in stakes.usages:
        usages[usage.order_id][usage.machine_id].append(usage)
    found: list[Billable] = []
    for order in stakes.orders:
        facts = facts_of.get((order.target.provider, order.target.region), _UNKNOWN_SELLER)
        of_order = _Of(order, leases[order.id], usages[order.id], stakes.seen, spenders[order.job_id], facts)
        found += (*of_order.running(), *of_order.unseen(policy))
    return tuple(found)


_UNKNOWN_SELLER = SellerFacts(idempotent_create=False, visibility=timedelta(minutes=1), boot_time=timedelta(minutes=10))


@dataclass(frozen=True, slots=True)
class _Of:
    """The machines of one order."""

    order: Order
    leases: Sequence[Lease]  # open ones
    usages: Mapping[MachineId, Sequence[Usage]]  # open ones
    seen: frozenset[MachineId]
    spender: Spender
    facts: SellerFacts

    def running(self) -> Iterator[Billable]:
        by_machine = {lease.machine_id: lease for lease in self.leases}
        for machine_id, usages in self.usages.items():
            lease = by_machine.get(machine_id)
            yield Billable(
                spender=self.spender,
                facts=self.facts,
                limit_per_hour=self._limit(usages),
                usages=tuple(usages),
                # One that no lease holds is the sweep's to remove; one that is not bound yet soon has one.
                is_leaving=lease is not None and lease.phase is LeasePhase.CLOSING,
                lease_id=None if lease is None else lease.id,
            )

    def _limit(self, usages: Sequence[Usage]) -> MicroUsd:
        """A price that does not move is what the books say."""
        now = {usage.rate.kind: amount(usage.rate, HOUR_S) for usage in usages}
        if self.order.is_spot:
            now[ChargeKind.COMPUTE] = max(now.get(ChargeKind.COMPUTE, NOTHING), most_asked(self.order))
        return MicroUsd(sum(now.values()))

    def unseen(self, policy: Policy) -> Iterator[Billable]:
        """Bought, and in no listing yet; or perhaps bought. Machines of the order that are listed and that no lease
        knows yet are its own."""
        bound = {lease.machine_id for lease in self.leases}
        unseen = [lease for lease in self.leases if lease.machine_id not in self.seen]
        unbound = sum(machine_id not in bound for machine_id in self.usages)
        waits = len(unseen) - unbound
        if not self.order.is_settled and self.order.called_at is not None:
            waits = max(waits, self.order.count - len(self.leases) + len(unseen) - unbound)
        for place in range(max(waits, 0)):
            lease = unseen[place] if place < len(unseen) else None
            yield Billable(
                spender=self.spender,
                facts=self.facts,
                limit_per_hour=most_of(most_asked(self.order), self.facts),
                since=self.order.called_at,
                unseen_for=self.facts.visibility + policy.budget_sight if self.order.is_settled else None,
                is_leaving=lease is None or lease.phase is LeasePhase.CLOSING,
                lease_id=None if lease is None else lease.id,
            )


def most_asked(order: Order) -> MicroUsd:
    """Per hour, for one of its machines."""
    return max(order.price_per_hour, order.on_demand_per_hour or NOTHING) if order.is_spot else order.price_per_hour
