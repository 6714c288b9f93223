"""Alerts: who is told of what, where and when."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crucible.cli import wording
from crucible.cli.options import example, with_output
from crucible.cli.output import Out
from crucible.model.errors import NotFound

if TYPE_CHECKING:
    from crucible.client.alert_shapes import AlertChannel, AlertRule

KINDS = ("budget", "failure", "stall", "deadline", "price", "provider", "leak")
SCOPES = ("team", "project", "user", "job")
CHANNEL_KINDS = ("email", "slack", "webhook", "apprise")
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_QUIET = re.compile(r"([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2})")

One = TypeVar("One", "AlertRule", "AlertChannel")


def span_of(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    found = None if value is None else _SPAN.fullmatch(value)
    if value is not None and found is None:
        raise click.BadParameter("write 30s, 5m, 2h or 1d")
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def scope_of(context: click.Context, option: click.Parameter, value: str | None) -> dict[str, str] | None:
    kind, colon, name = (value or "").partition(":")
    if value is not None and (kind not in SCOPES or not colon or not name):
        raise click.BadParameter("write team:NAME, project:NAME, user:NAME or job:PATTERN")
    return None if value is None else {"kind": kind, "name": name}


def kinds_of(context: click.Context, option: click.Parameter, value: str) -> list[str]:
    words = [word.strip() for word in value.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise click.BadParameter(f"there is no kind {word}; there are {', '.join(KINDS)}")
    return words


def quiet_of(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, str] | None:
    found = None if value is None else _QUIET.fullmatch(value)
    if value is not None and found is None:
        raise click.BadParameter("write 22:00-07:00")
    return None if found is None else (found[1], found[2])


def share_of(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise click.BadParameter("write 20%")
    return share


@click.group(
    epilog=example(
        "crucible alert channel add me email ann@example.org",
        "crucible alert test me",
        "crucible alert add failures --kind failure,deadline --to me",
        "crucible alert add cheap --gpu H100 --below 2.00 --to me",
        "crucible alert history",
    )
)
def alert() -> None:
    """Who is told of failures, budgets, prices and more; by mail, Slack or webhook.

    A channel is a place that notices go to; a rule says which notices go there, and when."""


@alert.command("ls", epilog=example("crucible alert ls", "crucible alert ls -o json"))
@with_output
def list_rules(out: Out) -> None:
    """Rules: yours and your teams'."""
    from crucible.cli.session import connect
    from crucible.cli.views.alerts import rule_table

    with connect(out) as client:
        rules, channels = client.alert_rules(), client.alert_channels()
    out.show({"items": rules}, lambda: rule_table(rules, channels, datetime.now(UTC), out.width))
    if not rules and not out.is_for_programs:
        out.note("no rules: crucible alert add --help shows how to make one")


@alert.command(
    epilog=example(
        "crucible alert add failures --kind failure --to me",
        "crucible alert add night --of job:'train-*' --quiet-hours 22:00-07:00 --zone Europe/Berlin --to me",
        "crucible alert add money --kind budget --team vision --to vision-slack",
        "crucible alert add cheap --gpu H100 --spot --below 2.00 --drop 20% --to me",
    )
)
@click.argument("name")
@click.option("--to", "to", multiple=True, required=True, metavar="CHANNEL", help="Where to; may be given again.")
@click.option(
    "--kind",
    "kinds",
    default="",
    callback=kinds_of,
    metavar="KINDS",
    help=f"With commas: {', '.join(KINDS)}.  [default: all]",
)
@click.option("--least", type=click.Choice(("info", "warning", "critical")), default="info", show_default=True)
@click.option("--of", "scope", callback=scope_of, metavar="SCOPE", help="team:, project:, user:NAME or job:PATTERN.")
@click.option("--team", metavar="NAME", help="A rule of this team, which its managers keep.")
@click.option("--gpu", metavar="GPU", help="Tell when this GPU becomes cheap, with --below, --drop or both.")
@click.option("--below", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="One GPU for an hour.")
@click.option("--drop", callback=share_of, metavar="PERCENT", help="Cheaper by so much than it was.")
@click.option("--provider", metavar="NAME", help="Of this one only.")
@click.option("--spot/--on-demand", "is_spot", default=None, help="Of this market only.")
@click.option("--quiet-hours", "hours", callback=quiet_of, metavar="FROM-TO", help="Wait until these end.")
@click.option("--zone", default="UTC", show_default=True, metavar="ZONE", help="Of the quiet hours: Europe/Berlin.")
@click.option("--hold-critical", is_flag=True, help="Critical ones wait for the end of quiet hours too.")
@click.option(
    "--window", callback=span_of, default="5m", show_default=True, help="What is about the same waits so long."
)
@with_output
def add(out: Out, name: str, to: tuple[str, ...], **given: Any) -> None:
    """Make a rule: which notices go to which channels."""
    from crucible.cli.session import connect
    from crucible.cli.views.alerts import rule_table

    with connect(out) as client:
        channels = client.alert_channels()
        ids = [found(channels, word, "channel")["id"] for word in to]
        made = client.add_alert_rule({"name": name, "channels": ids, **wished(given)})
    out.show(made, lambda: rule_table([made], channels, datetime.now(UTC), out.width))


