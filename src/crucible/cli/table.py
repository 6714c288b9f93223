"""Aligned columns of text. Cuts only columns that allow it and only when there is a width to keep: a pipe gets
everything. Drawn by hand because loading a table library costs more than asking the server."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

GAP = "  "
# A cut column keeps at least so much, or it says nothing.
LEAST = 8
ELLIPSIS = "…"

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    is_right: bool = False
    shrinks: bool = False
    paint: Callable[[str], str] | None = None  # colours a cell after its width is settled


def draw(columns: Sequence[Column], rows: Sequence[Row], width: int | None = None) -> list[str]:
    """The lines of the table, header first. `width` None: as wide as it gets."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(_cells(column.title), *(_cells(row[i]) for row in cells), 0) for i, column in enumerate(columns)]
    if width is not None:
        widths = _fit(columns, widths, width)
    header = _line(columns, [column.title for column in columns], widths, is_header=True)
    return [header, *(_line(columns, row, widths) for row in cells)]


def pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    """`Label:   value` lines, aligned. The values are shown as they are: make them printable first."""
    widest = max((_cells(label) for label, _ in rows), default=0) + 1
    return [f"{label + ':':<{widest}}{GAP}{value}" for label, value in rows]


def printable(text: str) -> str:
    """Names come from people and machines: a terminal must not obey them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def cut(text: str, width: int) -> str:
    """At most `width` cells of it, with a mark where something is missing."""
    if _cells(text) <= width:
        return text
    kept, used = "", 0
    for c in text:
        used += _cell(c)
        if used > width - 1:
            break
        kept += c
    return kept + ELLIPSIS


def _fit(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Take from the widest column that may shrink until it fits or nothing is left to take."""
    fitted = list(widths)
    while sum(fitted) + len(GAP) * (len(fitted) - 1) > width:
        spare = [(fitted[i], i) for i, column in enumerate(columns) if column.shrinks and fitted[i] > LEAST]
        if not spare:
            break
        fitted[max(spare)[1]] -= 1
    return fitted


def _line(columns: Sequence[Column], row: Row, widths: Sequence[int], is_header: bool = False) -> str:
    parts = []
    for column, text, width in zip(columns, row, widths, strict=True):
        shown = cut(text, width) if column.shrinks else text
        room = " " * (width - _cells(shown))
        coloured = column.paint(shown) if column.paint and not is_header else shown
        parts.append(room + coloured if column.is_right else coloured + room)
    return GAP.join(parts).rstrip()


def _cells(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(c: str) -> int:
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
