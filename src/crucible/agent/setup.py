"""The setup lines of a job without an image, as the first supervisor of an attempt runs them: in an environment that an
earlier attempt made of the same lines, or in one that is made now."""

from __future__ import annotations

import os

from . import disk, environment
from .environment import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .supervise import Supervisor

# To make an empty environment: a second, or half a minute on a slow disk.
_MAKE_S = 300.0


class Setup:
    def __init__(self, folder: str, spec: Dict[str, Any], secrets: Dict[str, str], supervisor: Supervisor) -> None:
        """The lines see the `secrets` too; what they are is no part of what an environment is known by."""
        self._attempt = os.path.dirname(folder)
        self._spec = spec
        self._secrets = secrets
        self._supervisor = supervisor
        self._place: Optional[Place] = None

    def run(self) -> Dict[str, Any]:
        """Why the lines failed, or None, and the environment that they ran in, for all ranks of the attempt here."""
        try:
            reason = self._run()
        except OSError as error:
            reason = "setup failed: %s" % error
        return {"reason": reason, "environment": None if self._place is None else self._place.folder}

    def command(self, found: Dict[str, Any]) -> Tuple[List[str], Dict[str, str]]:
        """The program and its variables; the environment is held from now on. Raises OSError."""
        folder, spec = found["environment"], self._spec
        if folder is None:
            return spec["argv"], dict(spec["env"], **self._secrets)
        if self._place is None:
            self._place = Place(folder)
        self._place.use()
        env = dict(environment.variables(spec["env"], folder), **self._secrets)
        return environment.words_in(spec["argv"], spec["python"], folder), env

    def _run(self) -> Optional[str]:
        lines = disk.read_lines(self._spec["setup"])
        kind = self._take(lines)
        if kind == "kept":
            return None
        before = environment.snapshot(self._spec["cwd"]) if kind == "new" else {}
        reason, is_done = self._run_lines()
        if kind == "new" and self._place is not None and is_done:
            self._settle(self._place, lines, before)
        return reason

    def _take(self, lines: List[str]) -> Optional[str]:
        """`kept`, `new` or `own`, with the place; None without one."""
        spec = self._spec
        key = environment.key_of(lines, spec["python"], spec["env"], spec["cwd"], spec["code"])
        place = Place(os.path.join(spec["environments"], key))
        kind = place.take()
        while kind is None and self._supervisor.pause():
            kind = place.take()
        if kind == "own":
            place = Place(os.path.join(self._attempt, "environment"))
        if kind == "kept":
            self._supervisor.say("setup: the environment of an earlier run is used (%s)" % key[:12])
        elif kind is None or not self._make(place):
            place.leave()
            return None
        self._place = place
        return kind

    def _make(self, place: Place) -> bool:
        """False if this Python cannot: the lines run as they are then."""
        python = self._spec["python"]
        argv = [python, "-I", "-c", environment.MAKE, place.folder]
        exit_code, lines = self._supervisor.call(argv, self._spec["env"], _MAKE_S, False)
        if exit_code == 0:
            return True
        if exit_code is not None:
            last = lines[-1] if lines else "it did not say why"
            self._supervisor.say("setup: %s cannot make environments, so its own is changed: %s" % (python, last))
        disk.remove(place.folder)
        return False

    def _run_lines(self) -> Tuple[Optional[str], bool]:
        """Why they failed; and whether they were run to a good end."""
        env = self._spec["env"]
        if self._place is not None:
            env = environment.variables(env, self._place.folder)
        argv = ["/bin/sh", "-eu", self._spec["setup"]]
        exit_code, signum = self._supervisor.run_lines(argv, dict(env, **self._secrets))
        if exit_code == 0:
            return None, True
        return "setup failed (%s)" % ("exit %s" % exit_code if signum is None else "signal %s" % signum), False

    def _settle(self, place: Place, lines: List[str], before: Dict[str, Any]) -> None:
        """What is whole is kept for others; what is not, the next one makes anew."""
        leaves = bool(self._supervisor.leftovers())
        why = environment.why_not_kept(before, self._spec["cwd"], place.folder, leaves)
        if why is None:
            place.complete(lines)
        else:
            place.disown()
            self._supervisor.say("setup: the environment is not kept for other runs: %s" % why)
