"""From notices to messages: what is fresh, with all that says who is to be told; and what is to be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crucible.model.account import Principal
from crucible.model.alert import AlertRule, Delivery
from crucible.model.ids import AlertChannelId, DeliveryId, UserId
from crucible.model.notice import Notice


@dataclass(frozen=True, slots=True)
class Heard:
    """A notice as it is stored, with the name of its job."""

    seq: int
    notice: Notice
    job_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """Notices that nobody was told of, and all that says who is to be. `waiting` are messages that have not been tried
    yet; `last` is the newest message of a channel about a subject. Owners who may no longer sign in are left out."""

    heard: Sequence[Heard]
    rules: Sequence[AlertRule] = ()
    owners: Mapping[UserId, Principal] = field(default_factory=dict)
    waiting: Sequence[Delivery] = ()
    last: Mapping[tuple[AlertChannelId, str], Delivery] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FanOut:
    """Messages that are new or have changed, and which notice is in which."""

    deliveries: tuple[Delivery, ...] = ()
    items: tuple[tuple[DeliveryId, int], ...] = ()
