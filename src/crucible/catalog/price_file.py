"""A price list that an operator keeps: negotiated prices, tariffs of own machines. A CSV file with a header; a list
with a bad row is refused whole, because a price that is left out would be taken for withdrawn."""

import asyncio
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from crucible.model.catalog import Price
from crucible.model.errors import ProviderError
from crucible.model.offer import Market
from crucible.model.units import MicroUsd
from crucible.ports.prices import PriceKey, key_of

COLUMNS = ("provider", "region", "zone", "instance_type", "market", "price_usd_per_hour", "as_of", "source")
MAX_BYTES = 64 << 20
MAX_ROWS = 200_000
MAX_FIELD = 200  # characters
MAX_PROBLEMS = 10  # that are told at once
# Dearer than any machine: a slip of the decimal point is more likely.
MAX_USD_PER_HOUR = 100_000
MARKETS = {market.name.lower(): market for market in Market} | {"on-demand": Market.ON_DEMAND}


class PriceFile:
    """`now` dates rows without a date: they hold as long as they stand in the file."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self.name = f"file:{path.absolute()}"
        self._path = path
        self._now = now

    async def prices(self) -> Sequence[Price]:
        return await asyncio.to_thread(self._read)

    def _read(self) -> Sequence[Price]:
        try:
            with self._path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
            if len(raw) > MAX_BYTES:
                raise self._refused([f"larger than {MAX_BYTES >> 20} MiB"])
            text = raw.decode("utf-8-sig")
        except OSError as error:
            raise self._refused([f"cannot be read: {error.strerror}"]) from error
        except UnicodeDecodeError as error:
            raise self._refused([f"not UTF-8 text (byte {error.start})"]) from error
        return self._parsed(text)

    def _parsed(self, text: str) -> Sequence[Price]:
        problems: list[str] = []
        found: dict[PriceKey, tuple[int, Price]] = {}
        try:
            for line, row in rows(text):
                self._take(line, row, found, problems)
                if len(problems) >= MAX_PROBLEMS:
                    break
        except BadList as error:
            problems.append(str(error))
        if problems:
            raise self._refused(problems)
        return [price for _, price in found.values()]

    def _take(
        self, line: int, row: dict[str, str], found: dict[PriceKey, tuple[int, Price]], problems: list[str]
    ) -> None:
        try:
            price = self._price(row)
            before = found.setdefault(key_of(price), (line, price))
            if before[0] != line:
                raise BadList(f"the same machine, place and market as line {before[0]}")
        except BadList as error:
            problems.append(f"line {line}: {error}")

    def _price(self, row: dict[str, str]) -> Price:
        for name in ("provider", "region", "instance_type", "market"):
            if not row[name]:
                raise BadList(f"{name} is empty")
        if row["market"].lower() not in MARKETS:
            raise BadList(f"market {row['market']!r} is none of {', '.join(sorted(MARKETS))}")
        return Price(
            provider=row["provider"],
            region=row["region"],
            zone=row["zone"],
            instance_type=row["instance_type"],
            market=MARKETS[row["market"].lower()],
            price=money(row["price_usd_per_hour"]),
            as_of=moment(row["as_of"]) or self._now(),
            source=row["source"] or self._path.name,
        )

    def _refused(self, problems: Sequence[str]) -> ProviderError:
        told = "; ".join(problems)
        return ProviderError(f"the price list {self.name.removeprefix('file:')}: {told}; nothing of it was taken")


class BadList(ValueError):
    """Said with its line by whoever reads."""


def rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with the number of its line; empty lines are nothing."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        check_header(header)
        for count, cells in enumerate(reader):
            if count == MAX_ROWS:
                raise BadList(f"more than {MAX_ROWS} rows")
            if cells:
                yield reader.line_num, named(header, cells, reader.line_num)
    except csv.Error as error:
        raise BadList(f"line {reader.line_num}: not CSV: {error}") from error


def check_header(header: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    unknown = [name for name in header if name not in COLUMNS]
    if missing or unknown or len(header) != len(set(header)):
        wrong = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown) or 'a column twice'}"
        raise BadList(f"line 1 must name the columns {','.join(COLUMNS)}; it {wrong}")


def named(header: Sequence[str], cells: Sequence[str], line: int) -> dict[str, str]:
    if len(cells) != len(header):
        raise BadList(f"line {line}: {len(cells)} fields instead of {len(header)}")
    row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    for name, cell in row.items():
        if len(cell) > MAX_FIELD or not cell.isprintable():
            raise BadList(f"line {line}: {name} is too long or not printable")
    return row


def money(text: str) -> MicroUsd | None:
    """None for an empty field: on offer, but for how much is not said."""
    if not text:
        return None
    try:
        dollars = Decimal(text)
    except InvalidOperation:
        dollars = Decimal("nan")
    if not dollars.is_finite() or not 0 <= dollars <= MAX_USD_PER_HOUR:
        raise BadList(f"price_usd_per_hour {text!r} is not a number from 0 to {MAX_USD_PER_HOUR}")
    return MicroUsd(round(dollars * 1_000_000))


def moment(text: str) -> datetime | None:
    """A date is its first moment; without a zone it is UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadList(f"as_of {text!r} is not a date or time such as 2026-11-01 or 2026-11-01T12:00:00Z") from error
