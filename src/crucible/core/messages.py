"""What a message says: the worst first, in plain text. How it looks where it arrives is the channel's."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from crucible.core.alerts import worst_first
from crucible.model.alert import Delivery, Message
from crucible.model.ids import DeliveryId
from crucible.model.notice import Notice, Severity

# Shown of a message; the rest are counted.
MAX_NOTICES = 20
MAX_TEXT = 2000  # characters of each
MAX_TITLE = 200


def compose(delivery: Delivery, notices: Sequence[Notice]) -> Message:
    """Nothing of it changes between two tries."""
    ordered = [shown(one) for one in worst_first(notices)]
    return Message(
        id=delivery.id,
        at=delivery.created_at,
        severity=delivery.severity,
        title=title_of(ordered),
        notices=tuple(ordered[:MAX_NOTICES]),
        more=max(0, len(ordered) - MAX_NOTICES),
    )


def title_of(ordered: Sequence[Notice]) -> str:
    first = ordered[0].title
    return first if len(ordered) == 1 else f"{first}, and {len(ordered) - 1} more"


def shown(notice: Notice) -> Notice:
    """A title becomes the header of a mail: whatever would end a line is a space."""
    title = " ".join(notice.title.split())[:MAX_TITLE]
    return replace(notice, title=title, text=notice.text[:MAX_TEXT])


def a_test(delivery_id: DeliveryId, who: str, now: datetime) -> Message:
    return Message(
        id=delivery_id,
        at=now,
        severity=Severity.INFO,
        title="A test of Crucible's alerts",
        text=f"{who} asked for it to see whether notices arrive here. Nothing is wrong.",
        is_test=True,
    )
