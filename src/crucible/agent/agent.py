"""From a folder with boot.json to a running node: one agent per folder, enrolled once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from . import VERSION, disk, facts
from .handover import forbid_core
from .identity import ORPHAN_AFTER_S, Identity, Refused
from .link import Link, Servers
from .node import Node
from .notices import LONGEST_S, Notices
from .rendezvous import Rendezvous
from .words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, NoReturn, Optional

_BOOT_FIELDS = ("enrolment_token", "order_id", "machine_id", "address")
# Ends after which the machine serves nobody. Told to close, somebody else decides.
_FINAL = ("retired", "orphaned", "gone", "outlived")
# Whoever takes a machine back does it soon, and charges less than if we switched it off. It must not stay on for ever.
_TAKEN = "taken"
_TAKEN_WITHIN_S = LONGEST_S + 60.0
_POWER_OFF_TIMEOUT_S = 60.0


def main(folder: str) -> int:
    folder = os.path.abspath(folder)
    lock = disk.take_lock(os.path.join(folder, "lock"), disk.LOOK_S)
    words = Words(os.path.join(folder, "agent.log"))
    if lock is None:
        print("another agent already runs in %s; nothing to do" % folder, file=sys.stderr)
        return 0
    os.ftruncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())
    boot = disk.read_json(os.path.join(folder, "boot.json")) or {}
    missing = [name for name in _BOOT_FIELDS if not isinstance(boot.get(name), str)]
    if missing:
        return _leave(folder, words, "cannot start: boot.json in %s lacks %s" % (folder, ", ".join(missing)), 1)
    early = _EarlyClose()
    signal.signal(signal.SIGTERM, early)
    try:
        end = _run(folder, boot, words, early)
    except _Closed:
        return _leave(folder, words, "closed before it was enrolled", 0)
    except Refused as error:
        return _leave(folder, words, "cannot enrol: %s" % error, 1, boot)
    except Exception as error:
        # Our bug; but a machine without an agent would cost money until somebody looks.
        _leave(folder, words, "broken: %s: %s" % (type(error).__name__, error), 1, boot)
        raise
    if end == _TAKEN and boot.get("power_off"):
        words.say("waiting for the provider to take the machine")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(_TAKEN_WITHIN_S)
        return _leave(folder, words, "taken, but the machine is still on", 0, boot)
    return _leave(folder, words, end, 0, boot if end in _FINAL else None)


class _Closed(BaseException):
    """Told to end before anything was started."""


class _EarlyClose:
    """Until there is a node to close. What a handler raises is lost where Python runs a finaliser, so it is noted."""

    def __init__(self) -> None:
        self.is_told = False

    def __call__(self, *_: object) -> NoReturn:
        self.is_told = True
        raise _Closed


def _run(folder: str, boot: Dict[str, Any], words: Words, early: _EarlyClose) -> str:
    """Until the node ends; returns how."""
    boot_id = os.urandom(8).hex()
    boot["core_limit"] = forbid_core()
    words.say("agent %s starts in %s (boot %s)" % (VERSION, folder, boot_id))
    identity = Identity(folder)
    servers = Servers(list(boot.get("servers") or []), identity.servers, boot.get("server_file"))
    rendezvous = Rendezvous(identity.rendezvous_port)
    identity.keep_port(rendezvous.port)
    machine = facts.gather()
    if not identity.is_enrolled:
        message = identity.message(boot, boot_id, VERSION, machine)
        within_s = float(boot.get("enrol_within_s") or ORPHAN_AFTER_S)
        identity.enrol(Link(servers, boot["enrolment_token"]), message, words, within_s)
        words.say("enrolled")
    # Everything below this machine is found by its name, supervisors included.
    os.environ["CRUCIBLE_MACHINE_ID"] = boot["machine_id"]
    node = Node(folder, _keep_program(folder), boot, boot_id, identity, servers, rendezvous, words)
    signal.signal(signal.SIGTERM, lambda *_: node.close())
    signal.signal(signal.SIGINT, lambda *_: node.close())
    if early.is_told:
        node.close()
    if machine["gpus"]:
        node.watch_gpus()
    if boot.get("metadata"):
        Notices(boot["metadata"], words, node.take_back).start()
    return node.run()


def _keep_program(folder: str) -> str:
    """A copy for the supervisors: the file we were started from may be replaced by a newer one at any time."""
    program = os.path.join(folder, "agent.pyz")
    temporary = program + ".tmp"
    with open(sys.argv[0], "rb") as source, open(temporary, "wb") as copy:
        copy.write(source.read())
    os.replace(temporary, program)
    return program


def _leave(folder: str, words: Words, reason: str, status: int, boot: Optional[Dict[str, Any]] = None) -> int:
    """Whoever started us finds the reason in a file. With `boot`, the machine goes too."""
    words.say("agent ends: %s" % reason)
    try:
        with open(os.path.join(folder, "agent.exit"), "w", encoding="utf-8") as file:
            file.write(reason + "\n")
    except OSError:
        pass
    if boot is not None:
        _power_off(boot.get("power_off"), words)
    return status


def _power_off(argv: object, words: Words) -> None:
    """A command given at boot; a machine that must stay on has none."""
    if not isinstance(argv, list) or not argv:
        return
    words.say("powering off: %s" % argv[0])
    try:
        subprocess.run([str(each) for each in argv], stdin=subprocess.DEVNULL, timeout=_POWER_OFF_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        words.say("could not power off: %s" % error)
