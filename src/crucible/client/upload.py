"""Sends a tree to storage: first which of its objects are missing, then those, several at a time, by signed requests,
then the manifest, then its name. Whatever ends it half way leaves no dataset, and a second run goes on where it ended.
Addresses are secrets: they appear in no message."""

import hashlib
import http.client
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from crucible.client.dataset_shapes import Dataset, SignedPut, Upload
from crucible.client.tree import LocalTree, changed
from crucible.model.dataset_tree import Piece, Stowed
from crucible.model.errors import Conflict, StorageFailed, StorageRefused

CONNECTIONS = 4
BLOCK_BYTES = 1 << 20
TIMEOUT_S = 60.0
# What the server signs in one answer.
PAGE = 500
# Signatures expire; broken lines are tried again after so long.
AGAIN_AFTER_S = (0.2, 1.0, 5.0)
EXPIRED = (400, 401, 403)
# Objects of a tree may be removed with another dataset between the question and the registration.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Sent:
    """How far it is."""

    objects: int
    of_objects: int
    sent_bytes: int  # over the line; what storage had already is not among them


@dataclass(frozen=True, slots=True)
class Asks:
    """What the server is asked."""

    upload: Callable[[str, Sequence[Stowed], bool], Upload]  # of a digest, these objects, also those that are there
    register: Callable[[str], Dataset]


OnSent = Callable[[Sent], None]


class TreeUpload:
    def __init__(self, local: LocalTree, asks: Asks, on_sent: OnSent, *, resend: bool = False) -> None:
        self._local = local
        self._asks = asks
        self._on_sent = on_sent
        self._resend = resend
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._done = self._bytes = 0
        self._objects = local.tree.objects

    def run(self) -> Dataset:
        """Raises TreeChanged, StorageFailed, StorageRefused."""
        for number in range(ROUNDS):
            self._send()
            try:
                return self._asks.register(self._local.tree.digest)
            except Conflict:
                if number == ROUNDS - 1:
                    raise
        raise AssertionError("unreachable")

    def _send(self) -> None:
        self._done, digest = 0, self._local.tree.digest
        for start in range(0, len(self._objects), PAGE):
            page = self._objects[start : start + PAGE]
            sent = self._send_page(page, self._asks.upload(digest, page, self._resend))
            self._note(len(page) - sent, 0)
        manifest = self._asks.upload(digest, (), False)["manifest"]
        if manifest is not None:
            self._with_patience(lambda: put(manifest, len(self._local.manifest), iter([self._local.manifest])))

    def _send_page(self, page: Sequence[Stowed], said: Upload) -> int:
        """How many had to be sent."""
        wanted = {one["name"]: one for one in said["missing"]}
        todo = [one for one in page if one.name in wanted]
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            sending = [threads.submit(self._send_one, one, wanted[one.name]) for one in todo]
            try:
                for each in sending:
                    each.result()
            except BaseException:
                self._is_over.set()  # the others stop where they are: nothing of theirs is stored
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return len(todo)

    def _send_one(self, one: Stowed, signed: SignedPut) -> None:
        current = [signed]

        def send() -> None:
            put(current[0], one.size, self._body(one))

        def sign_again() -> None:
            fresh = self._asks.upload(self._local.tree.digest, (one,), True)["missing"]
            current[0] = fresh[0]

        self._with_patience(send, sign_again)
        self._note(1, one.size)

    def _with_patience(self, send: Callable[[], None], sign_again: Callable[[], None] = lambda: None) -> None:
        for pause in (*AGAIN_AFTER_S, None):
            try:
                send()
                return
            except Refused as error:
                if pause is None or error.status not in EXPIRED:
                    raise error.told() from None
                sign_again()
            except (OSError, http.client.HTTPException) as error:
                if pause is None:
                    raise StorageFailed(f"storage broke off: {type(error).__name__}; add it again to go on") from None
            time.sleep(pause)

    def _note(self, objects: int, size: int) -> None:
        with self._lock:
            self._done += objects
            self._bytes += size
            said = Sent(self._done, len(self._objects), self._bytes)
        self._on_sent(said)

    # --- what is sent -------------------------------------------------------------------------------------

    def _body(self, one: Stowed) -> Iterator[bytes]:
        """The bytes of its files, as they were when they were hashed: a file that is another one now ends it."""
        for piece in one.pieces:
            yield from self._piece(piece)

    def _piece(self, piece: Piece) -> Iterator[bytes]:
        source, root = self._local.sources[piece.sha256], self._local.root
        try:
            handle = os.open(root / source.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            raise changed(root, source.path, "vanished") from None
        try:
            digest, at = hashlib.sha256(), piece.offset
            while at < piece.offset + piece.size and not self._is_over.is_set():
                block = os.pread(handle, min(BLOCK_BYTES, piece.offset + piece.size - at), at)
                if not block:
                    break
                digest.update(block)
                at += len(block)
                yield block
            now = os.fstat(handle)
        finally:
            os.close(handle)
        if self._is_over.is_set():
            raise StorageFailed("it was broken off")
        is_same = (now.st_size, now.st_mtime_ns) == (source.size, source.changed_ns)
        is_whole = piece.size < source.size or digest.hexdigest() == piece.sha256
        if not is_same or not is_whole or at != piece.offset + piece.size:
            raise changed(root, source.path, "changed")


class Refused(Exception):
    def __init__(self, status: int) -> None:
        self.status = status

    def told(self) -> StorageFailed | StorageRefused:
        if self.status in (*EXPIRED, 404, 409):
            return StorageRefused(
                f"storage answers {self.status} to what the server signed; `crucible doctor` may help"
            )
        return StorageFailed(f"storage answers {self.status}; is there room? Add it again to go on")


def put(signed: SignedPut, size: int, body: Iterator[bytes]) -> None:
    """One request. A body that breaks off is never stored: the other side waits for the rest of it. Raises Refused,
    OSError, HTTPException, and whatever `body` does."""
    parts = urlsplit(signed["url"])
    line = _line(parts.scheme, parts.hostname or "", parts.port)
    try:
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        line.putrequest("PUT", target, skip_accept_encoding=True)
        for name, value in {**signed["headers"], "Content-Length": str(size)}.items():
            line.putheader(name, value)
        line.endheaders()
        try:
            for block in body:
                line.send(block)
        except ConnectionError:
            pass  # it may have answered before it had everything: the answer says why
        reply = line.getresponse()
        reply.read(BLOCK_BYTES)
        if not 200 <= reply.status < 300:
            raise Refused(reply.status)
    finally:
        line.close()


def _line(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
