"""The memory of a server without the server: its database, its files, and what keeps and forgets."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from crucible.blobs.file_door import FileDoor
from crucible.blobs.files import FileBlobs
from crucible.blobs.storage import ObjectStorage
from crucible.engine.context import Context
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.privacy import Privacy
from crucible.engine.retention import Retention
from crucible.engine.trees import Trees
from crucible.engine.wakes import Wakes
from crucible.model.account import Principal, Role
from crucible.model.ids import TokenId, UserId
from crucible.model.policy import Policy
from crucible.model.storage import parse
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemIds, SystemRandom

ROOT = Principal(UserId("root"), Role.ADMIN, TokenId("root-token"))


class ShiftedClock(SystemClock):
    """As the system's, so much later."""

    def __init__(self, by: timedelta = timedelta()) -> None:
        super().__init__()
        self.by = by

    def now(self) -> datetime:
        return super().now() + self.by


@dataclass(frozen=True)
class Memory:
    context: Context
    store: Store
    streams: FileStreams
    blobs: FileBlobs
    retention: Retention
    privacy: Privacy
    clock: ShiftedClock


@asynccontextmanager
async def memory(
    url: str,
    folder: Path,
    *,
    failpoint: Callable[[str], None] = lambda name: None,
    policy: Policy | None = None,
    ahead: timedelta = timedelta(),
) -> AsyncIterator[Memory]:
    clock, keys = ShiftedClock(ahead), Keys(b"secret")
    store = await open_store(url, failpoint=failpoint)
    streams = FileStreams(folder / "streams", add_segment=store.add_segment, segments=store.segments)
    blobs = FileBlobs(folder / "packages")
    root = parse((folder / "objects").as_uri())
    door = FileDoor("http://localhost", keys.address, keys.right_of, clock.now)
    context = Context(
        store=store,
        streams=streams,
        sellers={},
        clock=clock,
        ids=SystemIds(),
        random=SystemRandom(),
        keys=keys,
        hub=Hub(clock),
        wakes=Wakes(),
        policy=policy or Policy(),
        server_id="test",
        url="http://localhost",
        checkpoint_root=(folder / "checkpoints").as_uri(),
        storage=ObjectStorage(door, {}, endpoints=(), own=root, regions=()),
        storage_root=root,
        failpoint=failpoint,
    )
    retention = Retention(context, blobs, Trees(context))
    try:
        yield Memory(context, store, streams, blobs, retention, Privacy(context, retention), clock)
    finally:
        await streams.close()
        await store.close()
