"""What `crucible lab` prints for people. Values in, lines out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw, pairs, printable
from crucible.lab.running import Running


def up(running: Running, is_new: bool) -> list[str]:
    word = "is ready" if is_new else "already runs"
    return [
        f"the Lab {word}: {running.url} (pid {running.pid})",
        "",
        "in this shell, from now on:",
        '  eval "$(crucible lab env aws)"',
        "then whatever speaks to Amazon speaks to the Lab:",
        "  aws ec2 describe-spot-price-history --instance-types g5.xlarge --max-items 3",
        "  crucible server start               (crucible server stop first, if one runs)",
        "  crucible offers --provider aws",
        "",
        "crucible lab status shows its machines, crucible lab down ends it",
    ]


def status(value: Mapping[str, Any], width: int | None) -> list[str]:
    counts = value["counts"]
    alive = {state: count for state, count in counts.items() if state != "terminated" and count}
    speed = "" if value["speed"] == 1 else f", {value['speed']:g} times as fast as here"
    lines = pairs(
        [
            ("Lab", f"{value['url']} (pid {value['pid']})"),
            ("Folder", value["data_dir"]),
            ("Time there", f"{clock(value['now'])}{speed}"),
            ("Up for", wording.duration(value["now"] - value["started_at"])),
            ("Regions", ", ".join(value["regions"])),
            ("Machines", f"{_listed(alive) or 'none'}; {counts['terminated']} ended"),
            ("Kept apart", f"as {value['enclosure']}"),
            ("Spot prices", value["prices"]),
            ("Faults", wording.plural(value["faults"], "rule")),
            ("Bill so far", money(value["microusd"])),
        ]
    )
    return [*lines, "", *machines(value["machines"], value["now"], width)] if value["machines"] else lines


def machines(found: Sequence[Mapping[str, Any]], now: float, width: int | None) -> list[str]:
    columns = [Column("MACHINE"), Column("TYPE"), Column("MARKET"), Column("ZONE"), Column("STATE", shrinks=True)]
    columns.append(Column("AGE", is_right=True))
    rows = [
        [one["id"], one["type"], one["market"], one["zone"], _state(one), _age(one["launched_at"], now)]
        for one in found
    ]
    return draw(columns, rows, width)


def events(items: Sequence[Mapping[str, Any]], width: int | None) -> list[str]:
    columns = [Column("N", is_right=True), Column("TIME"), Column("WHAT"), Column("WHOM"), Column("NOTE", shrinks=True)]
    rows = [[str(i["number"]), short(i["at"]), i["what"], i["subject"], i["note"]] for i in items]
    return draw(columns, rows, width) if rows else []


def event_line(item: Mapping[str, Any]) -> str:
    return printable(f"{short(item['at'])}  {item['what']:<16} {item['subject']}  {item['note']}".rstrip())


def console(text: str) -> list[str]:
    """A machine's words must not command the terminal of whoever reads them."""
    return [printable(line) for line in text.expandtabs().splitlines()]


def bill(value: Mapping[str, Any], width: int | None) -> list[str]:
    columns = [
        Column("WHAT"),
        Column("KIND"),
        Column("FROM"),
        Column("FOR", is_right=True),
        Column("COST", is_right=True),
        Column("NOTE", shrinks=True),
    ]
    rows = [
        [
            line["resource"],
            line["kind"],
            short(line["from_at"]),
            wording.duration(line["to_at"] - line["from_at"]),
            money(line["microusd"]),
            line["note"],
        ]
        for line in value["lines"]
    ]
    total = f"{money(value['microusd'])} until {clock(value['until'])} UTC"
    return [*draw(columns, rows, width), "", f"together {total}"] if rows else [f"nothing was bought: {total}"]


def taken(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{one['id']} {'is gone' if one['ended_at'] else 'will be taken at ' + clock(one['taken_at'])}" for one in found
    ]


def rules(found: Sequence[Mapping[str, Any]], width: int | None) -> list[str]:
    columns = [Column("RULE"), Column("STRUCK", is_right=True), Column("ASKED", is_right=True)]
    columns.append(Column("WHAT", shrinks=True))
    rows = [[one["id"], str(one["struck"]), str(one["asked"]), rule_words(one)] for one in found]
    return draw(columns, rows, width) if rows else ["no rules: nothing goes wrong but by chance"]


def rule_words(rule: Mapping[str, Any]) -> str:
    """The kind, then whatever else was said."""
    beside = {name: value for name, value in rule.items() if name not in ("id", "kind", "asked", "struck")}
    for name in ("since", "until"):
        if name in beside:
            beside[name] = clock(beside[name])
    if "seconds" in beside:
        low, high = beside["seconds"]
        beside["seconds"] = f"{low:g}" if low == high else f"{low:g}..{high:g}"
    return " ".join([str(rule["kind"]), *(f"{name}={value}" for name, value in beside.items())])


def clock(at: float | None) -> str:
    """UTC, as clouds tell it."""
    return wording.NONE if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def short(at: float) -> str:
    """Where a table has no room for the year."""
    return clock(at)[5:]


def money(microusd: int) -> str:
    """To the last digit: this is a bill to compare with."""
    return f"${microusd / 1_000_000:,.6f}"


def _age(at: float, now: float) -> str:
    return wording.age(datetime.fromtimestamp(at, UTC).isoformat(), datetime.fromtimestamp(now, UTC))


def _state(one: Mapping[str, Any]) -> str:
    if one["state"] == "terminated":
        return f"{one['state']} by {one['end']}"
    return f"{one['state']}, goes {clock(one['taken_at'])[11:]}" if one["taken_at"] else str(one["state"])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items())
