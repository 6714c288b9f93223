"""The agent protocol, version 1, from the node's side: plain dictionaries in and out.

The server's shapes are in `crucible.wire.agent`; golden messages tie the two together. A reply that does not have the
expected form raises Malformed: whoever sent it is not our server."""

from __future__ import annotations

import base64
import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

PROTOCOL = 1
# The server takes 4 MiB. Each kind may pass its limit by one record, and the rest must fit too.
LOG_BYTES = 1 << 20
METRIC_BYTES = 1 << 19
CHECKPOINT_BYTES = 1 << 19
_MAX_REASON = 4096

# The ids of an attempt and of a task become folder names.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_DIGEST = re.compile("[0-9a-f]{64}")
# The name of an input becomes the name of a folder.
_INPUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# The file of a secret, below a folder of ours.
_SECRET_FILE = re.compile(r"(?!/)(?!(?:.*/)?\.{1,2}(?:/|$))[A-Za-z0-9._/-]{1,200}")
_SLOT = re.compile("[0-9]{5}-[0-9]{5}-[0-9a-f]{16}")


class Malformed(Exception):
    pass


# --- what the server says -------------------------------------------------------------------


class Enrolled:
    def __init__(self, data: Any) -> None:
        self.node_id = _text(data, "node_id")
        self.node_key = _text(data, "node_key")
        self.report_every_s = _positive(data, "report_every_s")
        self.orphan_after_s = _positive(data, "orphan_after_s")
        self.servers = _texts(data, "servers")


class RankWork:
    def __init__(self, data: Any) -> None:
        self.launch = launch_from(_value(data, "launch", dict))
        self.stop = _value(data, "stop", bool)
        self.stop_reason = str(data.get("stop_reason") or "told to stop")
        self.stop_within_s = float("inf") if data.get("stop_grace_s") is None else _value(data, "stop_grace_s", float)
        self.keeps_outputs = bool(data.get("keeps_outputs", False))
        self.token = _text(data, "token")

    @property
    def key(self) -> Tuple[str, int]:
        return self.launch["attempt_id"], self.launch["rank"]


class ChannelWish:
    """A person wants something beside a rank; the server at `url` waits for us to come for it."""

    def __init__(self, data: Any) -> None:
        self.id = _text(data, "id")
        self.url = _text(data, "url")
        self.request: Dict[str, Any] = _value(data, "request", dict)
        self.key: Tuple[str, int] = (_text(self.request, "attempt_id"), _value(self.request, "rank", int))
        check = _CHANNEL_FIELDS.get(_text(self.request, "kind"))
        if not _ID.fullmatch(self.id) or check is None:
            raise Malformed("a channel is asked for as %r" % self.id)
        for name, kind in check.items():
            _value(self.request, name, kind)
        if self.request.get("tty") is not None:
            self._check_terminal(self.request["tty"])

    def _check_terminal(self, tty: Any) -> None:
        _text(tty, "term")
        for name in ("rows", "columns"):
            if not 0 <= _value(tty, name, int) <= 0xFFFF:
                raise Malformed("a terminal has %r %s" % (tty[name], name))


_CHANNEL_FIELDS: Dict[str, Dict[str, type]] = {
    "exec": {"argv": list, "stdin": bool},
    "copy_in": {"path": str},
    "copy_out": {"path": str},
    "forward": {"port": int},
}


def _wishes(data: Any) -> List[ChannelWish]:
    """Those that this agent understands: one of a newer server must not keep it from its work."""
    found = []
    for each in data if isinstance(data, list) else []:
        try:
            found.append(ChannelWish(each))
        except Malformed:
            continue
    return found


class Work:
    def __init__(self, data: Any) -> None:
        self.version = _text(data, "version")
        self.unchanged = bool(data.get("unchanged", False))
        self.ranks = [RankWork(each) for each in data.get("ranks") or []]
        self.retire = bool(data.get("retire", False))
        self.channels = _wishes(data.get("channels") or [])
        self.servers = _texts(data, "servers")


class Reply:
    """To a report. `acks` maps (attempt, rank) to the next log and metric numbers expected."""

    def __init__(self, data: Any) -> None:
        self.servers = _texts(data, "servers")
        self.work_version: Optional[str] = data.get("work_version")
        self.acks: Dict[Tuple[str, int], Tuple[int, int]] = {}
        for ack in data.get("acks") or []:
            key = (_text(ack, "attempt_id"), _value(ack, "rank", int))
            self.acks[key] = (_value(ack, "log", int), _value(ack, "metrics", int))


class Signed:
    """One request to storage that needs no credentials. A secret until it expires."""

    def __init__(self, data: Any, method: str) -> None:
        self.method = _text(data, "method")
        self.url = _text(data, "url")
        self.headers: Dict[str, str] = data.get("headers") or {}
        is_plain = isinstance(self.headers, dict) and all(isinstance(each, str) for each in self.headers.values())
        if self.method != method or not self.url.startswith(("http://", "https://")) or not is_plain:
            raise Malformed("a signed %s is not one" % method)


class SlotReply:
    """Where a checkpoint may go: its parts, its manifest, and word of how the rank ended."""

    def __init__(self, data: Any) -> None:
        self.slot = _text(data, "slot")
        self.prefix = _text(data, "prefix")
        self.manifest = Signed(data.get("manifest"), "PUT")
        self.result = Signed(data.get("result"), "PUT")
        self.parts = [Signed(each, "PUT") for each in _value(data, "parts", list)]
        self.lives_s = _positive(data, "lives_s")
        if not _SLOT.fullmatch(self.slot):
            raise Malformed("a slot is named %r" % self.slot)


class StoredShard:
    def __init__(self, data: Any) -> None:
        self.manifest = _text(data, "manifest")
        self.objects = [Signed(each, "GET") for each in _value(data, "objects", list)]


class Candidate:
    """A checkpoint to resume from."""

    def __init__(self, data: Any) -> None:
        self.step = _value(data, "step", int)
        self.shards = [StoredShard(each) for each in _value(data, "shards", list)]


class TreeObject:
    """An object of a dataset: bytes of files, one after another. `holds` are (sha256 of the file, offset, size)."""

    def __init__(self, data: Any) -> None:
        self.name = _text(data, "name")
        self.size = _value(data, "size", int)
        self.signed = Signed(data.get("signed"), "GET")
        self.holds: List[Tuple[str, int, int]] = []
        for each in _value(data, "holds", list):
            if not isinstance(each, list) or [type(part) for part in each] != [str, int, int]:
                raise Malformed("an object of a dataset holds %r" % (each,))
            self.holds.append((each[0], each[1], each[2]))
        if not _DIGEST.fullmatch(self.name):
            raise Malformed("an object of a dataset is named %r" % self.name)


class TreeReply:
    """Where a dataset can be had; without a manifest: wait and ask again."""

    def __init__(self, data: Any) -> None:
        manifest = data.get("manifest") if isinstance(data, dict) else None
        self.manifest = None if manifest is None else Signed(manifest, "GET")
        self.wait_s = None if manifest is not None else _positive(data, "wait_s")
        self.reason = _text(data, "reason")
        self.source = _text(data, "source")
        self.total = _value(data, "total", int)
        self.objects = [TreeObject(each) for each in _value(data, "objects", list)]


class OutputReply:
    """Which objects of a tree storage lacks, each with where to put it; and where its manifest goes, if that lacks."""

    def __init__(self, data: Any) -> None:
        self.missing: Dict[str, Signed] = {}
        for each in _value(data, "missing", list):
            self.missing[_text(each, "name")] = Signed(each.get("signed"), "PUT")
        manifest = data.get("manifest")
        self.manifest = None if manifest is None else Signed(manifest, "PUT")


def secrets_from(data: Any) -> Dict[str, bytes]:
    """By name. Nothing of an answer that makes no sense is repeated."""
    try:
        return {_text(each, "name"): base64.b64decode(each["value"]) for each in _value(data, "items", list)}
    except (Malformed, KeyError, TypeError, ValueError):
        raise Malformed("secrets were expected") from None


