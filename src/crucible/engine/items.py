"""Finds the items of a job when it is submitted: numbers, a list, files of its dataset or code, lines of one of those,
or objects below an address. What is not there is said now, not after a machine was bought."""

import asyncio
import tarfile
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import IO

from crucible.core import datasets
from crucible.core.items import CODE, Items, LineEnds, listed, matching, no_such_file, nothing_found, too_many
from crucible.core.shards import MOST_NAMED
from crucible.engine.context import Context
from crucible.engine.trees import LIST_S, Trees
from crucible.model.dataset import Pin, pin_of, version_name
from crucible.model.dataset_tree import Tree
from crucible.model.errors import InvalidRequest, PlatformError, StorageFailed, StorageRefused, UnknownDataset
from crucible.model.ids import Digest
from crucible.model.job import Job
from crucible.model.spec import JobSpec
from crucible.model.storage import Address, Scheme, parse
from crucible.ports.blobs import Blobs

# A file of lines is read once, while somebody waits for the answer.
MAX_LINES_BYTES = 2 << 30
READ_BYTES = 8 << 20
# The same as an agent unpacks.
MAX_UNPACKED_BYTES = 8 << 30
MAX_FILES = 100_000
# Of a package, before it goes to the disk.
KEPT_BYTES = 16 << 20

Chunks = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Source:
    """Files that a node has before its program starts."""

    name: str  # for messages
    files: dict[str, int]  # their sizes
    read: Callable[[str], Chunks]


class ItemFinder:
    def __init__(self, context: Context, trees: Trees, blobs: Blobs) -> None:
        self._context = context
        self._trees = trees
        self._blobs = blobs

    async def find(self, job: Job, spec: JobSpec) -> Items:
        """Raises InvalidRequest with the field if there is none; StorageRefused and StorageFailed."""
        shards = spec.shards
        if shards is None:
            raise InvalidRequest("the job has no `shards`", field="job.shards")
        if shards.count is not None:
            return Items(shards.count)
        if shards.items:
            return await asyncio.to_thread(listed, shards.items, "job.shards.items")
        if shards.prefix is not None:
            return await self._objects(shards.prefix, "job.shards.prefix")
        if shards.glob is not None:
            return await self._files(job, spec, shards.glob, "job.shards.glob")
        if shards.lines is not None:
            return await self._lines(job, spec, shards.lines, "job.shards.lines")
        raise InvalidRequest("there are no items: give count, items, glob, prefix or lines", field="job.shards")

    # --- files ----------------------------------------------------------------------------------------------

    async def _files(self, job: Job, spec: JobSpec, glob: str, field: str) -> Items:
        source = await self._source(job, spec, field)
        found = await asyncio.to_thread(matching, glob, source.files)
        if not found:
            raise nothing_found(glob, source.name, list(source.files), field)
        return await asyncio.to_thread(listed, found, field)

    async def _lines(self, job: Job, spec: JobSpec, path: str, field: str) -> Items:
        source = await self._source(job, spec, field)
        if path not in source.files:
            raise no_such_file(path, source.name, list(source.files), field)
        if source.files[path] > MAX_LINES_BYTES:
            most = f"{MAX_LINES_BYTES >> 30} GiB"
            raise InvalidRequest(f"{path} is larger than {most}; cut it into files and use glob", field=field)
        ends = LineEnds(field)
        async for chunk in source.read(path):
            await asyncio.to_thread(ends.feed, chunk)
        found = ends.items()
        if not found.count:
            raise InvalidRequest(f"{path} in {source.name} is empty: there are no lines to work on", field=field)
        return found

    async def _source(self, job: Job, spec: JobSpec, field: str) -> Source:
        pin = pin_of(job.dataset_uri)
        if pin is not None:
            return await self._dataset(pin)
        if spec.data.dataset is not None:
            hint = "register it (crucible dataset add) and name it as dataset://NAME, or ship the files with the code"
            raise InvalidRequest(f"the files of {spec.data.dataset} cannot be listed here; {hint}", field=field)
        if job.code_digest is None:
            raise InvalidRequest("the job has neither a dataset nor code that its items could be in", field=field)
        return await self._package(job.code_digest)

    async def _dataset(self, pin: Pin) -> Source:
        dataset = await self._context.store.dataset(version_name(pin.name, pin.digest))
        if dataset is None:
            raise UnknownDataset(f"the dataset {pin.name} was removed; add it again", field="job.data.dataset")
        tree, _ = await self._trees.tree(dataset.uri, dataset.digest)
        files = {entry.path: entry.size for entry in tree.entries if entry.link is None}
        return Source(f"the dataset {pin.name}", files, lambda path: self._tree_file(dataset.uri, tree, path))

    async def _tree_file(self, uri: str, tree: Tree, path: str) -> Chunks:
        sha256 = next(entry.sha256 for entry in tree.entries if entry.path == path)
        objects = self._trees.at(uri)
        for name, start, size in places_of(tree, sha256):
            for at in range(start, start + size, READ_BYTES):
                length = min(READ_BYTES, start + size - at)
                yield await self._trees.within(objects.get(datasets.object_key(name), start=at, length=length))

    async def _package(self, digest: Digest) -> Source:
        with tempfile.SpooledTemporaryFile(KEPT_BYTES) as file:
            async for chunk in self._blobs.get(digest):
                file.write(chunk)
            files = await asyncio.to_thread(members, file)
        return Source(CODE, files, lambda path: self._package_file(digest, path))

    async def _package_file(self, digest: Digest, path: str) -> Chunks:
        with tempfile.SpooledTemporaryFile(KEPT_BYTES) as file, tempfile.SpooledTemporaryFile(KEPT_BYTES) as member:
            async for chunk in self._blobs.get(digest):
                file.write(chunk)
            await asyncio.to_thread(extract, file, path, member)
            while piece := member.read(READ_BYTES):
                yield piece

    # --- objects --------------------------------------------------------------------------------------------

    async def _objects(self, prefix: str, field: str) -> Items:
        try:
            address = self.place_of(prefix)
            names = await self._trees.within(self._list(address, field), LIST_S)
        except (InvalidRequest, StorageRefused, StorageFailed) as error:
            raise _at(error, field) from error
        if not names:
            raise InvalidRequest(f"there is no object below {prefix}; check the address", field=field)
        return await asyncio.to_thread(listed, names, field)

    def place_of(self, prefix: str) -> Address:
        """Raises StorageRefused for what is the server's own: others' work is kept there."""
        address = parse(prefix)
        own = [self._context.storage_root, *self._context.region_storage.values()]
        if address.scheme is Scheme.FILE or any(
            is_within(address, place) or is_within(place, address) for place in own
        ):
            raise StorageRefused(f"{prefix} is no place that a job may read; name a bucket of your own")
        return address

    async def _list(self, address: Address, field: str) -> list[str]:
        names = []
        async for facts in self._context.storage.open(address).list():
            names.append(address.below(facts.key).uri)
            if len(names) > MOST_NAMED:
                raise too_many(field)
        return names


