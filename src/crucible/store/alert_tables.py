"""The tables of alerts: rules, channels, messages to them, and which notice is in which message."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table

from crucible.model.alert import AlertChannelKind, DeliveryState
from crucible.model.notice import Severity
from crucible.store.columns import flag, key, known, metadata, moment, partial_index, whole, word

alert_rules = Table(
    "alert_rules",
    metadata,
    key(),
    word("name"),
    word("user_id"),
    word("team", null=True),
    word("kinds"),
    word("least"),
    word("scope"),
    word("price", null=True),
    word("channels"),
    word("quiet", null=True),
    whole("window_s"),
    flag("is_enabled"),
    moment("muted_until", null=True),
    moment("created_at"),
    word("price_seen", null=True),
    whole("version"),
    known("least", Severity),
)

# Where messages go is sealed: whoever reads the table cannot send there.
alert_channels = Table(
    "alert_channels",
    metadata,
    key(),
    word("name"),
    word("user_id"),
    word("team", null=True),
    word("kind"),
    word("shown"),
    word("key_id"),
    word("wrapped"),
    word("sealed"),
    moment("created_at"),
    whole("version"),
    known("kind", AlertChannelKind),
)

deliveries = Table(
    "deliveries",
    metadata,
    key(),
    word("channel_id"),
    word("rule_id"),
    word("subject"),
    word("severity"),
    moment("created_at"),
    moment("not_before"),
    word("state"),
    whole("tries"),
    word("error", null=True),
    moment("ended_at", null=True),
    known("severity", Severity),
    known("state", DeliveryState),
)
Index("ix_deliveries_about", deliveries.c.subject, deliveries.c.channel_id, deliveries.c.created_at)
Index("ix_deliveries_at", deliveries.c.created_at)
partial_index("ix_deliveries_due", deliveries.c.not_before, where="state = 'waiting'")

delivery_notices = Table(
    "delivery_notices",
    metadata,
    key("delivery_id", ForeignKey("deliveries.id")),
    Column("notice_seq", BigInteger, primary_key=True, autoincrement=False),
)
Index("ix_delivery_notices_of_notice", delivery_notices.c.notice_seq)