def candidate_from(data: Any) -> Optional[Candidate]:
    if not isinstance(data, dict) or "candidate" not in data:
        raise Malformed("a candidate was expected")
    return None if data["candidate"] is None else Candidate(data["candidate"])


def launch_from(data: Dict[str, Any]) -> Dict[str, Any]:
    """The fields a rank needs, checked. Kept as a dictionary because it is stored as one."""
    launch = {name: _value(data, name, kind) for name, kind in _LAUNCH.items()}
    for name, kind in _LAUNCH_OPTIONAL.items():
        launch[name] = None if data.get(name) is None else _value(data, name, kind)
    launch["carries_checkpoints"] = bool(data.get("carries_checkpoints", False))
    launch["volumes"] = data.get("volumes") or {}
    if not isinstance(launch["volumes"], dict) or not all(isinstance(v, str) for v in launch["volumes"].values()):
        raise Malformed("volumes hold something that is not text")
    if launch["dataset"] is not None and not _DIGEST.fullmatch(_text(launch["dataset"], "digest")):
        raise Malformed("a dataset is not named by its sha256")
    launch["inputs"] = data.get("inputs") or []
    for each in _value(launch, "inputs", list):
        if not _DIGEST.fullmatch(_text(each, "digest")) or not _INPUT.fullmatch(_text(each, "name")):
            raise Malformed("an input is called %r" % (each,))
    launch["secrets"] = [_secret_use(each) for each in data.get("secrets") or []]
    if launch["output"] is not None:
        for name, kind in _OUTPUT.items():
            _value(launch["output"], name, kind)
    if launch["container"] is not None:
        _text(launch["container"], "image")
    if not _ID.fullmatch(launch["attempt_id"]) or not _ID.fullmatch(launch["task_id"]) or launch["rank"] < 0:
        raise Malformed("a rank is named %r %r" % (launch["attempt_id"], launch["rank"]))
    if launch["code"] is not None and not _DIGEST.fullmatch(launch["code"]):
        raise Malformed("a package is named %r instead of by its sha256" % launch["code"])
    for name in ("argv", "devices", "setup"):
        if not all(isinstance(each, str) for each in launch[name]):
            raise Malformed("%s holds something that is not text" % name)
    if not launch["argv"] or not all(isinstance(v, str) for v in launch["env"].values()):
        raise Malformed("a launch needs a command, and text in its environment")
    return launch


_LAUNCH = {
    "job_id": str,
    "task_id": str,
    "attempt_id": str,
    "number": int,
    "generation": int,
    "rank": int,
    "argv": list,
    "env": dict,
    "devices": list,
    "setup": list,
    "checkpoints": str,
    "checkpoint_keep": int,
    "stop_grace_s": float,
}
_LAUNCH_OPTIONAL = {
    "code": str,
    "timeout_s": float,
    "progress_pattern": str,
    "progress_total": int,
    "python": str,
    "container": dict,
    "dataset": dict,
    "output": dict,
    "params": dict,
}
_OUTPUT = {"max_bytes": int, "max_files": int, "within_s": float}


def _secret_use(data: Any) -> Dict[str, Any]:
    use = {"name": _text(data, "name"), "env": data.get("env"), "file": data.get("file")}
    for name in ("env", "file"):
        if use[name] is not None:
            _text(use, name)
    if use["file"] is not None and not _SECRET_FILE.fullmatch(use["file"]):
        raise Malformed("the file of a secret is called %r" % use["file"])
    return use


def _value(data: Any, name: str, kind: type) -> Any:
    value = data.get(name) if isinstance(data, dict) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed("%s is %r instead of %s" % (name, value, kind.__name__))
    return value


def _text(data: Any, name: str) -> str:
    return str(_value(data, name, str))


def _positive(data: Any, name: str) -> float:
    value = float(_value(data, name, float))
    if value <= 0:
        raise Malformed("%s is %r; it must be positive" % (name, value))
    return value


def _texts(data: Any, name: str) -> List[str]:
    if not isinstance(data, dict):
        raise Malformed("an object was expected")
    return [each for each in data.get(name) or [] if isinstance(each, str)]


