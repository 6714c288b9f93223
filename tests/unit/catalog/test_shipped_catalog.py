"""What is shipped: complete, dated, sourced, and the same as what its parts give."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from crucible import catalog
from crucible.catalog import Catalog
from crucible.core.offers import make_table
from crucible.model.catalog import InstanceType
from crucible.model.offer import Fabric, Market


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return catalog.load()


@pytest.fixture(scope="module")
def types(shipped: Catalog) -> dict[tuple[str, str], InstanceType]:
    return {(kind.provider, kind.name): kind for kind in shipped.types()}


def test_the_table_is_what_its_parts_give(shipped: Catalog) -> None:
    made = make_table(shipped.types(), shipped.prices(), shipped.billing(), shipped.hazards(), shipped.lanes())
    assert_same(made, shipped.table)


def assert_same(one: object, other: object) -> None:
    for field in fields(one):  # type: ignore[arg-type]
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, field.name
            np.testing.assert_array_equal(left, right, err_msg=field.name)
        elif hasattr(left, "__dataclass_fields__"):
            assert_same(left, right)
        else:
            assert left == right, field.name


def test_offers_stand_in_the_order_of_their_ids(shipped: Catalog) -> None:
    ids = [shipped.table.id_of(row) for row in range(0, len(shipped), 7)]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)


def test_every_price_says_where_and_when_it_is_from(shipped: Catalog) -> None:
    for price in shipped.prices():
        assert price.region and price.source
        assert price.price is None or price.price > 0
    assert shipped.as_of == max(price.as_of for price in shipped.prices() if price.price is not None)


def test_every_gpu_on_sale_is_described_and_its_memory_is_that_of_one(shipped: Catalog) -> None:
    for kind in shipped.types():
        assert kind.gpu is not None
        assert shipped.gpus[kind.gpu].name == kind.gpu
        assert shipped.gpus[kind.gpu].memory_gib == kind.gpu_memory_gib
        assert kind.gpus >= 1 and kind.cpus > 0 and kind.memory_gib > 0


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("A100", "A100-40GB"),
        ("A100-80GB", "A100-80GB"),
        ("H100", "H100-PCIe"),
        ("H200", "H200-SXM"),
        ("V100", "V100-16GB"),
        ("A6000", "RTXA6000"),
        ("A100-80GB-SXM", "A100-80GB"),
        ("RTXPRO6000", "RTXPRO6000"),
    ],
)
def test_a_gpu_is_found_by_its_family_and_other_spellings(shipped: Catalog, written: str, meant: str) -> None:
    assert shipped.gpus[written].name == meant


@pytest.mark.parametrize(
    ("provider", "name", "gpu", "gpus"),
    [
        ("azure", "Standard_ND96isr_H100_v5", "H100-SXM", 8),  # a public list says 12
        ("azure", "Standard_NC24ads_A100_v4", "A100-80GB-PCIe", 1),
        ("aws", "p4d.24xlarge", "A100-40GB", 8),
        ("aws", "p5en.48xlarge", "H200-SXM", 8),  # a public list says 80 GB each
        ("gcp", "a3-megagpu-8g", "H100-SXM", 8),
        ("gcp", "n1-standard-8+T4x1", "T4", 1),
        ("lambda", "gpu_1x_h100_pcie", "H100-PCIe", 1),
        ("runpod", "8x_B200_SECURE", "B200", 8),
        ("modal", "H100-SXM:8", "H100-SXM", 8),
    ],
)
def test_known_errors_of_the_lists_are_corrected(
    types: dict[tuple[str, str], InstanceType], provider: str, name: str, gpu: str, gpus: int
) -> None:
    assert (types[provider, name].gpu, types[provider, name].gpus) == (gpu, gpus)


def test_a_spot_price_that_repeats_the_list_price_is_no_spot_price(shipped: Catalog) -> None:
    spot = {price.provider for price in shipped.prices() if price.market is Market.SPOT}
    assert spot == {"aws", "azure", "gcp"}


def test_what_is_sold_only_as_spot_has_no_invented_price(shipped: Catalog) -> None:
    assert {price.market for price in shipped.prices() if price.instance_type == "p5e.48xlarge"} == {Market.SPOT}


def test_where_nobody_states_a_price_it_is_unknown(shipped: Catalog) -> None:
    prices = [price for price in shipped.prices() if price.provider in ("alibaba", "tencent")]
    assert prices and all(price.price is None and price.market is Market.ON_DEMAND for price in prices)


def test_a_google_machine_costs_more_than_its_gpus(shipped: Catalog) -> None:
    prices = {p.instance_type: p.price for p in shipped.prices() if p.zone == "us-central1-a" and p.market == 0}
    assert prices["a2-highgpu-8g"] is not None and prices["a2-highgpu-8g"] > 8 * 2_900_000  # what the A100s cost alone


def test_later_checks_of_prices_are_in_use(shipped: Catalog) -> None:
    found = {
        (price.price, price.as_of.date().isoformat())
        for price in shipped.prices()
        if (price.provider, price.region, price.instance_type, price.market) == ("aws", "us-east-1", "p5.48xlarge", 0)
    }
    assert found == {(55_040_000, "2026-11-09")}


def test_only_machines_with_rdma_have_the_high_fabric(shipped: Catalog) -> None:
    high = {kind.name for kind in shipped.types() if kind.fabric is Fabric.HIGH}
    assert {"p4d.24xlarge", "p5.48xlarge", "a3-megagpu-8g", "Standard_ND96isr_H100_v5"} <= high
    assert not high & {"g5.48xlarge", "a2-highgpu-8g", "8x_H100-SXM_SECURE", "gpu_8x_h100_sxm5"}
    assert all(kind.network_gbps and kind.network_gbps >= 100 for kind in shipped.types() if kind.name in high)


def test_clusters_are_as_large_as_their_provider_allows(shipped: Catalog) -> None:
    limits = {rule.provider: rule.max_nodes for rule in shipped.billing()}
    assert {name: limits.pop(name) for name in ("aws", "gcp", "azure", "onprem", "local")} == {
        "aws": 16,
        "gcp": 32,
        "azure": 16,
        "onprem": 100,
        "local": 100,
    }
    assert set(limits.values()) == {8}
    assert {kind.provider for kind in shipped.types()} <= {rule.provider for rule in shipped.billing()}


def test_only_what_can_be_taken_away_has_a_risk(shipped: Catalog) -> None:
    table = shipped.table
    is_spot = table.market == Market.SPOT
    assert (table.hazard[~is_spot] == 0).all() and np.isnan(table.availability[~is_spot]).all()
    known = table.hazard[is_spot & ~np.isnan(table.hazard)]
    assert len(known) > 2000 and (known > 0).all()


def test_an_unknown_risk_stays_unknown(shipped: Catalog) -> None:
    table = shipped.table
    sellers = table.shapes.seller[table.shape[np.isnan(table.hazard)]]
    assert {table.sellers.name[seller] for seller in sellers} == {"azure"}


def test_an_estimate_lies_in_its_interval(shipped: Catalog) -> None:
    for hazard in shipped.hazards():
        assert 0 < hazard.low < hazard.per_hour < hazard.high
        assert hazard.availability is None or 0 < hazard.availability < 1


def test_staying_in_a_region_is_free(shipped: Catalog) -> None:
    places = shipped.table.places
    assert (np.diagonal(places.usd_per_gb) == 0).all()


def test_the_page_explains_every_method_and_counts_what_is_there(shipped: Catalog) -> None:
    page = (Path(__file__).parents[3] / "docs/catalog.md").read_text(encoding="utf-8")
    for method in {hazard.method for hazard in shipped.hazards()}:
        assert f"\n### {method}\n" in page
    assert f"{len(shipped):,} prices of {len(shipped.types())} machine types" in page
