"""One Lab for all tests of this folder, and obstore as it comes: nothing but the Lab's exports tells it where."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import GCSStore

from lab_process import RunningLab

Stores = Callable[..., GCSStore]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder: Path = tmp_path_factory.mktemp("lab")
    with RunningLab(folder, regions="us-east-1") as running:
        yield running


@pytest.fixture(scope="module")
def stores(lab: RunningLab) -> Stores:
    """`stores("bucket", …)`: it gives up at the first refusal, so that a test sees it."""
    environ = lab.control.storage()

    def make(bucket: str = "lab-bucket", **options: Any) -> GCSStore:
        usual = {
            "application_credentials": environ["GOOGLE_APPLICATION_CREDENTIALS"],
            "base_url": environ["GOOGLE_BASE_URL"],
            "client_options": {"allow_http": True},
            "retry_config": {"max_retries": 0},
        }
        return GCSStore(bucket, **{**usual, **options})

    return make


@pytest.fixture
def store(stores: Stores) -> GCSStore:
    """With keys of its own."""
    return stores(prefix=secrets.token_hex(8))
