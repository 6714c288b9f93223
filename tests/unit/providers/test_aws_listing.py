"""EC2's descriptions as machines of ours, and what they cost since their start."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.model.errors import ProviderError
from crucible.model.ids import OrderId
from crucible.model.lease import MachineState
from crucible.model.ledger import ChargeKind, PriceSince, Rate
from crucible.providers.aws import listing
from crucible.providers.aws.spot_prices import MAX_AGE, SpotPrices

START = datetime(2026, 11, 16, 6, 0, 0, tzinfo=UTC)
PAIR = ("us-east-1a", "p5.48xlarge")


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def instance(**changes: Any) -> dict[str, Any]:
    """As boto3 gives one that runs."""
    return {
        "InstanceId": "i-0123456789abcdef0",
        "InstanceType": PAIR[1],
        "AmiLaunchIndex": 1,
        "LaunchTime": START,
        "State": {"Code": 16, "Name": "running"},
        "StateTransitionReason": "",
        "Placement": {"AvailabilityZone": PAIR[0], "GroupName": "", "Tenancy": "default"},
        "PrivateIpAddress": "172.31.4.5",
        "PublicIpAddress": "198.18.0.7",
        "Tags": [
            {"Key": "crucible:deployment", "Value": "d1"},
            {"Key": "crucible:order", "Value": "order-1"},
            {"Key": "crucible:extras", "Value": "gp3:100,address"},
        ],
        **changes,
    }


def ended(minutes: float, code: str = "Client.UserInitiatedShutdown", **changes: Any) -> dict[str, Any]:
    """As Amazon shows it then: disk and address are not told any more."""
    gone = instance(
        State={"Code": 48, "Name": "terminated"},
        StateTransitionReason=f"User initiated ({after(minutes):%Y-%m-%d %H:%M:%S} GMT)",
        StateReason={"Code": code, "Message": f"{code}: words of Amazon"},
        **changes,
    )
    return {key: value for key, value in gone.items() if key not in ("PrivateIpAddress", "PublicIpAddress")}


def spot(**changes: Any) -> dict[str, Any]:
    return instance(InstanceLifecycle="spot", SpotInstanceRequestId="sir-1", **changes)


def told(one: dict[str, Any]) -> Any:
    return listing.machine(one, OrderId("order-1"))


# --- instances ----------------------------------------------------------------------------------------


def test_a_running_instance() -> None:
    machine = told(instance())
    assert (machine.id, machine.order_id, machine.index) == ("i-0123456789abcdef0", "order-1", 1)
    assert machine.state is MachineState.RUNNING and machine.reason is None
    assert (machine.address, machine.devices) == ("172.31.4.5", ())
    assert (machine.started_at, machine.ended_at, machine.was_taken) == (START, None, False)
    assert machine.prices == (), "the price of the order holds"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("pending", MachineState.STARTING),
        ("running", MachineState.RUNNING),
        ("shutting-down", MachineState.STOPPING),
        ("stopping", MachineState.STOPPING),
        ("stopped", MachineState.STOPPING),
        ("terminated", MachineState.GONE),
    ],
)
def test_every_state_of_ec2_has_a_meaning(theirs: str, ours: MachineState) -> None:
    assert told(instance(State={"Code": 0, "Name": theirs})).state is ours


def test_an_end_is_told_with_its_second_and_its_reason() -> None:
    machine = told(ended(7))
    assert (machine.state, machine.ended_at) == (MachineState.GONE, after(7))
    assert machine.reason == "it was deleted" and not machine.was_taken


def test_until_it_has_ended_a_time_in_brackets_is_no_end() -> None:
    leaving = instance(
        State={"Code": 32, "Name": "shutting-down"}, StateTransitionReason="User initiated (2026-11-16 06:07:00 GMT)"
    )
    assert told(leaving).ended_at is None


def test_an_end_without_a_time_is_an_end_all_the_same() -> None:
    machine = told(instance(State={"Code": 48, "Name": "terminated"}, StateTransitionReason=""))
    assert (machine.state, machine.ended_at, machine.reason) == (MachineState.GONE, None, "it has ended")


def test_disk_and_address_are_charged_after_amazon_has_forgotten_them() -> None:
    extras = (Rate(ChargeKind.STORAGE, 100 * 80_000, 730 * 3600), Rate(ChargeKind.ADDRESS, 5_000, 3600))
    assert told(instance()).extras == extras
    assert told(ended(7)).extras == extras


def test_only_a_spot_machine_can_be_taken() -> None:
    code = "Server.SpotInstanceTermination"
    machine = told(ended(7, code, InstanceLifecycle="spot"))
    assert machine.was_taken and machine.reason == "AWS took the spot machine back"
    assert not told(ended(7, code)).was_taken
    assert not told(ended(7, "Client.InstanceInitiatedShutdown", InstanceLifecycle="spot")).was_taken


def test_a_reason_that_we_have_no_words_for_is_told_in_amazons() -> None:
    assert told(ended(7, "Server.Odd")).reason == "Server.Odd: words of Amazon"


def test_a_machine_on_a_reservation_costs_nothing_itself() -> None:
    assert told(instance(CapacityReservationId="cr-1")).prices == (PriceSince(START, 0),)


def test_what_does_not_carry_an_order_is_not_ours() -> None:
    foreign = instance(Tags=[{"Key": "crucible:deployment", "Value": "d1"}])
    bare = {key: value for key, value in instance().items() if key != "Tags"}
    found = list(listing.instances([{"Instances": [foreign, instance()]}, {"Instances": [bare]}]))
    assert [order for order, _ in found] == ["order-1"]


@pytest.mark.parametrize("name", ["i-0123456789abcdef0", "i-01234567"])
def test_ids_of_instances(name: str) -> None:
    assert listing.MACHINE_ID.fullmatch(name)


@pytest.mark.parametrize("name", ["", "i-", "i-01234567 ", "i-0123456789ABCDEF0", "i-0123\n", "local-1", "i-012345678"])
def test_what_cannot_be_an_instance(name: str) -> None:
    assert not listing.MACHINE_ID.fullmatch(name)


# --- spot prices --------------------------------------------------------------------------------------


class Market:
    """DescribeSpotPriceHistory: changes since a moment, newest first, and the price in force at it."""

    def __init__(self, *changes: tuple[float, str], zone: str = PAIR[0], type: str = PAIR[1]) -> None:
        self.changes = sorted((after(minutes), price) for minutes, price in changes)
        self.zone, self.type = zone, type
        self.now = START
        self.asked: list[datetime] = []
        self.spans: list[timedelta] = []
        self.is_out = False

    def ask(self, types: Sequence[str], zones: Sequence[str], since: datetime) -> list[dict[str, Any]]:
        self.asked.append(since)
        self.spans.append(self.now - since)
        if self.is_out:
            raise ProviderError("RequestLimitExceeded")
        before = [change for change in self.changes if change[0] <= since]
        later = [change for change in self.changes if since < change[0] <= self.now]
        return [
            {"Timestamp": at, "SpotPrice": price, "AvailabilityZone": self.zone, "InstanceType": self.type}
            for at, price in reversed([*before[-1:], *later])
            if self.type in types and self.zone in zones
        ]


def priced(prices: SpotPrices, *instances: dict[str, Any]) -> list[tuple[float, int]]:
    """Of the last of them, in minutes since its start."""
    found = prices.told(list(instances))[instances[-1]["InstanceId"]]
    return [((price.at - START) / timedelta(minutes=1), price.price_per_hour) for price in found]


def test_the_price_in_force_at_the_start_counts_from_the_start() -> None:
    market = Market((-90, "30.5"), (-5, "22.000001"), (4, "23.5"), (6, "23.5"), (8, "21"))
    market.now = after(10)
    prices = SpotPrices(market.ask, lambda: market.now)
    assert priced(prices, spot()) == [(0, 22_000_001), (4, 23_500_000), (8, 21_000_000)]


def test_nothing_after_the_end_is_told() -> None:
    market = Market((-5, "22"), (4, "23"), (7, "24"), (8, "25"))
    market.now = after(10)
    prices = SpotPrices(market.ask, lambda: market.now)
    assert priced(prices, ended(7, InstanceLifecycle="spot")) == [(0, 22_000_000), (4, 23_000_000)]


def test_a_calm_listing_asks_for_little_and_a_machine_that_ended_for_nothing_more() -> None:
    market = Market((-5, "22"), (30, "23"))
    prices = SpotPrices(market.ask, lambda: market.now)
    for minute in range(60):
        market.now = after(minute) + timedelta(seconds=2)
        for _ in range(20):
            priced(prices, spot())
    assert market.asked[0] == START
    assert len(market.asked) <= 60 + 20, "every time for the first minute, then once a minute"
    assert max(market.spans) <= timedelta(minutes=15), "what is known is not asked for again"
    gone = ended(59.5, InstanceLifecycle="spot")
    market.now = after(61)
    assert priced(prices, gone) == [(0, 22_000_000), (30, 23_000_000)]
    asked = len(market.asked)
    for minute in range(62, 120):
        market.now = after(minute)
        priced(prices, gone)
    assert len(market.asked) == asked


def test_the_end_of_a_machine_is_told_with_every_price_before_it() -> None:
    market = Market((-5, "22"), (30, "23"))
    market.now = after(29.9)
    prices = SpotPrices(market.ask, lambda: market.now)
    assert priced(prices, spot()) == [(0, 22_000_000)]
    market.now = after(30.5)
    assert priced(prices, ended(30.4, InstanceLifecycle="spot")) == [(0, 22_000_000), (30, 23_000_000)]


def test_the_first_price_of_a_new_machine_is_never_one_that_was_known_before_it() -> None:
    market = Market((-5, "22"), (30, "23"))
    market.now = after(29.9)
    prices = SpotPrices(market.ask, lambda: market.now)
    priced(prices, spot())
    market.now = after(30.2)
    second = spot(InstanceId="i-00000000000000002", LaunchTime=after(30.1))
    assert priced(prices, spot(), second) == [(30.1, 23_000_000)]


def test_while_prices_cannot_be_asked_living_machines_keep_theirs_for_a_while() -> None:
    market = Market((-5, "22"))
    prices = SpotPrices(market.ask, lambda: market.now)
    market.now = after(2)
    priced(prices, spot())
    market.is_out = True
    market.now = after(2) + MAX_AGE - timedelta(minutes=1)
    assert priced(prices, spot()) == [(0, 22_000_000)]
    for one in (ended(10, InstanceLifecycle="spot"), spot(InstanceId="i-00000000000000002", LaunchTime=after(9))):
        with pytest.raises(ProviderError):
            priced(prices, one)
    market.now = after(3) + MAX_AGE
    with pytest.raises(ProviderError):
        priced(prices, spot())


def test_a_machine_that_is_older_than_what_is_known_is_asked_for_from_its_start() -> None:
    market = Market((-60, "20"), (-5, "22"))
    market.now = after(10)
    prices = SpotPrices(market.ask, lambda: market.now)
    priced(prices, spot())
    older = spot(InstanceId="i-00000000000000002", LaunchTime=after(-30))
    assert priced(prices, spot(), older) == [(-30, 20_000_000), (-5, 22_000_000)]


def test_a_market_that_tells_no_price_leaves_the_order_its_own() -> None:
    prices = SpotPrices(Market().ask, lambda: after(5))
    assert priced(prices, spot()) == []


def test_on_demand_machines_are_no_question_to_the_market() -> None:
    market = Market()
    assert SpotPrices(market.ask, lambda: after(5)).told([instance()]) == {}
    assert market.asked == []
