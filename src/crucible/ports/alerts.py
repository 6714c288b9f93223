"""What is kept of alerts: rules and channels, notices, and the messages that were made of them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from crucible.model.alert import AlertChannel, AlertRule, Delivery, PriceSeen, Told
from crucible.model.audit import AuditEntry
from crucible.model.fan_out import FanOut, Fresh
from crucible.model.ids import AlertChannelId, AlertRuleId, DeliveryId, JobId, UserId
from crucible.model.job import Job
from crucible.model.notice import Notice, NoticeKind, Severity

if TYPE_CHECKING:
    from crucible.ports.store import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeQuery:
    """The newest first. `user_id` with `teams`: theirs, and those of these teams; without: everybody's."""

    user_id: UserId | None = None
    teams: Collection[str] = ()
    kinds: Collection[NoticeKind] = ()  # none: all
    severities: Collection[Severity] = ()
    job_id: JobId | None = None
    before: int | None = None  # a number of a notice
    limit: int = 50


class AlertBook(Protocol):
    # --- rules and channels: each change with its line in the log of who changed what ---------------------------
    async def alert_rules(self) -> Sequence[AlertRule]:
        """All, by name."""
        ...

    async def alert_rule(self, rule_id: AlertRuleId) -> AlertRule:
        """Raises NotFound."""
        ...

    async def add_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> None: ...
    async def save_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> AlertRule:
        """As it is now: one version on. Raises StaleVersion. What it has seen of prices stays, unless it waits for
        another one."""
        ...

    async def remove_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> None:
        """Raises StaleVersion."""
        ...

    async def saw_price(self, rule: AlertRule, seen: PriceSeen, notices: Sequence[Notice]) -> bool:
        """One transaction. False, and nothing is written, if another server saw one meanwhile."""
        ...

    async def alert_channels(self) -> Sequence[AlertChannel]: ...
    async def alert_channel(self, channel_id: AlertChannelId) -> AlertChannel:
        """Raises NotFound."""
        ...

    async def save_alert_channel(self, make: Callable[[str | None], AlertChannel], entry: AuditEntry) -> AlertChannel:
        """One transaction: `make` gets the id of the key that seals now, None if there is none yet. What it gives is
        new at version 0, else one version on. Raises StaleVersion."""
        ...

    async def remove_alert_channel(self, channel: AlertChannel, entry: AuditEntry) -> None:
        """Raises StaleVersion; Conflict while a rule sends there."""
        ...

    # --- notices: written as records of a commit -----------------------------------------------------------------
    async def notices(self, query: NoticeQuery) -> Sequence[tuple[int, Notice]]: ...
    async def notice(self, seq: int) -> Notice:
        """Raises NotFound."""
        ...

    async def told(self, seq: int) -> Sequence[Told]:
        """Who was told of a notice, or is going to be."""
        ...

    # --- messages ------------------------------------------------------------------------------------------------
    async def has_fresh_notices(self) -> bool:
        """Cheap to ask."""
        ...

    async def fan_out(self, decide: Callable[[Fresh], FanOut], now: datetime, limit: int, *, claim: "Claim") -> int:
        """One transaction: what `decide` makes of the oldest notices that nobody looked at yet is written. Returns how
        many notices these were. Raises StaleClaim."""
        ...

    async def due_deliveries(
        self, now: datetime, limit: int, *, without: Collection[AlertChannelId] = ()
    ) -> Sequence[Delivery]:
        """To other channels than these. Those that were tried least first, then the oldest: what never arrives keeps
        nothing from arriving."""
        ...

    async def delivery_notices(self, delivery_id: DeliveryId) -> Sequence[Notice]: ...
    async def save_delivery(self, before: Delivery, after: Delivery, *, claim: "Claim") -> None:
        """Raises StaleVersion if it is no longer as `before`, StaleClaim."""
        ...

    async def deadline_jobs(self, after: JobId | None, limit: int) -> Sequence[Job]:
        """Jobs that are not over and have a deadline, by id."""
        ...
