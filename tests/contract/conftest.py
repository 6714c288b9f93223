"""One Lab for every test that buys in AWS: it starts when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from aws_world import REGION, AwsWorld, make_scarce, record_prices
from lab_process import RunningLab


@pytest.fixture(scope="session")
def aws_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("aws")
    with RunningLab(folder, regions=REGION, data=record_prices(folder / "data")) as running:
        make_scarce(running)
        yield running


@pytest.fixture
def aws_world(aws_lab: RunningLab) -> Iterator[AwsWorld]:
    made = AwsWorld(aws_lab)
    yield made
    made.close()
