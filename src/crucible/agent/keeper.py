"""Looks after the machines of one host: one JSON request on stdin, one JSON answer on stdout, and nothing stays running
but agents. A server sends it over SSH; it knows no server and no job.

    python crucible-agent.pyz --keep

All that it knows is in folders below ~/.crucible, so several servers may ask at once and any of them, the host and this
program may die at any line. It never starts a machine a second time."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time

from . import disk
from .keeper_machine import Busy, Host, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    from .keeper_machine import Folder

MAX_REQUEST_BYTES = 1 << 20
# What becomes part of a path.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
# A server that holds the lock for longer has stopped, not worked.
_LOCK_TIMEOUT_S = 10.0
_REACH_TIMEOUT_S = 3.0
_MAX_WORDS_BYTES = 16 << 10
# What may be better in a minute, as opposed to what somebody must repair.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class Malformed(Exception):
    """A request that no server of ours sends."""


def main() -> int:
    """Whatever happened is in the answer; another exit code means that there is none."""
    try:
        request = json.loads(sys.stdin.buffer.read(MAX_REQUEST_BYTES).decode("utf-8"))
        answer: Dict[str, Any] = {"ok": _answer(request)}
    except Refused as error:
        answer = _failure(error.code, str(error))
    except Busy as error:
        answer = _failure("busy", str(error))
    except (Malformed, ValueError, KeyError, TypeError) as error:
        answer = _failure("malformed", "%s: %s" % (type(error).__name__, error))
    except OSError as error:
        answer = _failure("trouble" if error.errno in _PASSING else "rejected", str(error))
    json.dump(answer, sys.stdout)
    return 0


def _answer(request: Dict[str, Any]) -> Any:
    operation = _OPERATIONS.get(request["op"])
    if operation is None:
        raise Malformed("there is no operation %r" % request["op"])
    if not _NAME.fullmatch(request["deployment"]):
        raise Malformed("%r is no deployment" % request["deployment"])
    host = Host(os.path.expanduser("~/.crucible"), request)
    if request["op"] in _WITHOUT_LOCK:
        return operation(host, request)
    os.makedirs(host.machines, mode=0o700, exist_ok=True)
    lock = disk.take_lock(os.path.join(host.root, "keeper.lock"), _LOCK_TIMEOUT_S)
    if lock is None:
        raise Busy("another server holds the lock of this host's machines")
    try:
        return operation(host, request)
    finally:
        os.close(lock)


# --- operations --------------------------------------------------------------------------------


def _facts(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    # Here, because the others are asked far more often.
    from . import keeper_facts

    return keeper_facts.gather(host.root)


def _make(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    """Room for all machines of an order that are to stand here, or for none. Nothing runs yet; what is not started soon
    is gone again."""
    found = host.order(request["order_id"])
    was_made = bool(found)
    if not was_made:
        host.clear_debris()
        found = host.make(request)
    started = any(folder.was_started() for folder in found)
    return {"was_made": was_made, "was_started": started, "machines": [host.look(folder) for folder in found]}


def _start(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    found = host.order(request["order_id"])
    if not found:
        raise Refused("unknown", "nothing was made for order %s, or it waited too long" % request["order_id"])
    host.start(found, may_undo=not any(folder.was_started() for folder in found))
    return {"machines": [host.look(folder) for folder in found]}


def _undo(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    """A purchase that was never reported; what has been started before stays unless `started` says otherwise."""
    found = host.order(request["order_id"])
    wanted = [folder for folder in found if request.get("started") or not folder.was_started()]
    left = [folder.record["id"] for folder in wanted if not host.destroy(folder)]
    if left:
        raise Refused("unknown", "what is left of %s cannot be removed yet" % ", ".join(left))
    return {}


def _list(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    folders = host.folders()
    host.expire(folders)
    host.resume(folders)
    seen = [(folder, host.look(folder)) for folder in folders if folder.was_started()]
    host.forget(seen)
    return {
        "machines": [machine for _, machine in seen],
        "taken": [_claim(folder) for folder in host.everybodys() if folder.is_live()],
        "disk_free_bytes": disk_free(host.root),
        "server_url": (disk.read_json(host.server_file) or {}).get("url"),
    }


def _claim(folder: Folder) -> Dict[str, Any]:
    return {"devices": folder.record["devices"], "exclusive": folder.record["exclusive"]}


def _delete(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    folder = host.folder(_machine_name(request))
    if folder is not None:
        host.stop(folder)
    return {}


def _words(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    folder = host.folder(_machine_name(request))
    if folder is None:
        return {"text": None}
    return {"text": folder.last_output(_MAX_WORDS_BYTES)}


def _reach(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    """Which of the servers this host can ask; None if none."""
    for url in request["urls"]:
        if _is_healthy(str(url)):
            return {"url": url}
    return {"url": None}


def _tell(host: Host, request: Dict[str, Any]) -> Dict[str, Any]:
    """Where agents of this host find a server from now on."""
    os.makedirs(os.path.dirname(host.server_file), mode=0o700, exist_ok=True)
    if (disk.read_json(host.server_file) or {}).get("url") != request["url"]:
        disk.write_json(host.server_file, {"url": request["url"], "at": time.time()})
    return {}


_OPERATIONS: Dict[str, Callable[[Host, Dict[str, Any]], Any]] = {
    "facts": _facts,
    "make": _make,
    "start": _start,
    "undo": _undo,
    "list": _list,
    "delete": _delete,
    "words": _words,
    "reach": _reach,
    "tell": _tell,
}
_WITHOUT_LOCK = ("facts", "reach", "words", "tell")


def _machine_name(request: Dict[str, Any]) -> str:
    name = str(request["machine_id"])
    if not _NAME.fullmatch(name):
        raise Malformed("%r is no machine" % name[:100])
    return name


def _is_healthy(url: str) -> bool:
    import http.client
    import urllib.parse

    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_REACH_TIMEOUT_S)
    try:
        connection.request("GET", parts.path.rstrip("/") + "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()


def _failure(code: str, message: str) -> Dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def disk_free(path: str) -> int:
    """Of the nearest folder that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize
