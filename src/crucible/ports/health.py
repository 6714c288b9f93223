"""How jobs and providers are, as it was last found. Written as records of a commit."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from crucible.model.health import Finding, HeldNode, JobHealth, PlaceHealth, SystemFacts
from crucible.model.ids import JobId


class HealthBook(Protocol):
    async def job_healths(self, job_ids: Collection[JobId]) -> Mapping[JobId, JobHealth]:
        """Of those that were ever looked at."""
        ...

    async def open_findings(self, job_ids: Collection[JobId] | None = None) -> Sequence[Finding]:
        """Of these jobs, or of all; by job, then age."""
        ...

    async def findings(self, job_id: JobId, limit: int = 1000) -> Sequence[Finding]:
        """Those that are closed too, the newest first."""
        ...

    async def held_nodes(self, job_ids: Collection[JobId], limit: int = 10_000) -> Sequence[HeldNode]:
        """Nodes of machines that these jobs hold now."""
        ...

    async def place_healths(self) -> Sequence[PlaceHealth]: ...
    async def system_facts(self, heard_after: datetime) -> SystemFacts:
        """Nodes that were not heard after that are silent."""
        ...
