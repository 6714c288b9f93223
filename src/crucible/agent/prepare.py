"""Everything a rank needs before its supervisor starts: the code unpacked, the setup lines in a file, the environment,
the spec. Done in a thread of its own, because a package may take minutes to arrive."""

from __future__ import annotations

import os
import sys
import threading

from . import disk, package
from .fetch import Cancelled
from .link import Backoff, Link, Unanswered
from .processes import RANK_ID, RUN_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from .carrier import Carrier

# Of the agent's own environment a rank sees only how to find programs, certificates, proxies and home.
_INHERITED = {
    *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
}
_PYTHON = ("python", "python3")


class Preparation:
    """Shared by the ranks of a node: code is unpacked, setup lines are written and a checkpoint is brought once per
    attempt."""

    def __init__(self, folder: str, boot: Dict[str, Any], carrier: Carrier) -> None:
        self._packages = os.path.join(folder, "packages")
        self._boot = boot
        self._carrier = carrier
        self._lock = threading.Lock()
        os.makedirs(self._packages, mode=0o700, exist_ok=True)

    def prepare(self, folder: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> None:
        """Leaves `spec.json` in the rank's folder. Raises BadPackage, NoRoom, Cancelled, OSError."""
        attempt = os.path.dirname(folder)
        code = os.path.join(attempt, "code")
        with self._lock:
            if not os.path.isdir(code):
                self._make_code(code, launch["code"], link, cancelled)
            setup = _write_setup(attempt, launch["setup"])
        notes = self._carrier.restore(attempt, launch, link, cancelled) if launch["carries_checkpoints"] else []
        disk.write_json(os.path.join(folder, "spec.json"), dict(self._spec(folder, code, setup, launch), say=notes))

    def _make_code(self, code: str, digest: Optional[str], link: Link, cancelled: threading.Event) -> None:
        if digest is None:
            os.makedirs(code, mode=0o700)
            return
        backoff = Backoff()
        while True:
            if cancelled.is_set():
                raise Cancelled
            try:
                package.unpack(package.fetch(link, self._packages, digest), code)
                return
            except Unanswered:
                cancelled.wait(backoff.next_s())

    def _spec(self, folder: str, code: str, setup: Optional[str], launch: Dict[str, Any]) -> Dict[str, Any]:
        rank_id = "%s/%d" % (launch["attempt_id"], launch["rank"])
        return {
            "argv": command_line(launch["argv"]),
            "env": environment(os.environ, self._carrier.own_place(launch), folder, self._boot["machine_id"]),
            "cwd": code,
            "setup": setup,
            "timeout_s": launch["timeout_s"],
            "stop_grace_s": launch["stop_grace_s"],
            "cgroup": cgroup_path(self._boot.get("cgroup"), rank_id),
        }


def command_line(argv: List[str]) -> List[str]:
    """`python` means the one that runs the agent: the only one known to be there."""
    return [sys.executable, *argv[1:]] if argv[0] in _PYTHON else argv


def environment(inherited: Mapping[str, str], launch: Dict[str, Any], run_dir: str, machine_id: str) -> Dict[str, str]:
    """A little of ours, then the user's and the ranks' variables, then what nobody may change."""
    env = {name: value for name, value in inherited.items() if name in _INHERITED or name.startswith("LC_")}
    env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)])
    env.update(launch["env"])
    env.update(
        {
            "PYTHONUNBUFFERED": "1",
            "CUDA_VISIBLE_DEVICES": ",".join(launch["devices"]),
            "CRUCIBLE_TOKEN_FILE": os.path.join(run_dir, "token"),
            "CRUCIBLE_CHECKPOINTS": launch["checkpoints"],
            "CRUCIBLE_CHECKPOINT_KEEP": str(launch["checkpoint_keep"]),
            "CRUCIBLE_JOB_ID": launch["job_id"],
            "CRUCIBLE_TASK_ID": launch["task_id"],
            "CRUCIBLE_ATTEMPT_ID": launch["attempt_id"],
            "CRUCIBLE_ATTEMPT": str(launch["number"]),
            "CRUCIBLE_RANK": str(launch["rank"]),
            # By these the processes of a rank and of a machine are found again.
            RUN_DIR: run_dir,
            RANK_ID: "%s/%d" % (launch["attempt_id"], launch["rank"]),
            "CRUCIBLE_MACHINE_ID": machine_id,
        }
    )
    return env


def cgroup_path(parent: Optional[str], rank_id: str) -> Optional[str]:
    return None if parent is None else os.path.join(parent, "crucible-" + rank_id.replace("/", "-"))


def _write_setup(attempt: str, lines: List[str]) -> Optional[str]:
    if not lines:
        return None
    path = os.path.join(attempt, "setup.sh")
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(temporary, path)
    return path