def is_within(inner: Address, outer: Address) -> bool:
    same = (inner.scheme, inner.host, inner.bucket) == (outer.scheme, outer.host, outer.bucket)
    return same and f"{inner.prefix}/".startswith(f"{outer.prefix}/" if outer.prefix else "")


def places_of(tree: Tree, sha256: str) -> list[tuple[str, int, int]]:
    """Where the bytes of a file are, in their order: object, first byte there, how many."""
    found = []
    for one in tree.objects:
        at = 0
        for piece in one.pieces:
            if piece.sha256 == sha256:
                found.append((piece.offset, one.name, at, piece.size))
            at += piece.size
    return [(name, at, size) for _, name, at, size in sorted(found)]


def members(file: IO[bytes]) -> dict[str, int]:
    """Regular files of a package, with their sizes. Raises InvalidRequest for what an agent would not unpack either."""
    found: dict[str, int] = {}
    total = 0
    with _opened(file) as archive:
        for member in _each(archive):
            total += member.size
            if len(found) >= MAX_FILES or total > MAX_UNPACKED_BYTES:
                raise InvalidRequest("the shipped code has too many files or is too large to look into")
            if member.isreg():
                found[member.name.removeprefix("./")] = member.size
    return found


def extract(file: IO[bytes], path: str, target: IO[bytes]) -> None:
    with _opened(file) as archive:
        for member in _each(archive):
            if member.isreg() and member.name.removeprefix("./") == path:
                source = archive.extractfile(member)
                while source is not None and (piece := source.read(READ_BYTES)):
                    target.write(piece)
                target.seek(0)
                return


def _opened(file: IO[bytes]) -> tarfile.TarFile:
    file.seek(0)
    try:
        return tarfile.open(fileobj=file, mode="r:gz")
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InvalidRequest(f"the shipped code is no readable package: {error}") from None


def _each(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    try:
        yield from archive
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InvalidRequest(f"the shipped code is no readable package: {error}") from None


def _at(error: PlatformError, field: str) -> PlatformError:
    return type(error)(f"{field}: {error.message}", field=field)
