"""Secrets as text: names and facts. There is nothing else to draw."""

from collections.abc import Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.secret_shapes import KeyRotated, Secret

TABLE = (
    Column("NAME", shrinks=True),
    Column("OWNER"),
    Column("VERSION", is_right=True),
    Column("SET BY"),
    Column("SET", is_right=True),
    Column("USED", is_right=True),
)


def secret_table(found: Sequence[Secret], now: datetime, width: int | None) -> list[str]:
    rows = [
        [
            one["name"],
            owner_of(one),
            str(one["version"]),
            one["set_by"],
            wording.age(one["set_at"], now),
            wording.NONE if one["used_at"] is None else wording.age(one["used_at"], now),
        ]
        for one in found
    ]
    return draw(TABLE, rows, width) if rows else []


def owner_of(one: Secret) -> str:
    return f"{one['owner_kind']} {one['owner']}"


def was_set(one: Secret) -> list[str]:
    return [f"{one['name']} of {owner_of(one)}, version {one['version']}"]


def rotated(done: KeyRotated) -> list[str]:
    lines = [f"{wording.plural(done['secrets'], 'secret')} sealed with the key {done['key_id']}"]
    lines += [f"forgot the key {key_id}" for key_id in done["forgotten"]]
    return lines + [f"does not open, set it anew: {name}" for name in done["damaged"]]
