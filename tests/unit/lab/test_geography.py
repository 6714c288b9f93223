"""The Lab's world is the catalog's: what plans are made from is what the Lab sells."""

import pytest

from crucible import catalog
from crucible.catalog import Catalog
from crucible.lab import geography
from crucible.lab.geography import QUOTA, zone_of
from crucible.model.errors import InvalidRequest
from crucible.model.offer import Market
from crucible.world.facts import Facts, PricePoint

ACCOUNT = "123456789012"


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return catalog.load()


@pytest.fixture(scope="module")
def facts(shipped: Catalog) -> Facts:
    return geography.facts(
        shipped,
        ["us-east-1", "us-west-2"],
        ACCOUNT,
        lambda zone, type, price: (PricePoint(0, price),),
        boot_scale=0.5,
        hazard=2.0,
    )


def test_every_price_of_the_catalog_is_on_sale_at_that_price(shipped: Catalog, facts: Facts) -> None:
    ids = {zone.name: zone.id for zone in facts.zones}
    sales = {(ids[sale.zone], sale.type): sale for sale in facts.sales}
    asked = [
        price
        for price in shipped.prices()
        if price.provider == "aws" and price.region in ("us-east-1", "us-west-2") and price.price is not None
    ]
    limited = {(price.region, price.instance_type) for price in asked if price.market is Market.ON_DEMAND}
    asked = [price for price in asked if (price.region, price.instance_type) in limited]
    assert len(asked) > 500
    for price in asked:
        sale = sales[price.zone, price.instance_type]
        if price.market is Market.SPOT:
            assert sale.spot == (PricePoint(0, price.price),)
        else:
            assert sale.on_demand == price.price


def test_types_have_what_the_catalog_says(facts: Facts) -> None:
    types = {kind.name: kind for kind in facts.types}
    big, small = types["p5.48xlarge"], types["g4dn.xlarge"]
    assert (big.gpus, big.gpu, big.quota, big.has_fast_fabric, big.vcpus) == (8, "H100-SXM", "p", True, 192)
    assert (small.gpus, small.quota, small.has_fast_fabric, small.memory_mib) == (1, "g", False, 16 * 1024)


def test_hazards_boots_and_minimum_follow_what_was_asked(shipped: Catalog, facts: Facts) -> None:
    usual = geography.facts(shipped, ["us-east-1"], ACCOUNT, lambda *_: ())
    place = {(sale.zone, sale.type): sale for sale in facts.sales}
    twice = [(place[sale.zone, sale.type].hazard_per_hour, sale.hazard_per_hour) for sale in usual.sales]
    assert any(hazard for _, hazard in twice)
    assert all(doubled == pytest.approx(2 * hazard) for doubled, hazard in twice)
    assert facts.boot_s == (usual.boot_s[0] / 2, usual.boot_s[1] / 2)
    assert facts.terms.minimum_s == 60
    assert facts.accounts[0].default_quota == QUOTA


@pytest.mark.parametrize(
    ("zone_id", "region", "name"),
    [
        ("use1-az1", "us-east-1", "us-east-1a"),
        ("usw2-az4", "us-west-2", "us-west-2d"),
        ("usw2-lax1-az2", "us-west-2", "us-west-2-lax-1b"),
        ("somewhere", "us-west-2", "somewhere"),
    ],
)
def test_zones_have_letters(zone_id: str, region: str, name: str) -> None:
    assert zone_of(zone_id, region).name == name


def test_no_two_zones_share_a_name(shipped: Catalog) -> None:
    everywhere = geography.facts(shipped, geography.known_regions(shipped), ACCOUNT, lambda *_: ())
    names = [zone.name for zone in everywhere.zones]
    assert len(names) == len(set(names)) > 50


def test_a_region_that_nobody_knows_is_refused_with_those_that_there_are(shipped: Catalog) -> None:
    with pytest.raises(InvalidRequest, match=r"mars-1.*us-east-1"):
        geography.offers(shipped, ["us-east-1", "mars-1"])
