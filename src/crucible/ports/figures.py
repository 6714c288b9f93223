"""Sums over everything that is stored, made beside the work and never in its way."""

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from crucible.model.figures import Figures, Overview, Totals

if TYPE_CHECKING:
    from crucible.ports.store import JobQuery

# Of jobs in one state: nobody reads a larger number, and it stays cheap to tell.
MOST_COUNTED = 10_000


class FigureBook(Protocol):
    async def figures(self, now: datetime) -> Figures: ...

    async def totals(self, now: datetime) -> Totals:
        """Reads every row there ever was: seconds for millions."""
        ...

    async def overview(self, query: "JobQuery") -> Overview:
        """Of the jobs that a query is about, whatever their state: at most MOST_COUNTED of each are counted."""
        ...
