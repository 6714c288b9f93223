"""Fetches a checkpoint: the objects that hold its pieces, each by its signed address, into a folder that gets its name
when every byte was checked. Addresses are secrets: they appear in no message."""

import errno
import hashlib
import http.client
import secrets
import shutil
import ssl
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from crucible.client.shapes import CheckpointFiles, CheckpointObject, HeldPiece
from crucible.model.errors import Conflict, InvalidRequest, PlatformError, StorageFailed

CONNECTIONS = 4
BLOCK_BYTES = 1 << 20
TIMEOUT_S = 60.0
# A read that broke off is made again after so long; then the caller hears of it.
AGAIN_AFTER_S = (0.2, 1.0, 5.0)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CorruptDownload(PlatformError):
    """What is stored is not what was saved."""

    code = "corrupt_checkpoint"


class Download:
    def __init__(self, ask: Callable[[], CheckpointFiles]) -> None:
        """`ask` gives the files and fresh addresses."""
        self._ask = ask
        self._said = ask()

    def into(self, folder: str) -> str:
        """The path of the new folder. Raises Conflict if it is there already."""
        final = Path(folder).absolute() / f"step-{self._said['step']:09d}"
        if final.exists():
            raise Conflict(f"{final} is there already; name another folder with -d, or remove it")
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = final.parent / f".{final.name}.{secrets.token_hex(4)}.part"
        try:
            self._fill(draft)
            draft.rename(final)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return str(final)

    def _fill(self, draft: Path) -> None:
        draft.mkdir()
        paths = [draft / one for one in _places(self._said)]
        for path, file in zip(paths, self._said["files"], strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as made:
                made.truncate(file["size"])
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            for done in [threads.submit(self._fetch, n, paths) for n in range(len(self._said["objects"]))]:
                done.result()

    def _fetch(self, number: int, paths: list[Path]) -> None:
        for pause in (*AGAIN_AFTER_S, None):
            one = self._said["objects"][number]
            try:
                _store(one, paths)
                return
            except Refused as error:
                if pause is None:
                    raise StorageFailed(
                        f"storage answers {error.status} to what the server signed; try again"
                    ) from None
                self._said = self._ask()
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise StorageFailed(f"no room for it: {error.strerror}; name another folder") from None
                if pause is None:
                    raise StorageFailed(f"storage broke off: {type(error).__name__}; try again") from None
            time.sleep(pause)


class Refused(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def _places(said: CheckpointFiles) -> list[str]:
    """Where each file goes: shards may have files of the same name."""
    places = []
    for file in said["files"]:
        name = file["name"]
        if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise InvalidRequest(f"the checkpoint names {name!r}, which would leave the folder; nothing was fetched")
        places.append(name if said["shards"] == 1 else f"shard-{file['shard']:05d}/{name}")
    return places


def _store(one: CheckpointObject, paths: list[Path]) -> None:
    """Each piece into its file, if it is right."""
    rest = b""
    with closing(signed_body(one["url"], one["headers"])) as blocks:
        for held in one["holds"]:
            rest = _piece(held, paths[held["file"]], rest, blocks)
        rest = rest or next(blocks, b"")
    if rest:
        raise CorruptDownload(
            "an object is longer than it was when it was saved; `crucible checkpoints verify` says more"
        )


def _piece(held: HeldPiece, path: Path, rest: bytes, blocks: Iterator[bytes]) -> bytes:
    """Writes and checks one; returns what came beyond it."""
    digest, left = hashlib.sha256(), held["size"]
    with path.open("r+b") as file:
        file.seek(held["offset"])
        while left:
            block = rest or next(blocks, b"")
            if not block:
                raise CorruptDownload(f"{path.name} is shorter in storage than when it was saved")
            digest.update(block[:left])
            file.write(block[:left])
            left, rest = left - len(block[:left]), block[left:]
    if digest.hexdigest() != held["sha256"]:
        raise CorruptDownload(f"{path.name} has other content in storage than was saved")
    return rest


def signed_body(url: str, headers: Mapping[str, str]) -> Generator[bytes, None, None]:
    """What a signed address gives. Raises Refused, OSError, HTTPException."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        line: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, parts.port, timeout=TIMEOUT_S, context=context
        )
    else:
        line = http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    try:
        line.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=dict(headers))
        reply = line.getresponse()
        if reply.status != 200:
            raise Refused(reply.status)
        while block := reply.read(BLOCK_BYTES):
            yield block
        if reply.length:
            raise http.client.IncompleteRead(b"", reply.length)
    finally:
        line.close()
