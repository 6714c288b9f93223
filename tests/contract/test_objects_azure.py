"""Azure, as azurite speaks it: the contract, and what goes wrong with containers and keys."""

import base64
import secrets
from datetime import UTC, datetime

import pytest

from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.model.errors import StorageRefused
from crucible.model.storage import Address, Scheme, parse
from crucible.testing.objects_contract import HOUR, ObjectsContract, keys, pieces, send_by_http
from storage_engines import StorageEngine

DOOR = FileDoor("http://127.0.0.1:1", Keys(b"secret").address, Keys(b"secret").right_of, lambda: datetime.now(UTC))


@pytest.fixture
def root(azurite: StorageEngine) -> Address:
    return Address(Scheme.AZ, "", azurite.bucket, f"te st/{secrets.token_hex(8)}")


class TestAzure(ObjectsContract):
    @pytest.fixture
    def storage(self, azurite: StorageEngine, root: Address) -> ObjectStorage:
        return ObjectStorage(DOOR, azurite.environ, own=root)

    async def test_a_put_says_what_kind_of_blob_it_makes(self, storage: ObjectStorage, root: Address) -> None:
        (put,) = await storage.open(root).sign("PUT", ["k"], HOUR)
        assert put.headers == {"x-ms-blob-type": "BlockBlob"}


class TestTrouble:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def refused(self, engine: StorageEngine, root: Address, words: str, **environ: str) -> None:
        objects = ObjectStorage(DOOR, engine.environ | environ, own=root).open(root)
        for call in (
            objects.put("k", b"x"),
            objects.put_stream("k", pieces(b"x")),
            keys(objects),
            objects.delete(["k"]),
        ):
            with pytest.raises(StorageRefused, match=words) as caught:
                await call
            assert "sig=" not in caught.value.message and environ.get("AZURE_STORAGE_ACCOUNT_KEY", "sig=") not in str(
                caught.value
            )

    async def test_a_container_that_is_not_there(self, azurite: StorageEngine) -> None:
        await self.refused(azurite, parse("az://no-such-container/x"), "there is no bucket no-such-container")

    async def test_a_key_that_is_wrong(self, azurite: StorageEngine, root: Address) -> None:
        wrong = base64.b64encode(b"wrong").decode()
        await self.refused(azurite, root, "refuses this server's credentials", AZURE_STORAGE_ACCOUNT_KEY=wrong)

    async def test_a_key_that_is_none(self, azurite: StorageEngine, root: Address) -> None:
        await self.refused(azurite, root, "is not set up rightly", AZURE_STORAGE_ACCOUNT_KEY="no base64!")
        objects = ObjectStorage(DOOR, azurite.environ | {"AZURE_STORAGE_ACCOUNT_KEY": "!"}, own=root).open(root)
        with pytest.raises(StorageRefused, match="AZURE_STORAGE_ACCOUNT_KEY"):
            await objects.sign("GET", ["k"], HOUR)

    async def test_without_an_accounts_key_only_plain_names_are_signed(
        self, azurite: StorageEngine, root: Address
    ) -> None:
        known = {name: value for name, value in azurite.environ.items() if name != "AZURE_STORAGE_ACCOUNT_KEY"}
        objects = ObjectStorage(DOOR, known, own=root).open(root)
        with pytest.raises(StorageRefused, match="can only be signed with the account's key"):
            await objects.sign("GET", ["ü"], HOUR)

    async def test_a_connection_string_says_everything(self, azurite: StorageEngine, root: Address) -> None:
        known = azurite.environ
        text = (
            f"DefaultEndpointsProtocol=http;AccountName={known['AZURE_STORAGE_ACCOUNT_NAME']};"
            f"AccountKey={known['AZURE_STORAGE_ACCOUNT_KEY']};BlobEndpoint={azurite.endpoint};"
        )
        objects = ObjectStorage(DOOR, {"AZURE_STORAGE_CONNECTION_STRING": text}, own=root).open(root)
        await objects.put("k", b"x")
        (get,) = await objects.sign("GET", ["k"], HOUR)
        assert await send_by_http(get) == (200, b"x")
