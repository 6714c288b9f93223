"""Alerts as text. Pure: what is shown is a function of what was read."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from crucible.cli import wording
from crucible.cli.table import Column, draw, printable
from crucible.client.alert_shapes import AlertChannel, AlertRule, Delivery, Notice, PriceWish

RULES = (
    Column("NAME"),
    Column("WHOSE"),
    Column("ABOUT", shrinks=True),
    Column("OF", shrinks=True),
    Column("TO", shrinks=True),
    Column("STATE"),
)
CHANNELS = (Column("NAME"), Column("WHOSE"), Column("KIND"), Column("TO", shrinks=True), Column("ID"))
NOTICES = (
    Column("NO", is_right=True),
    Column("AT"),
    Column("SEVERITY"),
    Column("KIND"),
    Column("TITLE", shrinks=True),
    Column("TOLD", shrinks=True),
)


def rule_table(
    rules: Sequence[AlertRule], channels: Sequence[AlertChannel], now: datetime, width: int | None
) -> list[str]:
    names = {one["id"]: one["name"] for one in channels}
    rows = [
        [
            one["name"],
            whose(one["user"], one["team"]),
            about(one),
            scope(one),
            ", ".join(names.get(channel, channel) for channel in one["channels"]),
            state(one, now),
        ]
        for one in rules
    ]
    return draw(RULES, rows, width) if rows else []


def whose(user: str, team: str | None) -> str:
    return user if team is None else f"team {team}"


def about(rule: AlertRule) -> str:
    said = [", ".join(rule["kinds"]) or "all"]
    said += [f"{rule['least']} on"] if rule["least"] != "info" else []
    said += [wish(rule["price"])] if rule["price"] else []
    quiet = rule["quiet"]
    said += [f"quiet {quiet['start']}-{quiet['end']} {quiet['time_zone']}"] if quiet else []
    return "; ".join(said)


def wish(price: PriceWish) -> str:
    said = [f"below {wording.money(price['below_usd'])}"] if price["below_usd"] is not None else []
    said += [f"down {price['drop']:.0%}"] if price["drop"] is not None else []
    where = [word for word in (price["market"], price["provider"]) if word]
    return " ".join([price["gpu"], *where, " or ".join(said)])


def scope(rule: AlertRule) -> str:
    kind, name = rule["scope"]["kind"], rule["scope"]["name"]
    return "everything" if kind == "server" else f"{kind} {name}"


def state(rule: AlertRule, now: datetime) -> str:
    if not rule["enabled"]:
        return "off"
    muted = wording.moment(rule["muted_until"])
    if muted is None or muted <= now:
        return "on"
    return f"muted for {wording.duration((muted - now).total_seconds())}"


def channel_table(channels: Sequence[AlertChannel], width: int | None) -> list[str]:
    rows = [[one["name"], whose(one["user"], one["team"]), one["kind"], one["to"], one["id"]] for one in channels]
    return draw(CHANNELS, rows, width) if rows else []


def history(
    notices: Sequence[Notice], told: Mapping[int, Sequence[Delivery]], width: int | None, zone: tzinfo | None = None
) -> list[str]:
    rows = [
        [
            str(one["seq"]),
            wording.clock(one["at"], zone),
            one["severity"],
            one["kind"],
            printable(one["title"]),
            ", ".join(delivered(each) for each in told.get(one["seq"], ())) or wording.NONE,
        ]
        for one in notices
    ]
    return draw(NOTICES, rows, width) if rows else []


def delivered(one: Delivery) -> str:
    if one["state"] == "sent":
        return one["channel"]
    if one["state"] == "dead":
        return f"not {one['channel']}: {printable(one['error'] or '')}"
    if one["tries"] == 0:
        return f"{one['channel']} soon"
    return f"{one['channel']} after {one['tries']} tries: {printable(one['error'] or 'under way')}"
