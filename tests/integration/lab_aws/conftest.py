"""One Lab for all tests of this folder: each test uses things of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from lab_process import RunningLab

Clients = Callable[..., Any]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder: Path = tmp_path_factory.mktemp("lab")
    with RunningLab(folder, boot_scale=0.005) as running:
        yield running


@pytest.fixture(scope="session")
def client(lab: RunningLab) -> Iterator[Clients]:
    """`client("ec2", region_name=…)`: boto3 as it comes, at the Lab's address."""
    made = []

    def make(service: str, **options: Any) -> Any:
        keys = {
            "aws_access_key_id": lab.running.access_key,
            "aws_secret_access_key": lab.running.secret_key,
            "region_name": "us-east-1",
            "endpoint_url": lab.url,
            "config": Config(retries={"total_max_attempts": 1}, proxies={}),
        }
        made.append(session.client(service, **{**keys, **options}))
        return made[-1]

    session = boto3.session.Session()
    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def ec2(client: Clients) -> Any:
    return client("ec2")


@pytest.fixture(scope="session")
def image(client: Clients) -> str:
    name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
    return str(client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
