"""Everything a rank needs before its supervisor starts: the code unpacked, the setup lines in a file, the environment,
the folders of its container, the spec. Done in a thread of its own, because a package may take minutes to arrive."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading

from . import cellar, container, disk, fence, keep, mounts, network, package
from .fetch import Cancelled
from .link import Backoff, Link, Unanswered
from .processes import MACHINE_ID, RANK_ID, RUN_DIR
from .secrets import bring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from .carrier import Carrier
    from .words import Words

# Of the agent's own environment a rank sees only how to find programs, certificates, proxies and home.
_INHERITED = {
    *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
}
_PYTHON = ("python", "python3")
# Inside the agent's file: what training scripts import.
_LIBRARY = "library"
# What is installed for the agent's own Python is found by its ranks too, and knows more than what we bring.
_HAS_CRUCIBLE = importlib.util.find_spec("crucible") is not None
# In a command line: the agent's own file.
AGENT = "@crucible-agent"


class Preparation:
    """Shared by the ranks of a node: code is unpacked, setup lines are written and a checkpoint is brought once per
    attempt."""

    def __init__(self, folder: str, boot: Dict[str, Any], carrier: Carrier, words: Words) -> None:
        self._packages = os.path.join(folder, "packages")
        self._environments = os.path.join(boot.get("cache") or os.path.join(folder, "cache"), "environments")
        self._boot = boot
        self._carrier = carrier
        self._folder = folder
        self._words = words
        self._lock = threading.Lock()
        os.makedirs(self._packages, mode=0o700, exist_ok=True)

    def prepare(self, folder: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> bytes:
        """Leaves `spec.json` in the rank's folder; returns what its supervisor must be handed. Raises BadPackage,
        NoRoom, Unusable, Cancelled, OSError."""
        mounts.check_volumes(launch["volumes"])
        launch = dict(launch, devices=own_names(launch["devices"], self._boot.get("device_names") or {}))
        attempt = os.path.dirname(folder)
        code = os.path.join(attempt, "code")
        with self._lock:
            if not os.path.isdir(code):
                self._make_code(code, launch["code"], link, cancelled)
            setup = _write_setup(attempt, launch["setup"])
            if setup is not None and launch["container"] is None:
                cellar.prune(self._environments)
        notes = self._carrier.restore(attempt, launch, link, cancelled) if launch["carries_checkpoints"] else []
        if launch["dataset"] is not None or launch["inputs"]:
            # Here, because an agent whose jobs read none starts without it.
            from .datasets import Datasets

            launch, said = Datasets(self._folder, self._boot, self._words).bring(attempt, launch, link, cancelled)
            notes = [*notes, *said]
            launch = _with_inputs(folder, launch)
        secrets = bring(folder, launch, link, cancelled)
        launch = dict(launch, env=dict(launch["env"], **secrets.public), private=secrets.folder)
        disk.write_json(os.path.join(folder, "spec.json"), dict(self._spec(folder, code, setup, launch), say=notes))
        return secrets.handed()

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
        machine_id, is_boxed = self._boot["machine_id"], launch["container"] is not None
        launch = self._carrier.own_place(launch)
        program = os.path.join(self._folder, "agent.pyz")
        return {
            "argv": with_program(launch["argv"], program) if is_boxed else command_line(launch, program),
            "env": self._environment(folder, launch, is_boxed),
            "cwd": code,
            "setup": setup,
            "python": python_of(launch),
            "code": launch["code"],
            "environments": self._environments,
            "container": mounts.describe(folder, code, setup, program, launch, machine_id) if is_boxed else None,
            "timeout_s": launch["timeout_s"],
            "stop_grace_s": launch["stop_grace_s"],
            "cgroup": cgroup_path(self._boot.get("cgroup"), rank_id),
            "core_limit": self._boot.get("core_limit"),
            "fence": fence.of(self._folder, self._boot),
        }

    def _environment(self, folder: str, launch: Dict[str, Any], is_boxed: bool) -> Dict[str, str]:
        env = (box_environment if is_boxed else environment)(os.environ, launch, folder, self._boot["machine_id"])
        if launch.get("params") is not None:
            env["CRUCIBLE_PARAMS"] = os.path.join(folder, "params.json")
            disk.write_json(env["CRUCIBLE_PARAMS"], launch["params"])
        with contextlib.suppress(OSError):  # a place that cannot be written is told of by whoever writes there
            os.makedirs(env["CRUCIBLE_KEEP"], mode=0o700, exist_ok=True)
        if launch.get("python") or launch.get("container") or not _HAS_CRUCIBLE:
            # A Python that may have nothing of Crucible: `crucible.train` comes along.
            env["PYTHONPATH"] = os.pathsep.join(
                filter(None, [env.get("PYTHONPATH"), os.path.join(self._folder, "agent.pyz", _LIBRARY)])
            )
        if launch["output"] is not None:
            env["CRUCIBLE_OUTPUT"] = os.path.join(folder, "output")
            os.makedirs(env["CRUCIBLE_OUTPUT"], mode=0o700, exist_ok=True)
        chosen = network.variables(self._boot["address"], launch["env"].get("MASTER_ADDR"))
        return {**chosen, **env}


def _with_inputs(folder: str, launch: Dict[str, Any]) -> Dict[str, Any]:
    """Each input under its name, wherever its tree is."""
    if not launch["trees"]:
        return launch
    inputs = os.path.join(folder, "inputs")
    os.makedirs(inputs, mode=0o755, exist_ok=True)
    for name, tree in launch["trees"].items():
        with contextlib.suppress(FileNotFoundError):  # of an agent that died here
            os.unlink(os.path.join(inputs, name))
        os.symlink(tree, os.path.join(inputs, name))
    return dict(launch, env=dict(launch["env"], CRUCIBLE_INPUTS=inputs))


def command_line(launch: Dict[str, Any], program: str) -> List[str]:
    """`python` means the one that the job names, or that runs the agent: the only one known to be there. `program` is
    the agent's file, which has the launchers of frameworks."""
    argv = with_program(launch["argv"], program)
    return [python_of(launch), *argv[1:]] if argv[0] in _PYTHON else argv


def with_program(argv: List[str], program: str) -> List[str]:
    return [program if each == AGENT else each for each in argv[:2]] + argv[2:]


def python_of(launch: Dict[str, Any]) -> str:
    return str(launch.get("python") or sys.executable)


def own_names(devices: List[str], names: Mapping[str, str]) -> List[str]:
    """What CUDA calls here what the server calls otherwise: who shares a machine is given some of its devices."""
    return [names.get(device, device) for device in devices]


def environment(inherited: Mapping[str, str], launch: Dict[str, Any], run_dir: str, machine_id: str) -> Dict[str, str]:
    """A little of ours, then the user's and the ranks' variables, then what nobody may change."""
    env = {name: value for name, value in inherited.items() if name in _INHERITED or name.startswith("LC_")}
    # What is installed beside the job's Python (torchrun, say) is found first.
    folders = [os.path.dirname(python_of(launch)), os.path.dirname(sys.executable), env.get("PATH", os.defpath)]
    env["PATH"] = os.pathsep.join(each for each in dict.fromkeys(folders) if each)
    env.update(launch["env"])
    env.update(_own(launch, run_dir, machine_id))
    return env


def box_environment(
    inherited: Mapping[str, str], launch: Dict[str, Any], run_dir: str, machine_id: str
) -> Dict[str, str]:
    """The same for a container, which has paths and a locale of its own."""
    env = {name: value for name, value in inherited.items() if name in container.INHERITED}
    if launch["container"].get("user") or os.getuid() != 0:
        env["HOME"] = "/tmp"  # noqa: S108 (inside: whoever the image does not know has no home)
    env.update(launch["env"])
    env.update(_own(launch, run_dir, machine_id))
    if mounts.has_gpus():
        env["CUDA_VISIBLE_DEVICES"] = container.visible_devices(launch["devices"])
    return env


def _own(launch: Dict[str, Any], run_dir: str, machine_id: str) -> Dict[str, str]:
    return {
        "PYTHONUNBUFFERED": "1",
        "CUDA_VISIBLE_DEVICES": ",".join(launch["devices"]),
        "CRUCIBLE_TOKEN_FILE": os.path.join(run_dir, "token"),
        "CRUCIBLE_CHECKPOINTS": launch["checkpoints"],
        "CRUCIBLE_KEEP": keep.folder_of(launch["checkpoints"]),
        "CRUCIBLE_CHECKPOINT_KEEP": str(launch["checkpoint_keep"]),
        "CRUCIBLE_JOB_ID": launch["job_id"],
        "CRUCIBLE_TASK_ID": launch["task_id"],
        "CRUCIBLE_ATTEMPT_ID": launch["attempt_id"],
        "CRUCIBLE_ATTEMPT": str(launch["number"]),
        "CRUCIBLE_RANK": str(launch["rank"]),
        # By these the processes of a rank and of a machine are found again.
        RUN_DIR: run_dir,
        RANK_ID: "%s/%d" % (launch["attempt_id"], launch["rank"]),
        MACHINE_ID: machine_id,
    }


def cgroup_path(parent: Optional[str], rank_id: str) -> Optional[str]:
    return None if parent is None else os.path.join(parent, "crucible-" + rank_id.replace("/", "-"))


def _write_setup(attempt: str, lines: List[str]) -> Optional[str]:
    if not lines:
        return None
    path = os.path.join(attempt, "setup.sh")
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        # Somebody else may be the user in a container.
        os.chmod(temporary, 0o644)
        file.write("\n".join(lines) + "\n")
    os.replace(temporary, path)
    return path
