"""A machine that could never report is not bought."""

import pytest

from crucible.providers.aws.reach import unreachable

AMAZON = "https://ec2.us-east-1.amazonaws.com"
LAB = "http://127.0.0.1:4000"


@pytest.mark.parametrize("server", ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"])
def test_this_computer_is_reached_by_its_neighbours_only(server: str) -> None:
    why_not = unreachable(server, AMAZON)
    assert why_not is not None and server in why_not
    assert unreachable(server, LAB) is None


@pytest.mark.parametrize("server", ["https://crucible.example", "http://10.0.0.7:8080", "http://203.0.113.9"])
def test_an_address_of_its_own_is_given_the_benefit_of_the_doubt(server: str) -> None:
    assert unreachable(server, AMAZON) is None
