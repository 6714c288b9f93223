"""What this host has: GPUs and their MIG devices, CPUs, memory, disk, container runtimes, Python. A hung or missing
driver is a fact with a reason, not a failure."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

from .facts import memory
from .keeper import disk_free

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

_COLUMNS = "index,uuid,name,memory.total"
# A driver answers within a second, or hangs; a container runtime that is just starting takes a little longer.
_DRIVER_TIMEOUT_S = 5.0
_RUNTIME_TIMEOUT_S = 5.0
_MAX_ANSWER_BYTES = 256 << 10
_GPU_LINE = re.compile(r"GPU (\d+):")
_MIG_LINE = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+:\s+\(UUID: (MIG-[^)\s]+)\)")
_MIG_MEMORY = re.compile(r"(\d+)gb")


def gather(root: str) -> Dict[str, Any]:
    gpus, reason = find_gpus()
    return {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "hostname": socket.gethostname(),
        "user": _user(),
        "home": os.path.expanduser("~"),
        "address": _own_address(),
        "cpus": _cpus(),
        "memory_bytes": memory().get("MemTotal", 0),
        "disk_free_bytes": disk_free(root),
        "gpus": gpus,
        "gpus_reason": reason,
        "runtimes": {name: version for name in ("docker", "podman") for version in [_runtime(name)] if version},
    }


def find_gpus() -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """All or none, with the reason: half an answer would give out GPUs under wrong names."""
    answer, reason = _ask(["nvidia-smi", "--query-gpu=" + _COLUMNS, "--format=csv,noheader,nounits"])
    if answer is None:
        return [], reason
    gpus: List[Dict[str, Any]] = []
    for line in filter(None, (line.strip() for line in answer.splitlines())):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 4 or not cells[0].isdigit() or not cells[3].isdigit():
            return [], "nvidia-smi answered what is not understood: %r" % line[:100]
        gpus.append({"index": int(cells[0]), "uuid": cells[1], "name": cells[2], "memory_mib": int(cells[3])})
    if len({gpu["uuid"] for gpu in gpus}) != len(gpus):
        return [], "nvidia-smi gave one name to two GPUs"
    return _with_mig(gpus)


def _with_mig(gpus: List[Dict[str, Any]]) -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """A GPU that is cut into parts is given out by its parts only."""
    if not gpus:
        return [], "nvidia-smi lists no GPU"
    answer, reason = _ask(["nvidia-smi", "-L"])
    if answer is None:
        return [], reason
    parts: Dict[int, List[Dict[str, Any]]] = {}
    index = -1
    for line in answer.splitlines():
        whole, part = _GPU_LINE.match(line), _MIG_LINE.match(line)
        if whole:
            index = int(whole.group(1))
        elif part:
            room = _MIG_MEMORY.search(part.group(1))
            mib = int(room.group(1)) * 1024 if room else 0
            parts.setdefault(index, []).append({"uuid": part.group(2), "profile": part.group(1), "memory_mib": mib})
    return [dict(gpu, mig=parts.get(gpu["index"], [])) for gpu in gpus], None


def _ask(argv: List[str]) -> Tuple[Optional[str], Optional[str]]:
    """What a program says, or why it says nothing. One that cannot even be killed (it waits inside the driver) is left
    to a thread of its own."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except FileNotFoundError:
        return None, "%s is not installed" % argv[0]
    except OSError as error:
        return None, "%s cannot be started: %s" % (argv[0], error.strerror)
    answer: List[bytes] = []

    def listen() -> None:
        assert process.stdout is not None
        answer.append(process.stdout.read(_MAX_ANSWER_BYTES))
        process.wait()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    listener.join(_DRIVER_TIMEOUT_S)
    if listener.is_alive():
        _end(process)
        return None, "%s gave no answer within %g s: the driver may hang" % (argv[0], _DRIVER_TIMEOUT_S)
    text = b"".join(answer).decode("utf-8", "replace")
    if process.returncode:
        words = (text.strip().splitlines() or ["no output"])[0][:200]
        return None, "%s ended with code %d: %s" % (argv[0], process.returncode, words)
    return text, None


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, 9)
    except OSError:
        pass


def _runtime(name: str) -> Optional[str]:
    """Its version, if it is there and answers."""
    if shutil.which(name) is None:
        return None
    try:
        done = subprocess.run(
            [name, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_RUNTIME_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+(\.\d+)+", done.stdout.decode("utf-8", "replace"))
    return found.group(0) if done.returncode == 0 and found else None


def _own_address() -> Optional[str]:
    """Where the connection arrived: with a jump host in between, the address inside its network."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return str(os.getuid())


def _cpus() -> int:
    """Those that we may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
