"""Books that are kept by hand: what `core.ledger` returns is written as a store would write it, and every rule of the
ledger is checked at each entry."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from crucible.core import ledger
from crucible.model.ids import JobId, LeaseId, MachineId, OfferId, OrderId, TaskId
from crucible.model.lease import Machine, Order
from crucible.model.ledger import ChargeKind, Posting, Terms, Usage
from crucible.model.offer import Target
from crucible.model.units import MicroUsd

LEASE = LeaseId("l")


def at(second: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def an_order(price: int, *, is_spot: bool = True) -> Order:
    return Order(
        id=OrderId("o"),
        job_id=JobId("j"),
        task_id=TaskId("t"),
        target=Target("world", "here-1", "vm"),
        offer=OfferId("x"),
        zone="",
        instance_type="x",
        count=1,
        gpus=0,
        is_spot=is_spot,
        price_per_hour=MicroUsd(price),
        body={},
        created_at=at(0),
        deadline_at=at(0),
    )


@dataclass
class Books:
    terms: Terms
    usages: dict[MachineId, list[Usage]] = field(default_factory=lambda: defaultdict(list))
    postings: dict[str, Posting] = field(default_factory=dict)

    def account(self, machine: Machine, order: Order, now: datetime) -> None:
        fresh = ledger.account(self.usages[machine.id], machine, order, LEASE, self.terms, now)
        self.write(fresh)
        again = ledger.account(self.usages[machine.id], machine, order, LEASE, self.terms, now)
        assert again == (), f"asked again it says more: {again}"

    def lose(self, machine_id: MachineId, last_seen: datetime) -> None:
        self.write(ledger.gone(self.usages[machine_id], last_seen, self.terms))
        assert ledger.gone(self.usages[machine_id], last_seen + timedelta(hours=1), self.terms) == ()

    def write(self, records: Iterable[Usage | Posting]) -> None:
        for record in records:
            if isinstance(record, Posting):
                self._post(record)
            else:
                self._note(record)
                assert self.stretches == self.posted(), "stretches and postings tell different stories"

    def _post(self, posting: Posting) -> None:
        assert sum(entry.amount for entry in posting.entries) == 0
        assert all(entry.amount != 0 for entry in posting.entries)
        assert self.postings.setdefault(posting.id, posting) == posting, "one id, two postings"

    def _note(self, usage: Usage) -> None:
        """As the store does: the next begins where the last one ended, and what is closed never changes."""
        mine = self.usages[usage.machine_id]
        of_kind = [one for one in mine if one.rate.kind is usage.rate.kind]
        last = of_kind[-1] if of_kind else None
        if last is not None and last.to_at is None:
            assert replace(usage, to_at=None, amount=None, is_estimate=False) == last
            mine.remove(last)
        elif last is not None:
            assert (usage.from_at, last.to_at) == (last.to_at, usage.from_at) and usage.from_at > last.from_at
        assert usage.to_at is None or usage.to_at >= usage.from_at
        mine.append(usage)

    # --- what it comes to ---------------------------------------------------------------------------------------

    def posted(self, kind: ChargeKind | None = None) -> int:
        return sum(
            entry.amount
            for posting in self.postings.values()
            for entry in posting.entries
            if entry.account == "job:j" and kind in (None, posting.kind)
        )

    def owed(self, now: datetime, kind: ChargeKind | None = None) -> int:
        """What was posted, and what still runs up to now."""
        running = (
            ledger.accrued(usage, now)
            for mine in self.usages.values()
            for usage in mine
            if usage.to_at is None and kind in (None, usage.rate.kind)
        )
        return self.posted(kind) + sum(running)

    @property
    def stretches(self) -> int:
        """What the stretches say by themselves."""
        return sum(usage.amount or 0 for mine in self.usages.values() for usage in mine)

    @property
    def balance(self) -> int:
        return sum(entry.amount for posting in self.postings.values() for entry in posting.entries)
