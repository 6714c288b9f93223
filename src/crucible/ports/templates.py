"""Job templates: those that people stored, and those that come with Crucible."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from crucible.model.audit import AuditEntry
from crucible.model.ids import Digest, UserId
from crucible.model.template import StoredTemplate


class TemplateBook(Protocol):
    async def templates(self) -> Sequence[StoredTemplate]:
        """All, by name."""
        ...

    async def template(self, name: str) -> StoredTemplate | None: ...

    async def save_template(
        self, template: StoredTemplate, *, by: UserId | None, audit: AuditEntry | None = None
    ) -> StoredTemplate:
        """As it is now: the last text counts, the first owner stays. Raises Forbidden, and changes nothing, if there is
        one of that name that is not `by`'s; None may change any."""
        ...

    async def remove_template(self, name: str, *, by: UserId | None, audit: AuditEntry | None = None) -> bool:
        """False if there was none. Raises Forbidden as above."""
        ...


@dataclass(frozen=True, slots=True)
class ShippedTemplate:
    """Its text, and its code as a package with the name of that."""

    text: str
    package: Callable[[], tuple[Digest, bytes]]
