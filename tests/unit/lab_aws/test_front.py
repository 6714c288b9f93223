"""Who is let in, how each protocol says no, and what is beyond the Lab."""

from dataclasses import replace
from typing import Any

import pytest

from aws_front import ACCOUNT, Amazon, signed
from aws_shapes import operation, read_back
from crucible.lab.aws.front import HANDLERS
from crucible.lab.aws.throttle import Bucket, Limits
from crucible.lab.http import Request, Response
from worlds import EAST, ME, SMALL

ASKED = {
    "ec2": ("DescribeRegions", {}),
    "sts": ("GetCallerIdentity", {}),
    "servicequotas": ("ListServiceQuotas", {"ServiceCode": "ec2"}),
    "pricing": ("GetProducts", {"ServiceCode": "AmazonEC2"}),
    "ssm": ("GetParameters", {"Names": ["/a"]}),
}


@pytest.fixture(scope="module")
def amazon() -> Amazon:
    return Amazon()


def code(service: str, response: Response) -> str:
    found: str = read_back(operation(service, ASKED[service][0]), response.body, response.status)["Error"]["Code"]
    return found


def asked(amazon: Amazon, service: str, region: str = EAST) -> Request:
    name, values = ASKED[service]
    return amazon.request(service, name, region, **values)


@pytest.mark.parametrize("service", ASKED)
def test_the_accounts_keys_open_every_service(amazon: Amazon, service: str) -> None:
    name, values = ASKED[service]
    assert amazon.call(service, name, **values)


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("ec2", "SignatureDoesNotMatch"),
        ("sts", "SignatureDoesNotMatch"),
        ("servicequotas", "InvalidSignatureException"),
        ("pricing", "InvalidSignatureException"),
        ("ssm", "InvalidSignatureException"),
    ],
)
def test_a_request_that_was_changed_on_its_way_is_refused(amazon: Amazon, service: str, expected: str) -> None:
    request = asked(amazon, service)
    answer = amazon.front.answer(replace(request, body=request.body + b" "))
    assert code(service, answer) == expected


@pytest.mark.parametrize(
    ("service", "expected", "status"),
    [
        ("ec2", "AuthFailure", 401),
        ("sts", "InvalidClientTokenId", 403),
        ("ssm", "UnrecognizedClientException", 400),
    ],
)
def test_a_stranger_is_refused(amazon: Amazon, service: str, expected: str, status: int) -> None:
    request = asked(amazon, service)
    headers = {name: value for name, value in request.headers.items() if name in ("content-type", "x-amz-target")}
    answer = amazon.front.answer(signed(service, EAST, request.body, headers, key="AKIASTRANGER"))
    assert (code(service, answer), answer.status) == (expected, status)


@pytest.mark.parametrize(
    ("service", "expected"),
    [("ec2", "MissingAuthenticationToken"), ("ssm", "MissingAuthenticationTokenException")],
)
def test_a_request_without_signature_is_refused(amazon: Amazon, service: str, expected: str) -> None:
    request = asked(amazon, service)
    headers = {name: value for name, value in request.headers.items() if name != "authorization"}
    assert code(service, amazon.front.answer(replace(request, headers=headers))) == expected


def test_an_old_signature_is_refused(amazon: Amazon) -> None:
    request = asked(amazon, "ec2")
    stamp = "20200101T000000Z"
    authorization = request.headers["authorization"].replace(request.headers["x-amz-date"][:8], stamp[:8])
    old = replace(request, headers={**request.headers, "x-amz-date": stamp, "authorization": authorization})
    assert code("ec2", amazon.front.answer(old)) == "RequestExpired"


@pytest.mark.parametrize(
    ("service", "region", "expected"),
    [
        ("ec2", "mars-north-1", "AuthFailure"),
        ("ssm", "eu-west-9", "InvalidSignatureException"),
        ("pricing", "us-west-2", "InvalidSignatureException"),
    ],
)
def test_a_region_that_is_not_there_is_refused(amazon: Amazon, service: str, region: str, expected: str) -> None:
    assert code(service, amazon.front.answer(asked(amazon, service, region))) == expected


