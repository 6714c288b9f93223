"""EC2 when it misbehaves, played by the Lab (F2, F4, F7, F29, F30): nothing is bought twice, nothing is taken for gone,
nobody waits for a call that hangs."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from aws_world import REGION, AwsWorld, an_order
from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    QuotaReached,
    RateLimited,
    Scope,
)
from crucible.testing.seller_contract import BOOT, gone, listed_of


@pytest.fixture
def world(aws_world: AwsWorld) -> AwsWorld:
    return aws_world


# --- what goes wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("lost-reply", OutcomeUnknown),
        ("server-error-after", OutcomeUnknown),
        ("error-before-effect", OutcomeUnknown),
        ("server-error", OutcomeUnknown),
        ("throttle", RateLimited),
        ("auth-expired", CredentialsRejected),
        ("no-capacity", NoCapacity),
        ("quota", QuotaReached),
    ],
)
def test_after_any_trouble_the_same_order_buys_once(world: AwsWorld, kind: str, error: type[ProviderError]) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller, count=2)
        world.lab.control.fail(kind, operation="RunInstances", count=1)
        with pytest.raises(error) as caught:
            await seller.create(order, BOOT)
        assert type(caught.value) is error and caught.value.region == REGION
        if isinstance(caught.value, NoCapacity):
            assert caught.value.scope is (Scope.REGION if error is QuotaReached else Scope.ZONE)
        bought = await seller.create(order, BOOT)
        assert len(bought) == 2 and len(await listed_of(seller, order)) == 2

    asyncio.run(scenario())


def test_the_same_token_for_another_request_is_no_refusal(world: AwsWorld) -> None:
    """Something may have been bought with it: only a look can tell."""

    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller)
        await seller.create(order, BOOT)
        other = replace(BOOT, servers=("http://127.0.0.1:10",))
        with pytest.raises(OutcomeUnknown, match="IdempotentParameterMismatch"):
            await seller.create(order, other)
        assert len(await listed_of(seller, order)) == 1

    asyncio.run(scenario())


def test_a_request_that_amazon_does_not_understand_is_never_tried_again(world: AwsWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller)
        wrong = {**order.body["request"], "ImageId": "ami-0123456789abcdef0"}
        with pytest.raises(OrderRejected, match=r"InvalidAMIID\.NotFound"):
            await seller.create(replace(order, body={"request": wrong}), BOOT)
        with pytest.raises(OrderRejected, match="never prepared"):
            await seller.create(replace(order, body={}), BOOT)

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["error-before-effect", "lost-reply", "server-error", "throttle", "auth-expired"])
def test_a_look_that_fails_is_an_error_and_never_an_empty_list(world: AwsWorld, kind: str) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller)
        await seller.create(order, BOOT)
        world.lab.control.fail(kind, operation="DescribeInstances", count=1)
        with pytest.raises(ProviderError) as caught:
            await seller.machines()
        assert not isinstance(caught.value, OutcomeUnknown), "a look changes nothing"
        assert len(await seller.machines()) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["error-before-effect", "lost-reply", "server-error", "throttle", "auth-expired"])
def test_a_delete_that_fails_says_so_and_may_be_made_again(world: AwsWorld, kind: str) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller)
        (machine,) = await seller.create(order, BOOT)
        world.lab.control.fail(kind, operation="TerminateInstances", count=1)
        with pytest.raises(ProviderError):
            await seller.delete(machine.id)
        await seller.delete(machine.id)
        await gone(seller, order)

    asyncio.run(scenario())


def test_a_spot_machine_is_not_listed_without_its_prices(world: AwsWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller, is_spot=True)
        await seller.create(order, BOOT)
        world.lab.control.fail("throttle", operation="DescribeSpotPriceHistory", count=1)
        with pytest.raises(RateLimited):
            await seller.machines()
        (machine,) = await seller.machines()
        assert machine.prices

    asyncio.run(scenario())


def test_deletes_and_looks_do_not_wait_for_purchases(world: AwsWorld) -> None:
    """F29: eight purchases that hang must not keep a machine alive."""

    async def scenario() -> None:
        seller = world.open()
        first = await an_order(world, seller)
        (machine,) = await seller.create(first, BOOT)
        orders = [await an_order(world, seller) for _ in range(8)]
        world.lab.control.fail("slow", operation="RunInstances", seconds=[10, 10])
        began = time.monotonic()
        buying = asyncio.gather(*(seller.create(order, BOOT) for order in orders))
        await asyncio.sleep(0)
        await seller.delete(machine.id)
        assert machine.id in {one.id for one in await seller.machines()}
        assert time.monotonic() - began < 9 and not buying.done()
        world.lab.control.clear_faults()
        await buying

    asyncio.run(scenario())


# --- health ------------------------------------------------------------------------------------------


def test_health_names_what_is_missing_and_how_to_mend_it(world: AwsWorld) -> None:
    def problems(**settings: Any) -> Any:
        return asyncio.run(world.open(**settings).health())["problems"]

    (problem,) = problems(gpu_image_parameter="/no/such/{arch}")
    assert "/no/such/x86_64" in problem["problem"] and "CRUCIBLE_AWS_IMAGE_PARAMETER" in problem["fix"]
    assert "CRUCIBLE_AWS_SUBNETS" in problems(subnets=("subnet-0123456789abcdef0",))[0]["fix"]


def test_health_tells_rejected_credentials_first(world: AwsWorld) -> None:
    world.lab.control.fail("auth-expired", operation="GetCallerIdentity")
    health = asyncio.run(world.open().health())
    assert health["status"] == "down"
    (problem,) = health["problems"]
    assert "credentials" in problem["problem"] and "aws sso login" in problem["fix"]


def test_health_changes_nothing(world: AwsWorld) -> None:
    before = {group["GroupId"] for group in world.ec2.describe_security_groups()["SecurityGroups"]}
    asyncio.run(world.open().health())
    assert {group["GroupId"] for group in world.ec2.describe_security_groups()["SecurityGroups"]} == before
    assert asyncio.run(world.open().machines()) == []