def wished(given: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a new rule, without its name and channels."""
    body = {"kinds": given["kinds"], "least": given["least"], "window_s": given["window"]}
    body |= {name: given[name] for name in ("scope", "team") if given[name] is not None}
    if given["hours"] is not None:
        start, end = given["hours"]
        passes = not given["hold_critical"]
        body["quiet"] = {"start": start, "end": end, "time_zone": given["zone"], "critical_passes": passes}
    if given["gpu"] is not None:
        body["kinds"] = sorted({*given["kinds"], "price"})
        body["price"] = price_wish(given)
    elif given["below"] is not None or given["drop"] is not None:
        raise click.UsageError("say which GPU: --gpu H100")
    return body


def price_wish(given: Mapping[str, Any]) -> dict[str, Any]:
    market = None if given["is_spot"] is None else "spot" if given["is_spot"] else "on_demand"
    return {
        "gpu": given["gpu"],
        "provider": given["provider"] or "",
        "market": market,
        "below_usd": given["below"],
        "drop": given["drop"],
    }


@alert.command(epilog=example("crucible alert rm failures"))
@click.argument("names", metavar="RULE...", nargs=-1, required=True)
@with_output
def rm(out: Out, names: tuple[str, ...]) -> None:
    """Remove rules. Messages that are on their way still go out."""
    from crucible.cli.session import connect

    with connect(out) as client:
        rules = [found(client.alert_rules(), name, "rule") for name in names]
        for one in rules:
            client.remove_alert_rule(one["id"])
    out.show({"removed": [one["id"] for one in rules]}, lambda: [f"removed {one['name']}" for one in rules])


@alert.command(epilog=example("crucible alert mute failures 2h", "crucible alert mute failures --off"))
@click.argument("name", metavar="RULE")
@click.argument("span", metavar="SPAN", required=False, callback=span_of)
@click.option("--off", is_flag=True, help="No longer.")
@with_output
def mute(out: Out, name: str, span: int | None, off: bool) -> None:
    """Keep a rule silent for a while: 30m, 2h, 1d. What it would have told is in the history."""
    from crucible.cli.session import connect

    if off == (span is not None):
        raise click.UsageError("say for how long, as in `crucible alert mute RULE 2h`, or --off")
    until = None if span is None else (datetime.now(UTC) + timedelta(seconds=span)).isoformat()
    with connect(out) as client:
        rule = found(client.alert_rules(), name, "rule")
        after = client.change_alert_rule(rule["id"], {"muted_until": until})
    words = f"{name} speaks again" if off else f"{name} is silent until {wording.clock(after['muted_until'])}"
    out.show(after, lambda: [words])


@alert.command(epilog=example("crucible alert test me"))
@click.argument("name", metavar="CHANNEL")
@with_output
def test(out: Out, name: str) -> None:
    """Send a message to a channel now, and say whether it was taken."""
    from crucible.cli.session import connect

    with connect(out) as client:
        channel = found(client.alert_channels(), name, "channel")
        sent = client.test_alert_channel(channel["id"])
    out.show({"channel": channel["id"], "delivery": sent}, lambda: [f"{channel['to']} took the message {sent}"])


@alert.command(epilog=example("crucible alert history", "crucible alert history --kind failure -n 5 -o json"))
@click.option("-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@click.option("--kind", "kinds", default="", callback=kinds_of, metavar="KINDS", help="With commas.")
@click.option("--job", metavar="JOB", help="Of one job, by its id.")
@with_output
def history(out: Out, limit: int, kinds: list[str], job: str | None) -> None:
    """What there was to hear, the newest first, and who was told."""
    from crucible.cli.session import connect
    from crucible.cli.views import alerts as views

    with connect(out) as client:
        page = client.notices(kind=",".join(kinds) or None, job=job, limit=limit)
        told = {one["seq"]: client.notice_deliveries(one["seq"]) for one in page["items"]}
    items = [{**one, "deliveries": told[one["seq"]]} for one in page["items"]]
    out.show({"items": items}, lambda: views.history(page["items"], told, out.width))
    if not items and not out.is_for_programs:
        out.note("nothing happened that you should hear of")


# --- channels -----------------------------------------------------------------------------------------------------


@alert.group(
    epilog=example(
        "crucible alert channel add me email ann@example.org",
        "crucible alert channel add vision-slack slack - --team vision < slack-url.txt",
        "crucible alert channel add hook webhook https://example.org/crucible",
    )
)
def channel() -> None:
    """Places that notices go to: add, list, remove, rotate the secret of."""


@channel.command("ls", epilog=example("crucible alert channel ls"))
@with_output
def list_channels(out: Out) -> None:
    """Yours and your teams'. Of addresses that are secrets only the host is shown."""
    from crucible.cli.session import connect
    from crucible.cli.views.alerts import channel_table

    with connect(out) as client:
        channels = client.alert_channels()
    out.show({"items": channels}, lambda: channel_table(channels, out.width))
    if not channels and not out.is_for_programs:
        out.note("no channels: crucible alert channel add --help shows how to make one")


@channel.command(
    "add",
    epilog=example(
        "crucible alert channel add me email ann@example.org,bob@example.org",
        "crucible alert channel add chat slack - < slack-url.txt",
        "crucible alert channel add hook webhook https://example.org/crucible",
        "crucible alert channel add phone apprise - < pushover-url.txt",
    ),
)
@click.argument("name")
@click.argument("kind", type=click.Choice(CHANNEL_KINDS))
@click.argument("address", metavar="ADDRESS|-")
@click.option("--team", metavar="NAME", help="A channel of this team, which its managers keep.")
@with_output
def add_channel(out: Out, name: str, kind: str, address: str, team: str | None) -> None:
    """Make a channel. An address that is a secret, as Slack's is, is better read from a file: write - for it.

    A webhook gets a secret that signs what is sent there; it is printed this once."""
    from crucible.cli.session import connect
    from crucible.cli.views.alerts import channel_table

    given = sys.stdin.read().strip() if address == "-" else address
    body = {"name": name, "kind": kind, "address": given, **({} if team is None else {"team": team})}
    with connect(out) as client:
        made = client.add_alert_channel(body)
    out.show(made, lambda: [*channel_table([made], out.width), *secret_line(made["secret"])])


@channel.command("rm", epilog=example("crucible alert channel rm chat"))
@click.argument("names", metavar="CHANNEL...", nargs=-1, required=True)
@with_output
def remove_channel(out: Out, names: tuple[str, ...]) -> None:
    """Remove channels that no rule sends to any more."""
    from crucible.cli.session import connect

    with connect(out) as client:
        channels = [found(client.alert_channels(), name, "channel") for name in names]
        for one in channels:
            client.remove_alert_channel(one["id"])
    out.show({"removed": [one["id"] for one in channels]}, lambda: [f"removed {one['name']}" for one in channels])


@channel.command(epilog=example("crucible alert channel rotate hook"))
@click.argument("name", metavar="CHANNEL")
@with_output
def rotate(out: Out, name: str) -> None:
    """A new secret for a webhook, printed this once. The last one signs too, until it is rotated again."""
    from crucible.cli.session import connect

    with connect(out) as client:
        one = found(client.alert_channels(), name, "channel")
        made = client.rotate_alert_channel(one["id"])
    out.show(made, lambda: secret_line(made["secret"]))


def secret_line(secret: str | None) -> list[str]:
    return [] if secret is None else [f"secret {secret}"]


def found(many: "Sequence[One]", word: str, what: str) -> "One":
    """By its name or its id."""
    fitting = [one for one in many if word in (one["name"], one["id"])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ids = ", ".join(one["id"] for one in fitting)
        raise click.UsageError(f"several are called {word}: say which by its id ({ids})")
    command = "crucible alert ls" if what == "rule" else "crucible alert channel ls"
    raise NotFound(f"there is no {what} {word}; `{command}` lists them")
