"""The store contract on its three databases."""

from pathlib import Path

import pytest

from crucible.testing.store_contract import StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def url(self) -> str:
        return "sqlite://"


class TestFile(StoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/crucible.db"


class TestPostgres(StoreContract):
    @pytest.fixture
    def url(self, emptied_postgres_url: str) -> str:
        return emptied_postgres_url