def test_a_service_that_the_lab_does_not_play_says_so(amazon: Amazon) -> None:
    answer = amazon.front.answer(signed("s3", EAST, b"", {}))
    assert answer.status == 400
    assert b"does not emulate the service s3" in answer.body


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("Action=MakeCoffee&Version=2016-11-15", "InvalidAction"),
        ("Action=CreateFleet&Version=2016-11-15", "MissingParameter"),
        ("Action=DescribeFleets&Version=2016-11-15", "UnsupportedOperation"),
        ("Action=DescribeRegions&Version=1999-01-01", "NoSuchVersion"),
        ("Version=2016-11-15", "MissingParameter"),
        ("Action=DescribeRegions&Version=2016-11-15&Colour=red", "UnknownParameter"),
        ("Action=DescribeRegions&Version=2016-11-15&Filter.1.Name=colour", "InvalidParameterValue"),
        ("Action=DescribeVolumes&Version=2016-11-15&MaxResults=many", "InvalidParameterValue"),
        ("%", "MalformedQueryString"),
    ],
)
def test_what_is_no_request_is_refused_with_the_code_of_ec2(amazon: Amazon, form: str, expected: str) -> None:
    assert code("ec2", amazon.form(form)) == expected


def test_an_operation_of_json_that_there_is_not_is_refused(amazon: Amazon) -> None:
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AmazonSSM.MakeCoffee"}
    assert code("ssm", amazon.front.answer(signed("ssm", EAST, b"{}", headers))) == "UnknownOperationException"


def test_nothing_is_served_beside_the_root(amazon: Amazon) -> None:
    assert amazon.front.answer(replace(asked(amazon, "ec2"), path="/x", raw_path="/x")).status == 404


def test_session_tokens_are_nobodys(amazon: Amazon) -> None:
    answer = amazon.front.answer(signed("ec2", EAST, b"", {"X-Amz-Security-Token": "t"}))
    assert code("ec2", answer) == "AuthFailure"


def test_sts_tells_who_asks(amazon: Amazon) -> None:
    caller = amazon.call("sts", "GetCallerIdentity", "anywhere")
    assert caller["Account"] == ME
    assert caller["Arn"] == f"arn:aws:iam::{ME}:user/lab"
    assert ACCOUNT.secret_key not in str(caller)


def test_too_many_requests_are_refused_each_kind_by_itself() -> None:
    amazon = Amazon(limits=Limits(reading=Bucket(2, 1), writing=Bucket(1, 1), buying=Bucket(1, 1)))
    amazon.ec2("DescribeRegions")
    amazon.ec2("DescribeRegions")
    assert amazon.refused("DescribeRegions") == "RequestLimitExceeded"
    assert amazon.refused("ListServiceQuotas", "servicequotas", ServiceCode="ec2") == "ThrottlingException"
    assert amazon.ec2("DescribeRegions", "us-west-2")
    (instance,) = amazon.run()
    with pytest.raises(Exception, match="RequestLimitExceeded"):
        amazon.run()
    assert amazon.ec2("TerminateInstances", InstanceIds=[instance["InstanceId"]])


@pytest.mark.parametrize("name", sorted(HANDLERS["ec2"]))
def test_a_dry_run_changes_nothing(amazon: Amazon, name: str) -> None:
    described = operation("ec2", name).input
    assert described is not None
    required = {member: _anything(described.members[member]) for member in described.required_members}
    if name == "RunInstances":
        required |= {"ImageId": amazon.image, "InstanceType": SMALL}
    assert amazon.refused(name, DryRun=True, **required) == "DryRunOperation"
    assert not amazon.lab.world.machines(ME, None, amazon.lab.clock.at, is_omniscient=True)


def _anything(shape: Any) -> Any:
    match shape.type_name:
        case "list":
            return [_anything(shape.member)]
        case "structure":
            name = next(iter(shape.members))
            return {name: _anything(shape.members[name])}
        case "string":
            return (shape.enum or ["x"])[0]
        case kind:
            return {"integer": 1, "blob": b"x", "boolean": True}[kind]
