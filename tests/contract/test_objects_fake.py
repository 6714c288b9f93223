"""The storage in memory keeps the contract of the real ones."""

from datetime import UTC, datetime

import pytest

from crucible.model.errors import Forbidden, NotFound
from crucible.model.storage import Address, parse
from crucible.ports.objects import Signed
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.objects_contract import ObjectsContract, Send


class TestFake(ObjectsContract):
    @pytest.fixture
    def root(self) -> Address:
        return parse("s3://bucket/te st")

    @pytest.fixture
    def storage(self) -> FakeStorage:
        return FakeStorage(now=lambda: datetime.now(UTC))

    @pytest.fixture
    def send(self, storage: FakeStorage) -> Send:
        async def send(signed: Signed, body: bytes | None) -> tuple[int, bytes]:
            try:
                return 200, storage.send(signed, body or b"")
            except (Forbidden, NotFound) as error:
                return error.status, error.message.encode()

        return send
