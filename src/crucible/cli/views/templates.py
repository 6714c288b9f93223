"""Job templates as text. Pure: what is shown is a function of what was read."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw, pairs, printable
from crucible.client.template_shapes import Template

TABLE = (Column("NAME"), Column("USER"), Column("PARAMETERS", is_right=True), Column("DESCRIPTION", shrinks=True))
PARAMETERS = (
    Column("PARAMETER"),
    Column("TYPE"),
    Column("DEFAULT", shrinks=True),
    Column("BOUNDS", shrinks=True),
    Column("MEANING", shrinks=True),
)
REQUIRED = "required"


def template_table(found: Sequence[Template], width: int | None) -> list[str]:
    rows = [
        [
            one["name"],
            one["user"] or wording.NONE,
            str(len(one["parameters"])),
            one["description"] or f"cannot be read: {one['problem']}",
        ]
        for one in found
    ]
    return draw(TABLE, rows, width) if rows else []


def template_page(name: str, description: str, parameters: Sequence[Mapping[str, Any]], width: int | None) -> list[str]:
    head = pairs([("Template", name), ("Does", printable(description))])
    rows = [
        [
            one["name"],
            one["type"],
            REQUIRED if one["required"] else value(one["default"]),
            bounds(one),
            one["doc"] or wording.NONE,
        ]
        for one in parameters
    ]
    return [*head, "", *draw(PARAMETERS, rows, width)] if rows else head


def value(given: Any) -> str:
    """As it would be typed."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float):
        return repr(given).removesuffix(".0")
    return str(given) if given != "" else '""'


def bounds(one: Mapping[str, Any]) -> str:
    least, most = one["least"], one["most"]
    if one["choices"]:
        return ", ".join(one["choices"])
    if least is not None and most is not None:
        return f"{value(least)} to {value(most)}"
    if least is not None:
        return f"at least {value(least)}"
    return wording.NONE if most is None else f"at most {value(most)}"
