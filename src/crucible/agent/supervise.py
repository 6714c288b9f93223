"""The parent of one rank: a process of its own, so that neither the rank nor its exit status nor a byte of its output
depends on the agent staying alive.

It runs the setup lines (once per attempt and node) or sees to the image of its container, starts the program, writes
what it prints into the journal, obeys the control pipe, enforces the timeout, and ends with `result.json` on disk when
nothing of the rank's tree lives any more. It talks to no network and knows no server. Files of its folder:

    spec.json        what to run; written by the agent, 0600
    lock             held while this process lives
    supervisor.json  written first: a rank is started once, ever
    control          a pipe with one JSON object per line: stop, kill, say
    log/             the journal
    started.json     the program runs
    stop             a stop or a notice came: {"reason", "deadline_ms"}
    result.json      how it ended
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque

from . import disk, private, processes
from .control import Control, drain
from .fence import GRACE_S, Watch
from .handover import taken
from .journal import ERR, OUT, SYS
from .output import Output, now_ms
from .program import CouldNotStart, Program, ignore_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

    from .boxes import Box
    from .control import Order
    from .setup import Setup

# What a program leaves behind when it ends is asked to end, and killed after this time.
LEFTOVER_GRACE_S = 2.0
# Between two looks while a tree is being killed, while another rank runs the setup, and while the disk refuses a note.
_QUICK_S = 0.02
_SETUP_POLL_S = 0.05
# Between two looks at a helper whose time is limited; what it prints is taken at once.
_HELPER_POLL_S = 0.2
# Of a helper and of a container that fails, so many lines may tell the reason.
_TAIL_LINES = 20
_RETRY_S = 1.0
# A program that prints line by line wakes us at most this often; its pipe holds a megabyte meanwhile.
_WAKE_EVERY_S = 0.01
_NEVER = float("inf")


def main(folder: str) -> int:
    handed = taken()
    lock = disk.take_lock(os.path.join(folder, "lock"), disk.LOOK_S)
    spec = disk.read_json(os.path.join(folder, "spec.json"))
    begun, result = os.path.join(folder, "supervisor.json"), os.path.join(folder, "result.json")
    if lock is None or spec is None or os.path.exists(begun) or os.path.exists(result):
        return 0
    ignore_signals()
    me = processes.find(os.getpid())
    disk.write_json(begun, {"pid": os.getpid(), "started": me.started if me else None})
    Supervisor(folder, spec, handed["env"], handed["values"]).run()
    return 0


class Supervisor:
    def __init__(self, folder: str, spec: Dict[str, Any], secrets: Dict[str, str], hidden: List[bytes]) -> None:
        """`secrets` are variables of the program and its setup lines; what is `hidden` must not be in the log."""
        self._folder = folder
        self._spec = spec
        self._secrets = secrets
        self._poll = select.poll()
        self._output = Output(os.path.join(folder, "log"), self._poll, hidden)
        self._program: Optional[Program] = None
        self._timeout_at = _NEVER if spec["timeout_s"] is None else time.monotonic() + spec["timeout_s"]
        self._fence = Watch(spec.get("fence"))
        self._kill_at = _NEVER
        self._stop_reason: Optional[str] = None
        self._timed_out = False
        self._has_killed = False
        self._started_at_ms: Optional[int] = None
        self._unwritten: Dict[str, Dict[str, Any]] = {}
        self._errors: Deque[str] = deque(maxlen=_TAIL_LINES)
        self._last_wake = 0.0
        self._cgroup = processes.make_cgroup(spec["cgroup"])
        self._control = Control(folder)
        self._poll.register(self._control.descriptor, select.POLLIN)
        self._woken = _wake_on_child_exit()
        self._poll.register(self._woken, select.POLLIN)
        self._is_subreaper = processes.become_subreaper()
        self._box = self._make_box()
        self._setup: Optional[Setup] = None
        # What the first rank found out for all: the image, or the environment of the setup lines.
        self._found: Dict[str, Any] = {}

    def run(self) -> None:
        for text in self._spec["say"]:
            self._output.say(text)
        try:
            reason = self._ready() or self._main()
        except CouldNotStart as error:
            self._output.say(str(error))
            self._finish(str(error), error.exit_code, None)
            return
        self._finish(*self._judge(reason))

    def _judge(self, reason: Optional[str]) -> Tuple[Optional[str], Optional[int], Optional[int]]:
        exit_code, signum = self._program.outcome() if self._program is not None else (None, None)
        if self._box is None or exit_code is None or self._started_at_ms is None:
            return reason, exit_code, signum
        exit_code, signum, problem = self._box.verdict(exit_code, list(self._errors))
        return reason or problem, exit_code, signum

    # --- before the program -----------------------------------------------------------------

    def _ready(self) -> Optional[str]:
        """Why the program must not start, or None. One rank finds out or runs the lines, the others wait for it."""
        script = self._spec["setup"]
        if self._box is not None:
            return self._once(os.path.join(os.path.dirname(self._folder), "image"), self._box.find)
        if script is None:
            return None
        from .setup import Setup

        self._setup = Setup(self._folder, self._spec, self._secrets, self)
        return self._once(script, self._setup.run)

    def _once(self, path: str, find: Callable[[], Dict[str, Any]]) -> Optional[str]:
        held = self._wait_for_turn(path + ".lock")
        if held is None:
            return "stopped before it started: %s" % self._stop_reason
        try:
            found = disk.read_json(path + ".json")
            if found is None:
                found = find()
                # Nobody takes for done what was stopped.
                if self._stop_reason is not None:
                    return "stopped during setup: %s" % self._stop_reason
                if found["reason"]:
                    self._output.say(found["reason"])
                self._note(path + ".json", found)
        finally:
            os.close(held)
        self._found = found
        return str(found["reason"]) if found["reason"] else None

    def _wait_for_turn(self, path: str) -> Optional[int]:
        while self._stop_reason is None:
            held = disk.take_lock(path)
            if held is not None:
                return held
            self.pause()
        return None

    def pause(self) -> bool:
        """Waits a little; False once it is to stop."""
        self._wait(_SETUP_POLL_S)
        self._enforce()
        return self._stop_reason is None

    def say(self, text: str) -> None:
        self._output.say(text)

    def leftovers(self) -> List[processes.Process]:
        """What lives of the tree."""
        return self._tree() if self._reap() else []

    def run_lines(self, argv: List[str], env: Dict[str, str]) -> Tuple[Optional[int], Optional[int]]:
        """Exit code or signal, neither if it was stopped. What it leaves running may serve the program: it lives as
        long as the rank."""
        program = self._start(argv, env, SYS, SYS)
        while program.status is None:
            self._turn()
        if self._stop_reason is not None:
            return None, None
        exit_code, signum = program.outcome()
        if exit_code == 0:
            self._program = None
        return exit_code, signum

    def call(
        self, argv: List[str], env: Dict[str, str], limit_s: float, is_shown: bool
    ) -> Tuple[Optional[int], List[str]]:
        """A helper, run to its end: exit code, None if it was stopped or too slow, and its last lines."""
        tail: Deque[str] = deque(maxlen=_TAIL_LINES)
        if self._stop_reason is not None:
            return None, []
        try:
            program = self._start(argv, env, SYS if is_shown else None, SYS if is_shown else None, tail, tail)
        except CouldNotStart as error:
            return None, [str(error)]
        until = time.monotonic() + limit_s
        while program.status is None:
            self._wait(_HELPER_POLL_S)
            self._enforce()
            if time.monotonic() >= until:
                program.signal_group(signal.SIGKILL)
        self._output.read(program.out)
        self._output.read(program.err)
        self._program = None
        return program.outcome()[0], list(tail)

    # --- the program ------------------------------------------------------------------------

    def _main(self) -> Optional[str]:
        """Runs the program; returns why it did not end by itself, or None."""
        if self._stop_reason is not None:
            return "stopped before it started: %s" % self._stop_reason
        try:
            argv, env = self._command()
        except (OSError, ValueError) as error:
            self._output.say(str(error))
            return "could not prepare the start: %s" % error
        program = self._start(argv, env, OUT, ERR, None, None if self._box is None else self._errors)
        self._started_at_ms = now_ms()
        self._note("started.json", {"pid": program.pid, "started_at_ms": self._started_at_ms})
        while program.status is None:
            self._turn()
        if self._box is not None:
            self._output.read(program.err)
        return self._stop_reason

    def _command(self) -> Tuple[List[str], Dict[str, str]]:
        if self._box is not None:
            return self._box.command(self._found)
        if self._setup is not None:
            return self._setup.command(self._found)
        return self._spec["argv"], dict(self._spec["env"], **self._secrets)

    def _start(
        self,
        argv: List[str],
        env: Dict[str, str],
        out: Optional[bytes],
        err: Optional[bytes],
        out_tail: Optional[Deque[str]] = None,
        err_tail: Optional[Deque[str]] = None,
    ) -> Program:
        program = Program(argv, env, self._spec["cwd"], self._cgroup, self._spec.get("core_limit"))
        self._program = program
        self._output.add(program.out, out, out_tail)
        self._output.add(program.err, err, err_tail)
        return program

    def _finish(self, reason: Optional[str], exit_code: Optional[int], signum: Optional[int]) -> None:
        """Nothing of the tree lives, its output is in the journal; then the result is written."""
        result = {
            "exit_code": exit_code,
            "signal": signum,
            "reason": reason,
            "timed_out": self._timed_out,
            "started_at_ms": self._started_at_ms,
            "ended_at_ms": now_ms(),
        }
        self._timeout_at = _NEVER
        self._remove_container()
        self._end_leftovers()
        self._obey(self._control.close())
        self._output.finish()
        private.remove(self._folder)
        processes.remove_cgroup(self._cgroup)
        while not self._write("result.json", result, durable=True):
            time.sleep(_RETRY_S)

    # --- the tree ---------------------------------------------------------------------------

    def _end_leftovers(self) -> None:
        if self._tree_is_gone():
            return
        processes.kill(self._tree(), signal.SIGTERM)
        self._kill_at = min(self._kill_at, time.monotonic() + LEFTOVER_GRACE_S)
        while not self._tree_is_gone():
            self._turn()

    def _tree_is_gone(self) -> bool:
        """As a subreaper this process has no child exactly when it has no descendant."""
        if self._reap() or processes.members(self._cgroup):
            return False
        return self._is_subreaper or not self._marked()

    def _tree(self) -> List[processes.Process]:
        found = processes.descendants(os.getpid())
        if not self._is_subreaper:
            found += self._marked()
        return found

    def _marked(self) -> List[processes.Process]:
        return processes.marked(self._spec["env"][processes.RANK_ID], self._folder)

    def _kill_tree(self) -> None:
        tree = self._tree()
        if tree and not self._has_killed:
            self._has_killed = True
            self._output.say("killing what has not ended: %d processes" % len(tree))
        processes.kill_cgroup(self._cgroup)
        self._remove_container()
        if self._program is not None and self._program.status is None:
            self._program.signal_group(signal.SIGKILL)
        processes.kill(tree)

    def _make_box(self) -> Optional[Box]:
        if self._spec["container"] is None:
            return None
        from .boxes import Box

        return Box(self._folder, self._spec, self._secrets, self)

    def _remove_container(self) -> None:
        """Its processes may be no descendants of ours: only its runtime can end them."""
        if self._box is not None:
            self._box.remove()

    # --- one turn of the loop ---------------------------------------------------------------

    def _turn(self) -> None:
        now = time.monotonic()
        retry_at = now + _RETRY_S if self._unwritten else _NEVER
        fence_at = self._fence.look_at() if self._stop_reason is None else _NEVER
        due_s = min(self._output.flush_at(), retry_at, self._timeout_at, self._kill_at, fence_at) - now
        self._wait(_QUICK_S if self._is_killing else max(0.0, min(due_s, 60.0)))
        self._enforce()

    def _wait(self, seconds: float) -> None:
        """Takes what the pipes hold, or waits for it."""
        ready = self._poll.poll(int(seconds * 1000) + 1)
        early_s = self._last_wake + _WAKE_EVERY_S - time.monotonic()
        if early_s > 0:
            time.sleep(early_s)
        self._last_wake = time.monotonic()
        for descriptor, _ in ready:
            if descriptor == self._woken:
                drain(descriptor)
            elif descriptor == self._control.descriptor:
                self._obey(self._control.orders())
            else:
                self._output.read(descriptor)
        self._output.flush()
        self._reap()
        for name, note in list(self._unwritten.items()):
            self._note(name, note)

    def _enforce(self) -> None:
        if time.monotonic() >= self._timeout_at and self._stop_reason is None:
            self._timed_out = True
            self._stop("timed out after %g s" % self._spec["timeout_s"], self._spec["stop_grace_s"])
        if self._stop_reason is None and self._fence.is_passed():
            self._stop(self._fence.reason, min(self._spec["stop_grace_s"], GRACE_S))
        if self._is_killing:
            self._kill_tree()

    @property
    def _is_killing(self) -> bool:
        return time.monotonic() >= self._kill_at

    def _reap(self) -> bool:
        """Whether children remain."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if self._program is not None and pid == self._program.pid:
                self._program.status = status

    # --- control and notes ------------------------------------------------------------------

    def _obey(self, orders: List[Order]) -> None:
        for verb, text, grace_s in orders:
            if verb == "say":
                self._output.say(text)
            elif verb == "stop" and self._stop_reason is None:
                self._stop(text, grace_s)
            elif verb == "kill":
                self._stop_reason = self._stop_reason or text
                self._kill_at = 0.0

    def _stop(self, reason: str, grace_s: float) -> None:
        self._stop_reason = reason
        self._kill_at = min(self._kill_at, time.monotonic() + grace_s)
        self._note("stop", {"reason": reason, "deadline_ms": now_ms() + int(grace_s * 1000)})
        self._output.say("stopping: %s (killed in %g s if it does not end)" % (reason, grace_s))
        if self._program is not None and self._program.status is None:
            self._program.signal_group(signal.SIGTERM)

    def _note(self, name: str, note: Dict[str, Any]) -> None:
        """Writes a small file now, or as soon as the disk takes it: a full disk must not end a rank."""
        if self._write(name, note):
            self._unwritten.pop(name, None)
        else:
            self._unwritten[name] = note

    def _write(self, name: str, note: Dict[str, Any], durable: bool = False) -> bool:
        try:
            disk.write_json(os.path.join(self._folder, name), note, durable)
        except OSError:
            return False
        return True


def _wake_on_child_exit() -> int:
    """A descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader
