"""RunInstances takes the name of a public parameter for the image that it holds."""

import pytest

from aws_front import X86, Amazon
from worlds import EAST, SMALL


@pytest.mark.parametrize("version", ["", ":42"])
def test_an_image_is_found_by_its_parameter(version: str) -> None:
    amazon = Amazon()
    bought = amazon.run(ImageId=f"resolve:ssm:{X86.parameter}{version}")
    assert [instance["ImageId"] for instance in bought] == [X86.id(EAST)]


@pytest.mark.parametrize("text", ["resolve:ssm:/aws/service/nothing", f"resolve:ssm:{X86.parameter}:999"])
def test_a_parameter_that_is_not_there_is_refused(text: str) -> None:
    amazon = Amazon()
    asked = {"ImageId": text, "InstanceType": SMALL, "MinCount": 1, "MaxCount": 1}
    assert amazon.refused("RunInstances", **asked) == "InvalidParameterValue"
