"""The spot market over the wire: what becomes of a request, and what the price was."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aws_front import AT, Amazon
from crucible.world.facts import PricePoint
from worlds import NEAR, NEXT, SMALL, a_sale

SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}
RISING = (PricePoint(int(AT) - 7200, 300_000), PricePoint(int(AT) + 600, 900_000))


def request(amazon: Amazon) -> dict[str, Any]:
    (found,) = amazon.ec2("DescribeSpotInstanceRequests")["SpotInstanceRequests"]
    return dict(found)


def status(amazon: Amazon) -> tuple[str, str]:
    found = request(amazon)
    return found["State"], found["Status"]["Code"]


def test_a_request_is_fulfilled_then_marked_then_ended_without_capacity() -> None:
    amazon = Amazon()
    (one,) = amazon.run(
        TagSpecifications=[{"ResourceType": "spot-instances-request", "Tags": [{"Key": "a", "Value": "b"}]}], **SPOT
    )
    found = request(amazon)
    assert (found["InstanceId"], found["Type"], found["Tags"]) == (
        one["InstanceId"],
        "one-time",
        [{"Key": "a", "Value": "b"}],
    )
    assert status(amazon) == ("active", "fulfilled")
    amazon.later(60)
    amazon.lab.world.preempt(one["InstanceId"], amazon.lab.clock.at, 120)
    assert status(amazon) == ("active", "marked-for-termination")
    amazon.later(121)
    assert status(amazon) == ("closed", "instance-terminated-no-capacity")
    (ended,) = amazon.instances()
    assert ended["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ended["StateTransitionReason"] == "Service initiated (2026-11-16 06:33:00 GMT)"


def test_a_price_above_the_limit_ends_it_by_price() -> None:
    amazon = Amazon(a_sale(NEAR, SMALL, spot=RISING))
    limit = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.5"}}
    amazon.run(InstanceMarketOptions=limit)
    assert request(amazon)["SpotPrice"] == "0.500000"
    amazon.later(800)
    assert status(amazon) == ("closed", "instance-terminated-by-price")


def test_what_its_owner_ends_is_ended_by_the_user() -> None:
    amazon = Amazon()
    (one,) = amazon.run(**SPOT)
    amazon.ec2("TerminateInstances", InstanceIds=[one["InstanceId"]])
    amazon.later(10)
    assert status(amazon) == ("closed", "instance-terminated-by-user")


def test_a_cancelled_request_leaves_its_instance() -> None:
    amazon = Amazon()
    (one,) = amazon.run(**SPOT)
    id = one["SpotInstanceRequestId"]
    (cancelled,) = amazon.ec2("CancelSpotInstanceRequests", SpotInstanceRequestIds=[id])[
        "CancelledSpotInstanceRequests"
    ]
    assert cancelled["State"] == "cancelled"
    assert status(amazon) == ("cancelled", "request-canceled-and-instance-running")
    assert amazon.instances()[0]["State"]["Name"] == "pending"
    missing = amazon.refused("CancelSpotInstanceRequests", SpotInstanceRequestIds=["sir-nobodys"])
    assert missing == "InvalidSpotInstanceRequestID.NotFound"


def test_requests_are_found_by_what_is_known_of_them() -> None:
    amazon = Amazon()
    (one,) = amazon.run(**SPOT)
    amazon.run()

    def found(name: str, value: str) -> int:
        asked = [{"Name": name, "Values": [value]}]
        return len(amazon.ec2("DescribeSpotInstanceRequests", Filters=asked)["SpotInstanceRequests"])

    assert found("instance-id", one["InstanceId"]) == 1
    assert found("status-code", "fulfilled") == 1
    assert found("state", "closed") == 0


# --- prices ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def market() -> Amazon:
    line = tuple(PricePoint(int(AT) - 3600 * hour, 300_000 + hour) for hour in range(30, 0, -1))
    return Amazon(a_sale(NEAR, SMALL, spot=line), a_sale(NEXT, SMALL, spot=line[:3]))


def history(market: Amazon, **values: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = market.ec2("DescribeSpotPriceHistory", **values)["SpotPriceHistory"]
    return found


def test_prices_are_newest_first_with_the_one_in_force_at_the_start(market: Amazon) -> None:
    start = datetime.fromtimestamp(AT - 2.5 * 3600, UTC)
    found = history(market, StartTime=start, InstanceTypes=[SMALL], ProductDescriptions=["Linux/UNIX"])
    assert [(one["AvailabilityZone"], one["SpotPrice"]) for one in found] == [
        (NEAR, "0.300001"),
        (NEAR, "0.300002"),
        (NEAR, "0.300003"),
        (NEXT, "0.300028"),
    ]
    assert found[2]["Timestamp"] < start


def test_the_price_now_is_one_a_zone(market: Amazon) -> None:
    now = datetime.fromtimestamp(AT, UTC)
    assert len(history(market, StartTime=now)) == 2
    assert len(history(market, StartTime=now + timedelta(hours=1))) == 2
    assert len(history(market, StartTime=now, AvailabilityZone=NEXT)) == 1
    assert history(market, StartTime=now, InstanceTypes=["p5.48xlarge"]) == []
    assert history(market, StartTime=now, ProductDescriptions=["Windows"]) == []


def test_long_histories_come_in_pages(market: Amazon) -> None:
    seen, token = [], None
    while token != "":
        page = market.ec2("DescribeSpotPriceHistory", MaxResults=10, **({"NextToken": token} if token else {}))
        seen += [(one["AvailabilityZone"], one["Timestamp"]) for one in page["SpotPriceHistory"]]
        token = page["NextToken"]
    assert len(seen) == len(set(seen)) == 33
    assert [at for _, at in seen] == sorted((at for _, at in seen), reverse=True)


def test_scores_follow_room() -> None:
    amazon = Amazon(a_sale(NEAR, SMALL, spot_capacity=10), a_sale(NEXT, SMALL, spot_capacity=2))
    asked = {"InstanceTypes": [SMALL], "TargetCapacity": 10, "SingleAvailabilityZone": True}
    scores = amazon.ec2("GetSpotPlacementScores", RegionNames=["us-east-1"], **asked)["SpotPlacementScores"]
    assert [one["Score"] for one in scores] == [10, 2]
    amazon.run(5, Placement={"AvailabilityZone": NEAR}, **SPOT)
    scores = amazon.ec2("GetSpotPlacementScores", RegionNames=["us-east-1"], **asked)["SpotPlacementScores"]
    assert [one["Score"] for one in scores] == [5, 2]