# --- what the agent says --------------------------------------------------------------------


def enrol(boot: Dict[str, Any], identity: Dict[str, Any], boot_id: str, version: str, facts: Dict[str, Any]) -> bytes:
    return dumps(
        {
            "protocol": PROTOCOL,
            "order_id": boot["order_id"],
            "machine_id": boot["machine_id"],
            "agent_id": identity["agent_id"],
            "boot_id": boot_id,
            "agent_version": version,
            "address": boot["address"],
            "rendezvous_port": identity["rendezvous_port"],
            "facts": facts,
        }
    )


def rank_report(launch: Dict[str, Any], state: str, result: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    """`result` is what the supervisor wrote, or so far only when it started."""
    reason = result.get("reason")
    return dict(
        more,
        attempt_id=launch["attempt_id"],
        generation=launch["generation"],
        rank=launch["rank"],
        state=state,
        exit_code=result.get("exit_code"),
        signal=result.get("signal"),
        reason=None if reason is None else str(reason)[:_MAX_REASON],
        timed_out=bool(result.get("timed_out")),
        started_at_ms=result.get("started_at_ms"),
        ended_at_ms=result.get("ended_at_ms"),
    )


def stream_batch(launch: Dict[str, Any], log: List[bytes], metrics: List[Dict[str, Any]]) -> bytes:
    """`log` is encoded already, frame by frame: its size had to be known."""
    head = {"attempt_id": launch["attempt_id"], "number": launch["number"], "rank": launch["rank"]}
    return b'%s,"log":[%s],"metrics":%s}' % (dumps(head)[:-1], b",".join(log), dumps(metrics))


def of_rank(launch: Dict[str, Any], event: Dict[str, Any]) -> Dict[str, Any]:
    """A checkpoint or progress, with whose it is."""
    return dict(event, attempt_id=launch["attempt_id"], rank=launch["rank"])


def secrets_request(launch: Dict[str, Any]) -> bytes:
    return dumps({"attempt_id": launch["attempt_id"]})


def slot_request(launch: Dict[str, Any], slot: Optional[str], first: int, count: int) -> bytes:
    """A new slot; or, with `slot`, that one signed anew."""
    whose = {"attempt_id": launch["attempt_id"], "rank": launch["rank"]}
    return dumps(dict(whose, slot=slot, first=first, count=count))


def candidate_request(launch: Dict[str, Any], skip: int) -> bytes:
    """`skip` newer ones were not usable."""
    return dumps({"attempt_id": launch["attempt_id"], "skip": skip})


def tree_request(launch: Dict[str, Any], digest: str, first: int) -> bytes:
    """Objects from number `first` on."""
    return dumps({"attempt_id": launch["attempt_id"], "digest": digest, "first": first})


def output_request(launch: Dict[str, Any], digest: str, objects: List[Tuple[str, int]], resend: bool) -> bytes:
    """Which of these objects, by name and size, are missing; with `resend`, all of them signed anew."""
    named = [{"name": name, "size": size} for name, size in objects]
    return dumps({"attempt_id": launch["attempt_id"], "digest": digest, "objects": named, "resend": resend})


def whole_request(launch: Dict[str, Any], digest: str) -> bytes:
    return dumps({"attempt_id": launch["attempt_id"], "digest": digest})


def fetched_request(launch: Dict[str, Any], digest: str, entry: Dict[str, Any]) -> bytes:
    whose = {"attempt_id": launch["attempt_id"], "digest": digest}
    return dumps(dict(whose, **{name: entry[name] for name in ("transfer", "source", "size_bytes")}))


def report(
    boot_id: str,
    ranks: List[Dict[str, Any]],
    streams: List[bytes],
    checkpoints: List[Dict[str, Any]],
    progress: List[Dict[str, Any]],
    usage: Dict[str, float],
) -> bytes:
    rest = {"boot_id": boot_id, "ranks": ranks, "checkpoints": checkpoints, "progress": progress, "usage": usage}
    return b'%s,"streams":[%s]}' % (dumps(rest)[:-1], b",".join(streams))


def dumps(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
