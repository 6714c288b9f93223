"""What is on sale where, at what price, how much of it an account may have, and which images there are."""

import json
from typing import Any

import pytest

from aws_front import X86, Amazon
from crucible.world.facts import Account, Market
from worlds import BIG, EAST, FAR, ME, NEAR, NEXT, SMALL, WEST

PLAIN = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "preInstalledSw": "NA",
    "marketoption": "OnDemand",
}


@pytest.fixture(scope="module")
def amazon() -> Amazon:
    return Amazon(accounts=(Account(id=ME, quotas={(EAST, "p", Market.SPOT): 384}, default_quota=64),))


def test_regions_and_zones_are_the_worlds(amazon: Amazon) -> None:
    assert [one["RegionName"] for one in amazon.ec2("DescribeRegions")["Regions"]] == [EAST, WEST]
    zones = amazon.ec2("DescribeAvailabilityZones")["AvailabilityZones"]
    assert [(zone["ZoneName"], zone["ZoneId"]) for zone in zones] == [(NEAR, "use1-az1"), (NEXT, "use1-az2")]
    assert amazon.refused("DescribeAvailabilityZones", ZoneNames=[FAR]) == "InvalidParameterValue"
    assert amazon.refused("DescribeRegions", RegionNames=["mars"]) == "InvalidParameterValue"


def test_types_are_described_with_their_gpus(amazon: Amazon) -> None:
    (big,) = amazon.ec2("DescribeInstanceTypes", InstanceTypes=[BIG])["InstanceTypes"]
    assert big["VCpuInfo"]["DefaultVCpus"] == 192
    assert big["GpuInfo"]["Gpus"][0]["Name"] == "H100"
    assert big["SupportedUsageClasses"] == ["on-demand", "spot"]
    assert [one["InstanceType"] for one in amazon.ec2("DescribeInstanceTypes")["InstanceTypes"]] == [SMALL, BIG]
    wanted = [{"Name": "instance-type", "Values": ["g6.*"]}]
    assert len(amazon.ec2("DescribeInstanceTypes", Filters=wanted)["InstanceTypes"]) == 1
    assert amazon.refused("DescribeInstanceTypes", InstanceTypes=["p9.huge"]) == "InvalidInstanceType"
    assert amazon.refused("DescribeInstanceTypes", "ec2", WEST, InstanceTypes=[BIG]) == "InvalidInstanceType"


def test_offerings_say_which_zone_has_which_type(amazon: Amazon) -> None:
    asked = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": [SMALL]}]}
    found = amazon.ec2("DescribeInstanceTypeOfferings", **asked)["InstanceTypeOfferings"]
    assert [one["Location"] for one in found] == [NEAR, NEXT]
    anywhere = amazon.ec2("DescribeInstanceTypeOfferings")["InstanceTypeOfferings"]
    assert {(one["InstanceType"], one["Location"]) for one in anywhere} == {(SMALL, EAST), (BIG, EAST)}


