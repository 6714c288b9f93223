"""AWS as a server opens it: where to buy is said by the operator, and a slip is refused before anything is bought."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import Provider, Surroundings
from crucible.ports.seller import Examines, Prepares, Reaps, Remembers
from crucible.providers.aws.opening import open_provider


def opened(environ: Mapping[str, str]) -> Provider:
    nowhere = Path("/nowhere")
    return open_provider(
        Surroundings(
            deployment="d1",
            url="http://127.0.0.1:1",
            data_dir=nowhere,
            agent=nowhere,
            server_file=nowhere,
            now=lambda: datetime.now(UTC),
            environ=environ,
        )
    )


def test_every_region_is_a_seller_and_a_price_source_of_its_own() -> None:
    provider = opened({"CRUCIBLE_AWS_REGIONS": "us-east-1, eu-west-1,us-east-1", "AWS_REGION": "us-west-2"})
    assert [(seller.name, seller.region) for seller in provider.sellers] == [("aws", "us-east-1"), ("aws", "eu-west-1")]
    assert [source.name for source in provider.prices] == ["aws:us-east-1", "aws:eu-west-1"]
    for seller in provider.sellers:
        for ability in (Prepares, Reaps, Remembers, Examines):
            assert isinstance(seller, ability)
        assert not seller.facts.counts_stock and seller.facts.idempotent_create


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_without_a_word_the_region_is_that_of_the_aws_command_line(name: str) -> None:
    assert [seller.region for seller in opened({name: "eu-central-1"}).sellers] == ["eu-central-1"]


@pytest.mark.parametrize("words", ["", "us-east", "us-east-1;us-west-2", "https://evil.example/us-east-1"])
def test_what_is_no_region_is_refused_by_the_name_of_its_setting(words: str) -> None:
    with pytest.raises(InvalidRequest, match="CRUCIBLE_AWS_REGIONS"):
        opened({"CRUCIBLE_AWS_REGIONS": words})


def test_a_setting_that_cannot_be_meant_keeps_the_server_from_starting() -> None:
    with pytest.raises(InvalidRequest, match="CRUCIBLE_AWS_DISK_GIB"):
        opened({"CRUCIBLE_AWS_REGIONS": "us-east-1", "CRUCIBLE_AWS_DISK_GIB": "tiny"})
