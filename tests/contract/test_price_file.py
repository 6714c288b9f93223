"""The price list of an operator keeps the contract of a price source, and refuses what it cannot read."""

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crucible.catalog import price_file
from crucible.catalog.price_file import COLUMNS, PriceFile
from crucible.model.catalog import Price
from crucible.model.errors import ProviderError
from crucible.model.offer import Market
from crucible.ports.prices import Prices
from crucible.testing.prices_contract import PricesContract

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
HEADER = ",".join(COLUMNS)
GOOD = f"""{HEADER}
aws,us-east-1,,p5.48xlarge,on-demand,41.50,2026-10-01,contract 17
aws,us-east-1,us-east-1a,p5.48xlarge,spot,12.3456789,2026-10-01T06:00:00+02:00,contract 17

onprem,berlin,,dgx-a100,reserved,0,,
onprem,berlin,,dgx-h100,RESERVED,,2026-10-01T00:00:00Z,tariff
"""


def listed(tmp_path: Path, text: str | bytes) -> PriceFile:
    path = tmp_path / "prices.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PriceFile(path, lambda: NOW)


def read(source: Prices) -> Sequence[Price]:
    return asyncio.run(source.prices())


def refusal(source: Prices) -> str:
    with pytest.raises(ProviderError) as caught:
        read(source)
    return caught.value.message


class TestPriceFile(PricesContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Prices:
        return listed(tmp_path, GOOD)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Prices:
        return PriceFile(tmp_path / "absent.csv", lambda: NOW)


def test_a_list_is_read_to_the_micro_dollar(tmp_path: Path) -> None:
    on_demand, spot, free, unknown = read(listed(tmp_path, GOOD))
    assert on_demand == Price(
        provider="aws",
        region="us-east-1",
        zone="",
        instance_type="p5.48xlarge",
        market=Market.ON_DEMAND,
        price=41_500_000,
        as_of=datetime(2026, 10, 1, tzinfo=UTC),
        source="contract 17",
    )
    assert (spot.price, spot.as_of) == (12_345_679, datetime(2026, 10, 1, 4, tzinfo=UTC))
    assert (free.price, unknown.price) == (0, None)


def test_a_row_without_a_date_holds_as_long_as_it_stands_there(tmp_path: Path) -> None:
    free = read(listed(tmp_path, GOOD))[2]
    assert (free.as_of, free.source) == (NOW, "prices.csv")


def test_a_byte_order_mark_and_other_line_ends_are_no_trouble(tmp_path: Path) -> None:
    assert len(read(listed(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))) == 4


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("aws,r,,t,spot,-1,,", r"line 3: price_usd_per_hour '-1' is not a number from 0"),
        ("aws,r,,t,spot,nan,,", r"line 3: price_usd_per_hour 'nan'"),
        ("aws,r,,t,spot,1e9,,", r"line 3: price_usd_per_hour '1e9'"),
        ("aws,r,,t,spot,cheap,,", r"line 3: price_usd_per_hour 'cheap'"),
        ("aws,r,,t,rented,1,,", r"line 3: market 'rented' is none of on-demand"),
        ("aws,r,,,spot,1,,", r"line 3: instance_type is empty"),
        ("aws,r,,t,spot,1,yesterday,", r"line 3: as_of 'yesterday' is not a date"),
        ("aws,r,,t,spot,1,0001-01-01T00:00:00+23:00,", r"line 3: as_of .* is not a date"),
        ("aws,r,,t,spot,1", r"line 3: 6 fields instead of 8"),
        ("aws,r,,a\x1bb,spot,1,,", r"line 3: instance_type is too long or not printable"),
        (f"aws,r,,{'x' * 300},spot,1,,", r"line 3: instance_type is too long"),
        ('aws,r,,"t,spot,1,,', r"line 3: not CSV"),
        ("aws,us-east-1,,p5,on_demand,2,,", r"line 3: the same machine, place and market as line 2"),
    ],
)
def test_a_bad_row_refuses_the_list_and_names_its_line(tmp_path: Path, row: str, words: str) -> None:
    said = refusal(listed(tmp_path, f"{HEADER}\naws,us-east-1,,p5,on-demand,1,,\n{row}\n"))
    assert re.search(words, said), said
    assert "nothing of it was taken" in said and "prices.csv" in said


def test_every_bad_row_is_told_up_to_a_limit(tmp_path: Path) -> None:
    said = refusal(listed(tmp_path, HEADER + "\n" + "aws,r,,t,spot,x,,\n" * 50))
    assert "line 2:" in said and "line 11:" in said and "line 12:" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 must name the columns provider,region"),
        ("provider,region\n", "it lacks zone, instance_type"),
        (f"{HEADER},discount\n", "it has discount"),
        (f"{HEADER},zone\n", "a column twice"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    assert words in refusal(listed(tmp_path, text))


def test_a_list_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_file, "MAX_ROWS", 2)
    assert "more than 2 rows" in refusal(listed(tmp_path, GOOD))
    monkeypatch.setattr(price_file, "MAX_BYTES", 100)
    assert "larger than" in refusal(listed(tmp_path, GOOD))


def test_a_folder_is_not_a_list(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(PriceFile(tmp_path, lambda: NOW))
