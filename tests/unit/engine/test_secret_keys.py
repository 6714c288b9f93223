"""A new key for all secrets, by a server that dies at every possible place: nothing is lost, no key goes too early."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crucible.engine.context import Context
from crucible.engine.failpoints import POINTS
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.secret_keys import SecretKeys
from crucible.engine.secrets import Secrets, Whose
from crucible.engine.wakes import Wakes
from crucible.main import sealer_of
from crucible.model.account import Principal, Role, User
from crucible.model.errors import Busy, Forbidden, SecretsKeyMissing
from crucible.model.ids import TokenId, UserId
from crucible.model.policy import Policy
from crucible.model.secret import OwnerKind, Secret, SecretOwner
from crucible.model.storage import parse
from crucible.ports.store import Store
from crucible.seal import KeyRing
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemIds, SystemRandom
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage

ADMIN = Principal(UserId("admin"), Role.ADMIN, TokenId("t"))
OWN = SecretOwner(OwnerKind.USER, "admin")
VALUES = {f"SECRET_{number}": f"canary {number}".encode() for number in range(25)}  # more than one batch
PLACES = sorted(point for point in POINTS if "secret" in point or "seal_with" in point)


class Killed(BaseException):
    """As by kill -9: nobody catches it, and nothing is tidied up."""


class Dying:
    """Ends everything at the n-th time at one place."""

    def __init__(self, place: str, times: int) -> None:
        self._place, self._left = place, times

    def __call__(self, name: str) -> None:
        if name == self._place:
            self._left -= 1
            if self._left == 0:
                raise Killed


@asynccontextmanager
async def a_server(folder: Path, failpoint: Callable[[str], None] = lambda name: None) -> AsyncIterator[Context]:
    """On the same database and the same file of keys as the one before it."""
    store = await open_store(f"sqlite:///{folder}/db", failpoint=failpoint)
    clock = SystemClock()
    try:
        yield Context(
            store=store,
            streams=FileStreams(folder / "s", add_segment=store.add_segment, segments=store.segments, inline=True),
            sellers={("fake", "nowhere-1"): FakeCloud(clock=clock, random=random.Random(0), gpus=0)},
            clock=clock,
            ids=SystemIds(),
            random=SystemRandom(),
            keys=Keys(b"key"),
            hub=Hub(clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id="server",
            url="http://here",
            checkpoint_root="file:///shared",
            storage=FakeStorage(now=clock.now),
            storage_root=parse("s3://kept/root"),
            failpoint=failpoint,
            sealer=await sealer_of(folder, store),
        )
    finally:
        await store.close()


async def fill(folder: Path) -> None:
    async with a_server(folder) as context:
        now = context.clock.now()
        await context.store.add_user(User(id=ADMIN.user_id, name="admin", role=Role.ADMIN, created_at=now))
        for name, value in VALUES.items():
            await Secrets(context).set(ADMIN, Whose(), name, Secret(value))


async def opened(context: Context) -> dict[str, bytes]:
    found = {}
    for name in VALUES:
        one = await context.store.secret(OWN, name)
        assert one is not None
        found[name] = context.sealer.open(one.label, one.value).reveal()
    return found


def keys_in(folder: Path) -> int:
    return len((folder / "secrets-keys").read_text().split())


@pytest.mark.parametrize("times", [1, 2, 22])
@pytest.mark.parametrize("place", PLACES)
def test_killed_anywhere_a_rotation_loses_nothing_and_the_next_start_ends_it(
    tmp_path: Path, place: str, times: int
) -> None:
    async def scene() -> None:
        await fill(tmp_path)
        died = False
        try:
            async with a_server(tmp_path, Dying(place, times)) as context:
                await SecretKeys(context).rotate(ADMIN)
        except Killed:
            died = True
        async with a_server(tmp_path) as context:
            assert await opened(context) == VALUES
            await SecretKeys(context).settle()
            assert await opened(context) == VALUES
            assert keys_in(tmp_path) == 1 and len(await context.store.secret_keys()) == 1
        assert died == (times == 1 or place.startswith("commit.rewrap"))

    asyncio.run(scene())


def test_only_an_admin_changes_the_key_and_only_one_at_a_time(tmp_path: Path) -> None:
    async def scene() -> None:
        await fill(tmp_path)
        async with a_server(tmp_path) as context:
            keys = SecretKeys(context)
            with pytest.raises(Forbidden):
                await keys.rotate(Principal(UserId("ann"), Role.MEMBER, TokenId("t")))
            claim = await context.store.claim("secrets-key", "another server", context.claim_ttl)
            assert claim is not None
            with pytest.raises(Busy):
                await keys.rotate(ADMIN)
            await keys.settle()
            assert keys_in(tmp_path) == 1
            await context.store.release(claim)
            done = await keys.rotate(ADMIN)
            assert done.secrets == len(VALUES) and len(done.forgotten) == 1 and done.damaged == ()

    asyncio.run(scene())


def test_a_secret_that_does_not_open_keeps_its_key_and_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        await fill(tmp_path)
        async with a_server(tmp_path) as context:
            one = await context.store.secret(OWN, "SECRET_7")
            assert one is not None
            other = await context.store.secret(OWN, "SECRET_8")
            assert other is not None and await context.store.rewrap_secret(one, other.value)
            done = await SecretKeys(context).rotate(ADMIN)
            assert done.damaged == ("user:admin/SECRET_7",) and done.secrets == len(VALUES) - 1
            assert done.forgotten == () and keys_in(tmp_path) == 2

    asyncio.run(scene())


def test_a_server_without_the_keys_of_what_is_sealed_does_not_start(tmp_path: Path) -> None:
    async def started() -> Store:
        async with a_server(tmp_path) as context:
            return context.store

    asyncio.run(fill(tmp_path))
    file = tmp_path / "secrets-keys"
    kept = file.read_text()
    file.unlink()
    with pytest.raises(SecretsKeyMissing, match=r"there is no .*CRUCIBLE_SECRETS_KEY_FILE"):
        asyncio.run(started())
    assert not file.exists(), "a new key would hide the problem"
    KeyRing.made_in(file)
    with pytest.raises(SecretsKeyMissing, match="lacks them"):
        asyncio.run(started())
    file.write_text(kept)
    asyncio.run(started())
