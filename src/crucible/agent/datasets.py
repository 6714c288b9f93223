"""Before a rank starts, the dataset and the inputs of its job come into the cache of the node: once, whole or not at
all, every byte checked. What was brought before is found again; what was half brought goes on."""

from __future__ import annotations

import os

from . import dataset_tree, disk, protocol
from .cache import Cache
from .courier import Courier, Declined, Unreachable
from .dataset_tree import BadDataset, Manifest
from .fetch import Cancelled, is_full
from .link import Backoff, Unanswered
from .restore import NoRoom
from .tree_fetch import Outdated, TreeFetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any, Dict, List, Optional, Tuple

    from .link import Link
    from .words import Words

# Another agent of this host may be bringing the same.
_LOOK_S = 0.1
# A page of signed requests.
_MAX_ANSWER_BYTES = 64 << 20
_TIMEOUT_S = 120.0
# It was removed, or cannot be had: asking again does not help.
_FINAL = (404, 422, 424)
# So often something in storage turned out to be missing, and was asked for anew.
_ASKED_ANEW = 3


class Datasets:
    def __init__(self, folder: str, boot: Dict[str, Any], words: Words) -> None:
        self._cache = Cache(str(boot.get("cache") or os.path.join(folder, "cache")))
        self._words = words

    def bring(
        self, attempt: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event
    ) -> Tuple[Dict[str, Any], List[str]]:
        """The launch as its rank sees it, with the folders of its inputs as `trees`, and what its log should say.
        `attempt` is its folder: what comes stays while that is there. Raises BadDataset, NoRoom, Cancelled, OSError."""
        os.makedirs(self._cache.folder, mode=0o755, exist_ok=True)
        self._cache.tidy()
        notes: List[str] = []
        env, trees = dict(launch["env"]), {}
        if launch["dataset"] is not None:
            tree = self._bring("dataset", launch["dataset"], attempt, launch, link, cancelled, notes)
            env.update(DATASET=tree, CRUCIBLE_DATASET=tree)
        for each in launch["inputs"]:
            trees[each["name"]] = self._bring("input", each, attempt, launch, link, cancelled, notes)
        return dict(launch, env=env, trees=trees), notes

    def _bring(
        self,
        what: str,
        wanted: Dict[str, Any],
        attempt: str,
        launch: Dict[str, Any],
        link: Link,
        cancelled: threading.Event,
        notes: List[str],
    ) -> str:
        """The folder of one tree."""
        digest = wanted["digest"]
        lock = self._take_lock(digest, cancelled)
        try:
            self._cache.use(digest, attempt)
            if not self._is_here(digest):
                called = "%s %s" % (what, wanted.get("name") or digest[:12])
                notes.append(_Bringing(self._cache, self._words, called, digest, launch, link, cancelled).run())
            self._cache.touch(digest)
            self._tell(digest, launch, link, cancelled)
        finally:
            os.close(lock)
        return os.path.join(self._cache.entry(digest), "tree")

    def _take_lock(self, digest: str, cancelled: threading.Event) -> int:
        while True:
            lock = disk.take_lock(self._cache.lock(digest))
            if lock is not None:
                return lock
            if cancelled.wait(_LOOK_S):
                raise Cancelled

    def _is_here(self, digest: str) -> bool:
        entry = self._cache.entry(digest)
        try:
            with open(os.path.join(entry, "manifest"), "rb") as file:
                manifest = Manifest(file.read(dataset_tree.MAX_MANIFEST_BYTES + 1), digest)
            if dataset_tree.is_whole(os.path.join(entry, "tree"), manifest):
                return True
        except (OSError, BadDataset):
            pass
        if os.path.isdir(entry):
            self._words.say("the dataset %s on this node is damaged: it is brought anew" % digest[:12])
            dataset_tree.remove(entry)
        return False

    def _tell(self, digest: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> None:
        """The server charges the job for what came: until it has heard it. What another job left untold stays so."""
        path = os.path.join(self._cache.entry(digest), "entry.json")
        entry = disk.read_json(path) or {"is_told": True}
        if entry["is_told"] or entry.get("job_id") != launch["job_id"]:
            return
        backoff, body = Backoff(), protocol.fetched_request(launch, digest, entry)
        while not cancelled.is_set():
            try:
                answer = link.call("POST", "/agent/v1/datasets/fetched", body)
                if answer.is_ok or answer.status in (400, 403, 404, 422):
                    disk.write_json(path, dict(entry, is_told=True))
                    return
                self._words.say_once("dataset", "the server says %s" % answer.complaint())
            except Unanswered as error:
                self._words.say_once("dataset", str(error))
            cancelled.wait(backoff.next_s())
        raise Cancelled


class _Bringing:
    """One tree, from storage to the cache."""

    def __init__(
        self,
        cache: Cache,
        words: Words,
        called: str,
        digest: str,
        launch: Dict[str, Any],
        link: Link,
        cancelled: threading.Event,
    ) -> None:
        """`called` is what people call it: "dataset images"."""
        self._cache = cache
        self._words = words
        self._launch = launch
        self._link = link
        self._cancelled = cancelled
        self._digest = digest
        self._name = called
        self._part = cache.part(self._digest)

    def run(self) -> str:
        """A line for the log of the rank."""
        state = self._state()
        try:
            reply = self._ask(0)
            manifest = self._manifest(reply)
            self._check_room(manifest)
            moved = self._fetch(manifest, reply)
            dataset_tree.finish(os.path.join(self._part, "tree"), manifest)
            self._keep(manifest, dict(state, source=reply.source, size_bytes=moved, job_id=self._launch["job_id"]))
        except OSError as error:
            if not is_full(error):
                raise
            raise NoRoom("no room for %s in %s: its disk is full" % (self._name, self._cache.folder)) from error
        return "%s came from storage (%d bytes)" % (self._name, moved)

    def _state(self) -> Dict[str, Any]:
        """Of what was half brought. After a reboot nobody knows which bytes reached the disk: then it begins anew."""
        path, boot_id = os.path.join(self._part, "state.json"), _boot_id()
        state = disk.read_json(path)
        if state is not None and state.get("boot_id") == boot_id:
            dataset_tree.thaw(os.path.join(self._part, "tree"))
        else:
            dataset_tree.remove(self._part)
            os.makedirs(os.path.join(self._part, "tree"), mode=0o755)
            state = {"boot_id": boot_id, "transfer": os.urandom(16).hex(), "is_told": False}
            disk.write_json(path, state)
        return state

    def _ask(self, first: int) -> protocol.TreeReply:
        """Until a server answers and the tree can be had: when to give up is for the server to say."""
        backoff, body = Backoff(), protocol.tree_request(self._launch, self._digest, first)
        while not self._cancelled.is_set():
            pause_s: Optional[float] = None
            try:
                answer = self._link.call("POST", "/agent/v1/datasets", body, _TIMEOUT_S, limit_bytes=_MAX_ANSWER_BYTES)
                if answer.status in _FINAL:
                    raise BadDataset("%s cannot be had: %s" % (self._name, answer.complaint()))
                if answer.is_ok:
                    reply = protocol.TreeReply(answer.data)
                    if reply.manifest is not None:
                        return reply
                    pause_s, problem = reply.wait_s, reply.reason
                else:
                    problem = "the server says %s" % answer.complaint()
            except (Unanswered, protocol.Malformed) as error:
                problem = str(error)
            self._words.say_once("dataset", problem)
            self._cancelled.wait(backoff.next_s() if pause_s is None else pause_s)
        raise Cancelled

    def _manifest(self, reply: protocol.TreeReply) -> Manifest:
        backoff, courier = Backoff(), Courier()
        try:
            while not self._cancelled.is_set():
                try:
                    assert reply.manifest is not None, "whoever asked has waited for it"
                    return Manifest(_whole(courier, reply.manifest), self._digest)
                except Unreachable as error:
                    self._words.say_once("dataset", "storage does not give the manifest: %s" % error)
                self._cancelled.wait(backoff.next_s())
                reply = self._ask(0)
            raise Cancelled
        finally:
            courier.close()

    def _check_room(self, manifest: Manifest) -> None:
        """Before anything is fetched: hours later it would be just as full."""
        there = TreeFetch.brought(self._part)
        needs = max(manifest.size - there, 0)
        if not self._cache.make_room(needs, self._digest):
            raise NoRoom(
                "no room for %s: it needs %d bytes more in %s, which other jobs use or which are not there; "
                "give the machine a larger disk" % (self._name, needs, self._cache.folder)
            )

    def _fetch(self, manifest: Manifest, reply: protocol.TreeReply) -> int:
        """Bytes that came over the line, all tries together."""
        fetch = TreeFetch(self._part, manifest, self._cancelled)
        first, missing, backoff = 0, 0, Backoff()
        while first < reply.total:
            try:
                fetch.run(reply.objects)
                first += len(reply.objects)
            except (Outdated, Unreachable) as error:
                missing += isinstance(error, Outdated) and error.is_missing
                if missing > _ASKED_ANEW:
                    raise BadDataset("%s: %s; add it again with --resend" % (self._name, error)) from error
                self._words.say_once("dataset", "storage does not give %s: %s" % (self._name, error))
                self._cancelled.wait(backoff.next_s())
            if first < reply.total:
                reply = self._ask(first)
        fetch.check_rest()
        return fetch.moved

    def _keep(self, manifest: Manifest, entry: Dict[str, Any]) -> None:
        """It is on the disk before it has its name."""
        with open(os.path.join(self._part, "manifest"), "wb") as file:
            file.write(manifest.data)
        disk.write_json(os.path.join(self._part, "entry.json"), entry)
        os.sync()
        os.rename(self._part, self._cache.entry(self._digest))
        disk.sync(self._cache.folder)


def _whole(courier: Courier, signed: protocol.Signed) -> bytes:
    """Raises Unreachable, also where storage declines: other signatures may do."""
    buffer, size = memoryview(bytearray(1 << 20)), 0
    parts: List[bytes] = []
    try:
        download = courier.get(signed, 0)
    except Declined as error:
        raise Unreachable(str(error)) from error
    while True:
        count = download.read_into(buffer)
        size += count
        if not count or size > dataset_tree.MAX_MANIFEST_BYTES:
            download.close()
            return b"".join(parts)
        parts.append(bytes(buffer[:count]))


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
