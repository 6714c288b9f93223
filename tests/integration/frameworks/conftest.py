from collections.abc import Iterator

import pytest

from frameworks import Shop, shop


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("frameworks")) as made:
        yield made
