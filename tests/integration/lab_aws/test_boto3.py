"""boto3, unmodified, against a real Lab."""

import json
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from lab_process import RunningLab

Clients = Callable[..., Any]
SOON = {"Delay": 1, "MaxAttempts": 30}


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def asking(image: str, count: int = 1, **values: Any) -> dict[str, Any]:
    return {"ImageId": image, "InstanceType": "g6.xlarge", "MinCount": count, "MaxCount": count, **values}


def tags(**tags: str) -> list[dict[str, Any]]:
    return [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


def test_an_instance_runs_its_user_data_and_ends(ec2: Any, image: str) -> None:
    bought = ec2.run_instances(
        **asking(image, UserData="#!/bin/sh\necho it runs\n", TagSpecifications=tags(test="runs"))
    )["Instances"]
    id = bought[0]["InstanceId"]
    ec2.get_waiter("instance_running").wait(InstanceIds=[id], WaiterConfig=SOON)
    ec2.create_tags(Resources=[id], Tags=[{"Key": "more", "Value": "ünï <&> code"}])
    (shown,) = ec2.describe_instances(Filters=[{"Name": "tag:test", "Values": ["runs"]}])["Reservations"]
    found = {tag["Key"]: tag["Value"] for tag in shown["Instances"][0]["Tags"]}
    assert found == {"test": "runs", "more": "ünï <&> code"}
    assert "it runs" in _console(ec2, id)
    ec2.terminate_instances(InstanceIds=[id])
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[id], WaiterConfig=SOON)
    (ended,) = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"]
    assert ended["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert ended["StateTransitionReason"].startswith("User initiated (")


def _console(ec2: Any, id: str) -> str:
    """boto3 decodes it by itself. A waiter that looks once a second is enough between two looks here."""
    for _ in range(30):
        output = str(ec2.get_console_output(InstanceId=id)["Output"])
        if output:
            return output
        ec2.get_waiter("instance_running").wait(InstanceIds=[id], WaiterConfig=SOON)
    return ""


def test_a_token_buys_once(ec2: Any, image: str) -> None:
    asked = asking(image, ClientToken="one-token", TagSpecifications=tags(test="token"))
    first, again = ec2.run_instances(**asked), ec2.run_instances(**asked)
    assert first["ReservationId"] == again["ReservationId"]
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(**{**asked, "MaxCount": 2})
    assert code(refused) == "IdempotentParameterMismatch"
    found = ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["one-token"]}])["Reservations"]
    assert len(found[0]["Instances"]) == 1
    ec2.terminate_instances(InstanceIds=[found[0]["Instances"][0]["InstanceId"]])


def test_paginators_see_everything_once(ec2: Any, image: str) -> None:
    bought = ec2.run_instances(**asking(image, 7, TagSpecifications=tags(test="pages")))["Instances"]
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "tag:test", "Values": ["pages"]}], PaginationConfig={"PageSize": 5}
    )
    seen = [one["InstanceId"] for page in pages for part in page["Reservations"] for one in part["Instances"]]
    assert sorted(seen) == sorted(one["InstanceId"] for one in bought)
    ec2.terminate_instances(InstanceIds=seen)


def test_a_spot_instance_is_taken_and_its_request_says_so(ec2: Any, image: str, lab: RunningLab) -> None:
    spot = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}
    (one,) = ec2.run_instances(**asking(image, InstanceMarketOptions=spot))["Instances"]
    ec2.get_waiter("spot_instance_request_fulfilled").wait(SpotInstanceRequestIds=[one["SpotInstanceRequestId"]])
    lab.control.preempt(one["InstanceId"], notice_s=0)
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[one["InstanceId"]], WaiterConfig=SOON)
    asked = {"SpotInstanceRequestIds": [one["SpotInstanceRequestId"]]}
    (request,) = ec2.describe_spot_instance_requests(**asked)["SpotInstanceRequests"]
    assert request["Status"]["Code"] == "instance-terminated-no-capacity"


