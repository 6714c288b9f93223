"""Reads a tree of files: every name, size and sha256, by several processes. It changes nothing, and refuses what cannot
be in a dataset: links that lead out of the tree, devices, names that are not UTF-8."""

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import Queue
from typing import NamedTuple, Self

from crucible.client import hash_worker
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry, Tree, leads_inside
from crucible.model.errors import InvalidRequest, PlatformError

MAX_PROCESSES = 8
# Files that a process is given at once: enough to be worth the talk, few enough that all end together.
BATCH_FILES = 256
BATCH_BYTES = 32 << 20
# A smaller tree is read before a process has started.
ALONE_FILES = 200
ALONE_BYTES = 16 << 20


class TreeChanged(PlatformError):
    """Somebody writes to it: nothing was registered."""

    code = "tree_changed"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that holds certain bytes, as it was when they were read."""

    path: str
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class LocalTree:
    root: Path
    tree: Tree
    manifest: bytes
    sources: dict[str, Source]  # by sha256


class _Found(NamedTuple):
    path: str
    size: int


OnRead = Callable[[int, int], None]


def read_tree(root: Path, on_read: OnRead | None = None) -> LocalTree:
    """`on_read` hears of every batch: files, bytes. Raises InvalidRequest, TreeChanged."""
    folder = root.resolve()
    if not folder.is_dir():
        raise InvalidRequest(f"{root} is no folder; name the folder whose files are the dataset")
    entries: list[Entry] = []
    sources: dict[str, Source] = {}
    links: list[Entry] = []
    for found, line in _read(folder, links, on_read or (lambda files, size: None)):
        entry, changed_ns = _entry(root, found, line)
        entries.append(entry)
        sources.setdefault(entry.sha256, Source(found.path, entry.size, changed_ns))
    tree, manifest = dataset_tree.tree_of([*entries, *links])
    return LocalTree(folder, tree, manifest, sources)


def _entry(root: Path, found: _Found, line: str) -> tuple[Entry, int]:
    if line.startswith("!"):
        why = line[2:]
        if why in (hash_worker.CHANGED, hash_worker.VANISHED):
            raise changed(root, found.path, why)
        raise InvalidRequest(f"{root / found.path} cannot be read: {why}; nothing was registered")
    size, changed_ns, is_program, sha256 = line.split()
    return Entry(found.path, int(size), sha256, is_program == "1"), int(changed_ns)


def changed(root: Path, path: str, how: str) -> TreeChanged:
    return TreeChanged(
        f"{root / path} {how} while it was read; nothing was registered: add it again when nobody writes to it"
    )


# --- listing ------------------------------------------------------------------------------------------------


def _listed(folder: Path, links: list[Entry]) -> Iterator[_Found]:
    """Files; what is a link goes to `links`."""
    left = [""]
    while left:
        below = left.pop()
        with _scanned(folder, below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.is_symlink():
                    links.append(_link(folder, path))
                elif entry.is_dir(follow_symlinks=False):
                    left.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield _Found(path, _size(entry, folder, path))
                else:
                    raise InvalidRequest(f"{folder / path} is neither a file, a folder nor a link; move it elsewhere")
                _check_name(folder, path)


def _scanned(folder: Path, below: str) -> "os._ScandirIterator[str]":
    try:
        return os.scandir(folder / below)
    except FileNotFoundError:
        raise changed(folder, below, hash_worker.VANISHED) from None
    except OSError as error:
        raise InvalidRequest(f"{folder / below} cannot be read: {error.strerror}; nothing was registered") from None


def _size(entry: "os.DirEntry[str]", folder: Path, path: str) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        raise changed(folder, path, hash_worker.VANISHED) from None


def _link(folder: Path, path: str) -> Entry:
    target = os.readlink(folder / path)  # noqa: PTH115 - a Path would tidy its words
    if not leads_inside(path, target):
        raise InvalidRequest(
            f"the link {folder / path} leads to {target!r}, out of the tree; replace it by what it leads to"
        )
    return Entry(path, link=target)


def _check_name(folder: Path, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{os.fsencode(folder / path)!r} has a name that is no UTF-8; rename it") from None


# --- reading ------------------------------------------------------------------------------------------------


def _read(folder: Path, links: list[Entry], on_read: OnRead) -> Iterator[tuple[_Found, str]]:
    first: list[_Found] = []
    size = 0
    listing = _listed(folder, links)
    for found in listing:
        first.append(found)
        size += found.size
        if len(first) > ALONE_FILES or size > ALONE_BYTES:
            yield from _by_processes(folder, _batches(chain(first, listing)), on_read)
            return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for found in first:
            yield found, hash_worker.line_of(handle, os.fsencode(found.path))
    finally:
        os.close(handle)
    on_read(len(first), size)


def _batches(listing: Iterator[_Found]) -> Iterator[list[_Found]]:
    batch: list[_Found] = []
    size = 0
    for found in listing:
        batch.append(found)
        size += found.size
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _by_processes(folder: Path, batches: Iterator[list[_Found]], on_read: OnRead) -> Iterator[tuple[_Found, str]]:
    """A thread for each process hands it batches and takes its answers."""
    lock, answers = threading.Lock(), Queue[list[tuple[_Found, str]] | None]()

    def work(worker: _Worker) -> None:
        try:
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                answers.put(list(zip(batch, worker.ask(batch), strict=True)))
        finally:
            answers.put(None)

    count = min(os.cpu_count() or 1, MAX_PROCESSES)
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(folder)) for _ in range(count)]
        threads = stack.enter_context(ThreadPoolExecutor(count))
        working = [threads.submit(work, worker) for worker in workers]
        for worker in workers:
            stack.callback(worker.stop)
        while count:
            answer = answers.get()
            count -= answer is None
            yield from answer or ()
            on_read(len(answer or ()), sum(found.size for found, _ in answer or ()))
        for one in working:
            one.result()


class _Worker:
    def __init__(self, folder: Path) -> None:
        argv = [sys.executable, "-I", "-S", hash_worker.__file__, str(folder)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        self._process.communicate()

    def stop(self) -> None:
        """Whoever waits for its answer hears of it."""
        self._process.kill()

    def ask(self, batch: Sequence[_Found]) -> list[str]:
        names = b"\0".join(os.fsencode(found.path) for found in batch)
        into, out = self._process.stdin, self._process.stdout
        assert into is not None and out is not None  # both are pipes
        try:
            into.write(struct.pack("!I", len(names)) + names)
            into.flush()
            size = struct.unpack("!I", out.read(4))[0]
            lines = out.read(size).decode().split("\n")
        except (OSError, struct.error):
            raise InvalidRequest("a process that reads the files was ended; add the dataset again") from None
        return lines
