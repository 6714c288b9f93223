"""Events as lines of text."""

from collections.abc import Sequence
from datetime import tzinfo

from crucible.cli import wording
from crucible.cli.table import printable
from crucible.client.shapes import JobEvent


def event_lines(events: Sequence[JobEvent], zone: tzinfo | None = None) -> list[str]:
    return [event_line(event, zone) for event in events]


def event_line(event: JobEvent, zone: tzinfo | None = None) -> str:
    """When, what, why: `2026-01-17 10:00:00.120  pending → scheduled  optimizer_selected_allocation`."""
    parts = [wording.instant(event.get("at"), zone), what(event), event.get("reason") or ""]
    return printable("  ".join(part for part in parts if part))


def what(event: JobEvent) -> str:
    """A change of status, or the name of whatever else was recorded."""
    before, after = event.get("from"), event.get("to")
    if after:
        return f"{before} → {after}" if before else str(after)
    return " ".join(str(part) for part in (event.get("type"), event.get("id")) if part)
