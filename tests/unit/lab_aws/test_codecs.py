"""Whatever botocore sends we read, and whatever we write botocore reads, for every operation that it describes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aws_shapes import operation, read_back, sent, values
from crucible.lab.aws import checks, elements, json11, models, query, xml
from crucible.lab.aws.errors import AnswerMisfit, AwsError

FORMS = [(service, name) for service in ("ec2", "sts") for name in models.service(service).operation_names]
JSON = [
    (service, name)
    for service in ("servicequotas", "pricing", "ssm")
    for name in models.service(service).operation_names
]
REQUEST_ID = "5bbd1ba7-4f12-4a4b-8e9f-3f2d1c0b9a87"


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_form_that_botocore_sends_is_read_as_it_was_meant(data: st.DataObject) -> None:
    called = operation(*data.draw(st.sampled_from(FORMS)))
    given_values = data.draw(values(called.input)) if called.input is not None else {}
    assert query.decode(called, query.fields(sent(called, given_values))) == given_values


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_xml_that_we_write_is_read_by_botocore_as_it_was_meant(data: st.DataObject) -> None:
    called = operation(*data.draw(st.sampled_from(FORMS)))
    answered = data.draw(values(called.output)) if called.output is not None else {}
    assert read_back(called, xml.answer(called, answered, REQUEST_ID)) == answered


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_json_goes_both_ways(data: st.DataObject) -> None:
    called = operation(*data.draw(st.sampled_from(JSON)))
    asked = data.draw(values(called.input)) if called.input is not None else {}
    assert _near(json11.decode(called, sent(called, asked)), asked)
    if called.output is not None:
        answered = data.draw(values(called.output))
        assert _near(read_back(called, json11.answer(called, answered)), answered)


def _near(one: Any, other: Any) -> bool:
    """Equal, but for a moment that went through a binary fraction."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, datetime) and isinstance(other, datetime):
        return abs((one - other).total_seconds()) < 1
    return bool(one == other)


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=60)
    | st.from_regex(r"([A-Z][a-zA-Z]{1,12}(\.[0-9]{1,2})?(\.Ebs)?=[a-z0-9%.]{0,6}&?){1,5}", fullmatch=True)
)
def test_no_form_makes_the_reader_fail_otherwise_than_by_refusing(form: str) -> None:
    try:
        query.decode(operation("ec2", "RunInstances"), query.fields(form))
    except AwsError as error:
        assert error.status == 400


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("ImageID=ami-1", "UnknownParameter"),
        ("BlockDeviceMapping.1.Ebs.Size=8", "UnknownParameter"),
        ("BlockDeviceMapping.x.DeviceName=a", "UnknownParameter"),
        ("BlockDeviceMapping.0.DeviceName=a", "UnknownParameter"),
        ("BlockDeviceMapping=a", "InvalidParameterValue"),
        ("ImageId.Name=a", "UnknownParameter"),
        ("ImageId=a&ImageId.Name=a", "UnknownParameter"),
        ("ImageId=a&ImageId=b", "InvalidQueryParameter"),
        ("MinCount=one", "InvalidParameterValue"),
        ("MinCount=1e3", "InvalidParameterValue"),
        ("MinCount=\u0661", "InvalidParameterValue"),
        ("DryRun=yes", "InvalidParameterValue"),
        ("InstanceMarketOptions.SpotOptions.ValidUntil=soon", "InvalidParameterValue"),
        ("KeyName=%00", "InvalidParameterValue"),
        ("KeyName=%ff", "MalformedQueryString"),
        ("KeyName", "MalformedQueryString"),
    ],
)
def test_a_form_that_does_not_fit_is_refused_with_the_code_of_ec2(form: str, code: str) -> None:
    with pytest.raises(AwsError) as refusal:
        query.decode(operation("ec2", "RunInstances"), query.fields(form))
    assert refusal.value.code == code


def test_lists_are_in_the_order_of_their_numbers() -> None:
    form = query.fields("InstanceId.10=c&InstanceId.2=b&InstanceId.1=a")
    assert query.decode(operation("ec2", "DescribeInstances"), form) == {"InstanceIds": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"MinCount": 1}, "MissingParameter"),
        ({"MinCount": 1, "MaxCount": 1, "InstanceInitiatedShutdownBehavior": "explode"}, "InvalidParameterValue"),
        ({"MinCount": 1, "MaxCount": 1, "InstanceMarketOptions": {"MarketType": "stock"}}, "InvalidParameterValue"),
        ({"MinCount": 1, "MaxCount": 1, "Colour": "red"}, "UnknownParameter"),
        ({"MinCount": "1", "MaxCount": 1}, "InvalidParameterValue"),
    ],
)
def test_values_beside_the_description_are_refused(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(AwsError) as refusal:
        checks.request(operation("ec2", "RunInstances"), asked)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"ServiceCode": "ec2"}, "ValidationException"),
        ({"ServiceCode": "ec2", "QuotaCode": "L-1", "Shade": 1}, "ValidationException"),
        ({"ServiceCode": 7, "QuotaCode": "L-1"}, "SerializationException"),
        ({"ServiceCode": "e c 2", "QuotaCode": "L-1"}, "ValidationException"),
        ({"ServiceCode": "ec2", "QuotaCode": "L" * 129}, "ValidationException"),
    ],
)
def test_json_beside_the_description_is_refused(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(AwsError) as refusal:
        checks.request(operation("servicequotas", "GetServiceQuota"), asked)
    assert refusal.value.code == code


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(AwsError, match="SerializationException"):
        json11.decode(operation("ssm", "GetParameter"), body)


@pytest.mark.parametrize(
    "answered",
    [
        {"Instances": [{"InstanceID": "i-1"}]},
        {"Instances": [{"AmiLaunchIndex": "0"}]},
        {"Instances": [{"State": {"Name": "asleep"}}]},
    ],
)
def test_an_answer_that_does_not_fit_its_shape_is_loud(answered: dict[str, Any]) -> None:
    with pytest.raises(AnswerMisfit):
        checks.answer(operation("ec2", "RunInstances"), answered)


def test_an_error_reads_as_an_error() -> None:
    error = AwsError("InvalidInstanceID.NotFound", "The instance ID 'i-<1>' does not exist")
    read = read_back(operation("ec2", "DescribeInstances"), xml.ec2_error(error, REQUEST_ID), 400)
    assert read["Error"] == {"Code": error.code, "Message": error.message}
    called = operation("sts", "GetCallerIdentity")
    read = read_back(called, xml.query_error(error, REQUEST_ID, called.namespace), 400)
    assert (read["Error"]["Code"], read["Error"]["Type"]) == (error.code, "Sender")
    read = read_back(operation("ssm", "GetParameter"), json11.error(error), 400)
    assert (read["Error"]["Code"], read["Error"]["Message"]) == (error.code, error.message)


def test_moments_are_written_as_ec2_writes_them() -> None:
    assert elements.stamp(datetime(2026, 11, 16, 6, 30, 12, 7_000, tzinfo=UTC)) == "2026-11-16T06:30:12.007Z"
