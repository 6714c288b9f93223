"""The price rows as one file: the same rows give the same bytes, and what is written is read back."""

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import columns
from crucible.catalog.columns import Columns
from crucible.core.offers import make_table
from crucible.model.catalog import InstanceType, Lane, Price
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Market
from crucible.model.units import MicroUsd

TYPES = [
    InstanceType(provider=who, name=name, gpu="L4", gpus=1, gpu_memory_gib=24, cpus=8, memory_gib=32)
    for who in ("aws", "gcp")
    for name in ("small", "large")
]
prices = st.builds(
    Price,
    provider=st.sampled_from(["aws", "gcp"]),
    region=st.sampled_from(["eu", "us", "日本"]),
    zone=st.sampled_from(["", "a", "b"]),
    instance_type=st.sampled_from(["small", "large"]),
    market=st.sampled_from(Market),
    price=st.none() | st.integers(1, 10**12).map(MicroUsd),
    as_of=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    source=st.sampled_from(["a list", "another, with a comma"]),
)
LANES = [Lane(source="aws:eu", target="gcp:us", usd_per_gb=0.09, gbps=None)]


@given(
    rows=st.lists(prices, max_size=20, unique_by=lambda p: (p.provider, p.region, p.zone, p.instance_type, p.market))
)
def test_rows_survive_and_their_bytes_are_always_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Price]
) -> None:
    written = columns.of_table(make_table(TYPES, rows, lanes=LANES))
    folder = tmp_path_factory.mktemp("columns")
    (folder / columns.FILE).write_bytes(columns.write(written))
    again = columns.read(folder)
    assert_same(again, written)
    assert columns.write(again) == columns.write(written)


def test_no_rows_at_all_survive_too(tmp_path: Path) -> None:
    written = columns.of_table(make_table((), ()))
    (tmp_path / columns.FILE).write_bytes(columns.write(written))
    assert_same(columns.read(tmp_path), written)


def test_a_file_without_a_column_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / columns.FILE, price=np.zeros(3))
    with pytest.raises(InvariantBroken, match=r"lacks .*market.* run crucible prices build"):
        columns.read(tmp_path)


def assert_same(one: Columns, other: Columns) -> None:
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)
