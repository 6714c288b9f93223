"""The container of one rank, as its supervisor handles it: the runtime found, the image had, the program started in it,
and nothing left of it. What is called and what the answers mean is in `container`.

Beside the rank's folder, where the container does not see them:

    container-<r>.json   while one may exist: its name, its runtime, and the command that removes it
    container-<r>.env    its environment, 0600
"""

from __future__ import annotations

import os

from . import container, disk, removal
from .container import DOCKER, PODMAN
from .processes import MACHINE_ID, RANK_ID, RUN_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

    from .supervise import Supervisor

# A runtime that needs longer to say that it is there does not work.
_ANSWER_S = 30.0
# The limit of a start is the server's; this one only keeps a forgotten pull from running for ever.
_PULL_S = 6 * 3600.0
# Where podman looks for the small first process that `--init` means.
_INITS = (
    "/usr/libexec/podman/catatonit",
    "/usr/lib/podman/catatonit",
    "/usr/bin/catatonit",
    "/usr/local/bin/catatonit",
)


class Box:
    def __init__(self, folder: str, spec: Dict[str, Any], secrets: Dict[str, str], supervisor: Supervisor) -> None:
        """`secrets` are variables that no file may hold."""
        self._folder = folder
        self._secrets = secrets
        self._box: Dict[str, Any] = spec["container"]
        self._argv: List[str] = spec["argv"]
        self._setup: Optional[str] = spec["setup"]
        self._env: Dict[str, str] = spec["env"]
        self._supervisor = supervisor
        self._runtime: Optional[str] = None
        marks = {name: self._env[name] for name in (RANK_ID, RUN_DIR, MACHINE_ID)}
        self._client = dict(container.client_environment(os.environ), **marks)

    # --- before -----------------------------------------------------------------------------

    def find(self) -> Dict[str, Any]:
        """The runtime and the image's name there, for all ranks of the attempt; or the reason why not."""
        for runtime in container.candidates(self._box["runtime"]):
            code, lines = self._ask(container.question(runtime))
            if code == 0:
                found = {"runtime": runtime, "is_rootless": container.is_rootless(runtime, "".join(lines))}
                return dict(found, **self._have_image(runtime))
        return {"reason": container.no_runtime(self._box["runtime"])}

    def _have_image(self, runtime: str) -> Dict[str, Any]:
        image, policy = self._box["image"], self._box["pull"]
        if policy != "always" and self._ask(container.look_for(runtime, image))[0] == 0:
            return {"image": image, "reason": None}
        if policy == "never":
            return {"reason": "the image %s is not on the machine, and container.pull is never" % image}
        return self._pull(runtime, image)

    def _pull(self, runtime: str, image: str) -> Dict[str, Any]:
        name = container.full_name(image) if runtime == PODMAN else image
        self._supervisor.say("pulling the image %s with %s" % (name, runtime))
        argv = container.pull(runtime, name, self._auth(runtime))
        code, lines = self._supervisor.call(argv, self._client, _PULL_S, True)
        if code == 0:
            return {"image": name, "reason": None}
        return {"reason": container.pull_problem(image, lines)}

    def _ask(self, argv: List[str]) -> Tuple[Optional[int], List[str]]:
        return self._supervisor.call(argv, self._client, _ANSWER_S, False)

    def _auth(self, runtime: str) -> Optional[str]:
        """Docker wants a folder, with the file under a name of its own."""
        path: Optional[str] = self._box["auth_file"]
        if path is None or runtime == PODMAN:
            return path
        folder = self._beside("auth")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        link = os.path.join(folder, "config.json")
        if not os.path.lexists(link):
            os.symlink(path, link)
        return folder

    # --- its life ---------------------------------------------------------------------------

    def command(self, found: Dict[str, Any]) -> Tuple[List[str], Dict[str, str]]:
        """What starts it, and the environment of that. Noted first: from now on there may be a container. Raises
        Unusable, OSError."""
        runtime = self._runtime = found["runtime"]
        box = dict(self._box, image=found["image"], is_rootless=found["is_rootless"], has_init=_has_init(runtime))
        text, passed = container.split_environment(self._env, self._secrets)
        env_file = self._beside("env")
        _write_private(env_file, text)
        remove = container.remove(runtime, box["name"])
        disk.write_json(self._beside("json"), {"name": box["name"], "runtime": runtime, "remove": remove})
        argv = container.run(runtime, box, self._entered(), env_file, sorted(passed))
        return argv, dict(self._client, **passed)

    def _entered(self) -> List[str]:
        if not container.is_entered_by_shell(self._argv, self._setup is not None):
            return self._argv
        script = os.path.join(self._folder, "enter.sh")
        _write_private(script, container.ENTER, 0o644)
        return ["/bin/sh", script, self._setup or "", *self._argv]

    def verdict(self, exit_code: int, errors: Sequence[str]) -> Tuple[Optional[int], Optional[int], Optional[str]]:
        """How the program in it ended: exit code, signal, and why it did not even start."""
        try:
            with open(os.path.join(self._folder, "setup.failed"), encoding="ascii", errors="replace") as file:
                code, signum = container.outcome(int(file.read(16)))
            return code, signum, "setup failed (%s)" % ("exit %s" % code if signum is None else "signal %s" % signum)
        except (OSError, ValueError):
            pass
        code, signum = container.outcome(exit_code)
        return code, signum, container.refusal(code, errors)

    def remove(self) -> None:
        """Kills what runs in it, and waits for the runtime to say so."""
        if self._runtime is None:
            return
        if removal.remove(container.remove(self._runtime, self._box["name"]), self._client):
            self._runtime = None
            _unlink(self._beside("json"))
        _unlink(self._beside("env"))

    def _beside(self, what: str) -> str:
        return "%s.%s" % (removal.beside(self._folder), what)


def _has_init(runtime: str) -> bool:
    return runtime == DOCKER or any(os.path.exists(path) for path in _INITS)


def _write_private(path: str, text: str, mode: int = 0o600) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