# --- quotas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "value"),
    [("L-417A185B", 64), ("L-DB2E81BA", 64), ("L-7212CCBC", 384), ("L-3819A6DF", 64), ("L-1216C47A", 64)],
)
def test_quotas_are_the_worlds(amazon: Amazon, code: str, value: float) -> None:
    quota = amazon.call("servicequotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode=code)["Quota"]
    assert (quota["Value"], quota["QuotaCode"]) == (value, code)


def test_quotas_come_in_pages_and_what_is_not_there_is_not(amazon: Amazon) -> None:
    page = amazon.call("servicequotas", "ListServiceQuotas", ServiceCode="ec2", MaxResults=4)
    rest = amazon.call("servicequotas", "ListServiceQuotas", ServiceCode="ec2", NextToken=page["NextToken"])
    assert len({one["QuotaCode"] for one in page["Quotas"] + rest["Quotas"]}) == 6
    asked = {"ServiceCode": "ec2", "QuotaCode": "L-00000000"}
    assert amazon.refused("GetServiceQuota", "servicequotas", **asked) == "NoSuchResourceException"
    elsewhere = {"ServiceCode": "s3", "QuotaCode": "L-417A185B"}
    assert amazon.refused("GetServiceQuota", "servicequotas", **elsewhere) == "NoSuchResourceException"
    spoiled = {"ServiceCode": "ec2", "NextToken": "x"}
    assert amazon.refused("ListServiceQuotas", "servicequotas", **spoiled) == "InvalidPaginationTokenException"


# --- prices ---------------------------------------------------------------------------------------------


def products(amazon: Amazon, **wanted: str) -> list[dict[str, Any]]:
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    answer = amazon.call("pricing", "GetProducts", ServiceCode="AmazonEC2", Filters=filters)
    return [json.loads(text) for text in answer["PriceList"]]


def price(product: dict[str, Any]) -> str:
    (term,) = product["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert dimension["unit"] == "Hrs"
    return str(dimension["pricePerUnit"]["USD"])


def test_the_plain_price_is_found_by_the_usual_filters(amazon: Amazon) -> None:
    (big,) = products(amazon, instanceType=BIG, regionCode=EAST, **PLAIN)
    assert price(big) == "98.3200000000"
    assert big["product"]["attributes"]["location"] == "US East (N. Virginia)"
    assert {one["product"]["attributes"]["regionCode"] for one in products(amazon, instanceType=SMALL, **PLAIN)} == {
        EAST,
        WEST,
    }
    assert products(amazon, instanceType=BIG, tenancy="Dedicated") == []


def test_whoever_does_not_filter_sees_reservations_too(amazon: Amazon) -> None:
    found = products(amazon, instanceType=BIG)
    assert sorted(price(one) for one in found) == ["0.0000000000", "98.3200000000", "98.3200000000"]


def test_the_list_comes_in_pages(amazon: Amazon) -> None:
    seen: list[str] = []
    page = amazon.call("pricing", "GetProducts", ServiceCode="AmazonEC2", MaxResults=4)
    while True:
        seen += [json.loads(text)["product"]["sku"] for text in page["PriceList"]]
        if "NextToken" not in page:
            break
        page = amazon.call("pricing", "GetProducts", ServiceCode="AmazonEC2", MaxResults=4, NextToken=page["NextToken"])
    assert len(seen) == len(set(seen)) == 9
    asked = {"ServiceCode": "AmazonEC2", "NextToken": "x"}
    assert amazon.refused("GetProducts", "pricing", **asked) == "InvalidNextTokenException"


@pytest.mark.parametrize(
    ("kind", "value", "count"),
    [("EQUALS", BIG, 3), ("CONTAINS", "p5", 3), ("ANY_OF", f"{BIG},{SMALL}", 9), ("NONE_OF", BIG, 6)],
)
def test_filters_are_of_five_kinds(amazon: Amazon, kind: str, value: str, count: int) -> None:
    wanted = [{"Type": kind, "Field": "instanceType", "Value": value}]
    assert len(amazon.call("pricing", "GetProducts", ServiceCode="AmazonEC2", Filters=wanted)["PriceList"]) == count


def test_the_price_list_knows_one_service(amazon: Amazon) -> None:
    (service,) = amazon.call("pricing", "DescribeServices")["Services"]
    assert "instanceType" in service["AttributeNames"]
    assert amazon.refused("GetProducts", "pricing", ServiceCode="AmazonS3") == "NotFoundException"
    bad = [{"Type": "LIKE", "Field": "a", "Value": "b"}]
    assert amazon.refused("GetProducts", "pricing", ServiceCode="AmazonEC2", Filters=bad) == "ValidationException"


# --- images ---------------------------------------------------------------------------------------------


def test_a_parameter_names_an_image_that_exists_in_its_region(amazon: Amazon) -> None:
    for region in (EAST, WEST):
        found = amazon.call("ssm", "GetParameter", region, Name=X86.parameter)["Parameter"]
        assert found["DataType"] == "aws:ec2:image"
        (image,) = amazon.ec2("DescribeImages", region, ImageIds=[found["Value"]])["Images"]
        assert image["State"] == "available"
    assert amazon.refused("GetParameter", "ssm", Name="/aws/service/nothing") == "ParameterNotFound"
    several = amazon.call("ssm", "GetParameters", Names=[X86.parameter, "/nothing"])
    assert [one["Name"] for one in several["Parameters"]] == [X86.parameter]
    assert several["InvalidParameters"] == ["/nothing"]
