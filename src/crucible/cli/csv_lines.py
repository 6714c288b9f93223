"""Lines for spreadsheets and other programs. They may end up in a terminal all the same: texts are made printable."""

import csv
import io
from collections.abc import Sequence

from crucible.cli.table import printable


def csv_line(cells: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(_cell, cells))
    return line.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    return "" if value is None else value
