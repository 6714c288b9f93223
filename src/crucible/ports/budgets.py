"""Budgets in the memory, and what they are held against. Nothing here adds up what is spent of one: it is derived each
time from the ledger, the leases and the orders."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from crucible.model.audit import AuditEntry
from crucible.model.budget import Budget, BudgetId, Posted, Stakes
from crucible.model.ids import JobId
from crucible.model.units import MicroUsd


class BudgetBook(Protocol):
    async def budgets(self) -> Sequence[Budget]:
        """All, by id."""
        ...

    async def budget(self, budget_id: BudgetId) -> Budget:
        """Raises NotFound."""
        ...

    async def save_budget(self, budget: Budget, audit: AuditEntry) -> None:
        """A new one at version 0, else the next version of the one that is there. Raises Conflict if there is one
        already, StaleVersion if somebody else changed it meanwhile."""
        ...

    async def remove_budget(self, budget_id: BudgetId, audit: AuditEntry) -> None:
        """Raises NotFound."""
        ...

    async def stakes(self) -> Stakes:
        """What costs money or may, of everybody. What is free is left out."""
        ...

    async def posted_of(self, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
        """What the ledger holds of each, with all that worked for it."""
        ...

    async def posted_since(self, since: datetime) -> Sequence[Posted]:
        """What the ledger holds of the time from then on: a stretch that lies across is split there, by its own
        rate."""
        ...