def test_prices_on_demand_and_spot_agree_with_the_bill(client: Clients, ec2: Any) -> None:
    wanted = {
        "instanceType": "p5.48xlarge",
        "regionCode": "us-east-1",
        "capacitystatus": "Used",
        "tenancy": "Shared",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    pages = client("pricing").get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
    (product,) = [json.loads(text) for page in pages for text in page["PriceList"]]
    (term,) = product["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    on_demand = float(dimension["pricePerUnit"]["USD"])
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=["p5.48xlarge"], ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(UTC)
    )
    spot = [float(one["SpotPrice"]) for page in pages for one in page["SpotPriceHistory"]]
    assert spot and all(0 < price < 2 * on_demand for price in spot)


def test_types_offerings_and_quotas_can_be_read(client: Clients, ec2: Any) -> None:
    pages = ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 20})
    types = {one["InstanceType"]: one for page in pages for one in page["InstanceTypes"]}
    assert types["p5.48xlarge"]["NetworkInfo"]["EfaSupported"] is True
    assert len(types) > 40
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["g6.xlarge"]}]
    )["InstanceTypeOfferings"]
    zones = {zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    assert {one["Location"] for one in offered} <= zones
    quotas = client("service-quotas").list_service_quotas(ServiceCode="ec2")["Quotas"]
    assert "L-417A185B" in {quota["QuotaCode"] for quota in quotas}


def test_keys_groups_and_placement_serve_an_instance(ec2: Any, image: str) -> None:
    key = ec2.create_key_pair(KeyName="mine", KeyType="ed25519")
    group = ec2.create_security_group(GroupName="mine", Description="d")["GroupId"]
    ec2.get_waiter("security_group_exists").wait(GroupIds=[group])
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=22, ToPort=22, CidrIp="10.0.0.0/8")
    ec2.create_placement_group(GroupName="mine", Strategy="cluster")
    asked = asking(image, KeyName=key["KeyName"], SecurityGroupIds=[group], Placement={"GroupName": "mine"})
    (one,) = ec2.run_instances(**asked)["Instances"]
    assert (one["KeyName"], one["SecurityGroups"][0]["GroupId"], one["Placement"]["GroupName"]) == (
        "mine",
        group,
        "mine",
    )
    ec2.terminate_instances(InstanceIds=[one["InstanceId"]])


def test_who_am_i(client: Clients, lab: RunningLab) -> None:
    assert client("sts").get_caller_identity()["Account"] == lab.running.account


def test_a_signed_address_works_in_any_browser(ec2: Any) -> None:
    address = ec2.generate_presigned_url("describe_regions", Params={"RegionNames": ["us-west-2"]}, HttpMethod="GET")
    with urllib.request.urlopen(address) as answer:
        assert b"<regionName>us-west-2</regionName>" in answer.read()


@pytest.mark.parametrize(
    ("service", "call", "expected"),
    [
        ("ec2", "describe_instances", "SignatureDoesNotMatch"),
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
        ("pricing", "describe_services", "InvalidSignatureException"),
    ],
)
def test_a_wrong_secret_is_refused(client: Clients, service: str, call: str, expected: str) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(client(service, aws_secret_access_key="wrong"), call)()
    assert code(refused) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"InstanceType": "p9.enormous"}, "InvalidParameterValue"),
        ({"InstanceInitiatedShutdownBehavior": "explode"}, "InvalidParameterValue"),
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_bad_requests_are_refused_as_amazon_does(ec2: Any, image: str, values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(**asking(image) | values)
    assert code(refused) == expected


def test_a_field_that_amazon_does_not_know_is_refused(client: Clients) -> None:
    ec2 = client("ec2")
    ec2.meta.events.register("before-call.ec2.DescribeRegions", lambda params, **_: params["body"].update(Colour="red"))
    with pytest.raises(ClientError) as refused:
        ec2.describe_regions()
    assert code(refused) == "UnknownParameter"


def test_a_lost_reply_is_a_closed_connection_and_the_token_finds_what_was_bought(
    client: Clients, lab: RunningLab
) -> None:
    west = client("ec2", region_name="us-west-2")
    lab.control.fail("lost-reply", operation="RunInstances", region="us-west-2", count=1)
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    other = client("ssm", region_name="us-west-2").get_parameter(Name=name)["Parameter"]["Value"]
    asked = asking(other, ClientToken="lost")
    with pytest.raises((ConnectionClosedError, EndpointConnectionError, ReadTimeoutError)):
        west.run_instances(**asked)
    (found,) = west.describe_instances(Filters=[{"Name": "client-token", "Values": ["lost"]}])["Reservations"]
    again = west.run_instances(**asked)
    assert again["ReservationId"] == found["ReservationId"]
    west.terminate_instances(InstanceIds=[found["Instances"][0]["InstanceId"]])
