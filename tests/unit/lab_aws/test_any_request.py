"""Whatever fits Amazon's description of a request is answered or refused, in Amazon's words: nothing makes the front
end fail, and nothing that it refuses was bought."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aws_front import X86, Amazon
from aws_shapes import operation, read_back, values
from crucible.lab.aws.front import HANDLERS
from crucible.lab.aws.models import Shape
from crucible.lab.aws.throttle import Bucket, Limits
from worlds import EAST, ME, NEAR, SMALL

KNOWN = [(service, name) for service, handlers in HANDLERS.items() for name in handlers]
ENDLESS = Bucket(1e9, 1e9)
AMAZON = Amazon(limits=Limits(reading=ENDLESS, writing=ENDLESS, buying=ENDLESS))
(ONE,) = AMAZON.run(InstanceMarketOptions={"MarketType": "spot"})
GROUP = AMAZON.ec2("CreateSecurityGroup", GroupName="g", Description="d")["GroupId"]
# Texts that mean something here: a request of random texts alone would not get far.
KNOWN_TEXTS = [
    AMAZON.image,
    SMALL,
    NEAR,
    EAST,
    GROUP,
    "g",
    "ec2",
    "AmazonEC2",
    "L-417A185B",
    "instance-id",
    "tag:a",
    "tcp",
    "10.0.0.0/8",
    "Linux/UNIX",
    "0.5",
    X86.root,
    X86.parameter,
    ONE["InstanceId"],
    ONE["SubnetId"],
    ONE["SpotInstanceRequestId"],
    ONE["BlockDeviceMappings"][0]["Ebs"]["VolumeId"],
]
SEASONED = {"RunInstances": {"ImageId": AMAZON.image, "InstanceType": SMALL, "MinCount": 1, "MaxCount": 1}}


@st.composite
def seasoned(draw: st.DrawFn, shape: Shape | None, value: Any) -> Any:
    """The same with some texts that mean something, and small numbers."""
    if isinstance(value, dict) and shape is not None and shape.type_name == "structure":
        return {name: draw(seasoned(shape.members[name], part)) for name, part in value.items()}
    if isinstance(value, list) and shape is not None:
        return [draw(seasoned(shape.member, part)) for part in value]
    if isinstance(value, str) and shape is not None and not shape.metadata.get("enum") and draw(st.booleans()):
        return draw(st.sampled_from(KNOWN_TEXTS))
    if isinstance(value, int) and not isinstance(value, bool) and draw(st.booleans()):
        return draw(st.integers(0, 100))
    return value


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_request_is_answered_or_refused(data: st.DataObject) -> None:
    service, name = data.draw(st.sampled_from(KNOWN))
    called = operation(service, name)
    given_values = data.draw(values(called.input)) if called.input is not None else {}
    for required in called.input.required_members if called.input is not None else ():
        given_values.setdefault(required, data.draw(values(called.input.members[required])))
    asked = data.draw(seasoned(called.input, given_values)) | data.draw(st.sampled_from([{}, SEASONED.get(name, {})]))
    response = AMAZON.front.answer(AMAZON.request(service, name, EAST, **asked))
    read = read_back(called, response.body, response.status)
    if response.status == 200:
        assert "Error" not in read
    else:
        assert 400 <= response.status < 600
        assert read["Error"]["Code"]
        assert read["Error"]["Message"]


def test_a_name_that_xml_cannot_carry_is_refused_readably() -> None:
    response = AMAZON.form("Action=DescribeRegions&Version=2016-11-15&%00%1f=1")
    error = read_back(operation("ec2", "DescribeRegions"), response.body, response.status)["Error"]
    assert error["Code"] == "UnknownParameter"


def test_lists_have_their_bounds() -> None:
    names = [f"/a/{number}" for number in range(11)]
    assert AMAZON.refused("GetParameters", "ssm", Names=names) == "ValidationException"


def test_no_refused_purchase_left_anything() -> None:
    before = AMAZON.lab.world.machines(ME, None, AMAZON.lab.clock.at, is_omniscient=True)
    AMAZON.refused("RunInstances", ImageId="x", InstanceType="x", MinCount=1, MaxCount=1)
    assert AMAZON.lab.world.machines(ME, None, AMAZON.lab.clock.at, is_omniscient=True) == before
