"""The parent of one rank: a process of its own, so that neither the rank nor its exit status nor a byte of its output
depends on the agent staying alive.

It runs the setup lines (once per attempt and node), starts the program, writes what it prints into the journal, obeys
the control pipe, enforces the timeout, and ends with `result.json` on disk when nothing of the rank's tree lives any
more. It talks to no network and knows no server. Files of its folder:

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

import json
import os
import select
import signal
import time

from . import disk, processes
from .journal import ERR, OUT, SYS
from .output import Output, now_ms
from .program import CouldNotStart, Program, ignore_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

# What a program leaves behind when it ends is asked to end, and killed after this time.
LEFTOVER_GRACE_S = 2.0
# Between two looks while a tree is being killed, while another rank runs the setup, and while the disk refuses a note.
_QUICK_S = 0.02
_SETUP_POLL_S = 0.05
_RETRY_S = 1.0
# A program that prints line by line wakes us at most this often; its pipe holds a megabyte meanwhile.
_WAKE_EVERY_S = 0.01
_NEVER = float("inf")


def main(folder: str) -> int:
    lock = disk.take_lock(os.path.join(folder, "lock"), disk.LOOK_S)
    spec = disk.read_json(os.path.join(folder, "spec.json"))
    begun, result = os.path.join(folder, "supervisor.json"), os.path.join(folder, "result.json")
    if lock is None or spec is None or os.path.exists(begun) or os.path.exists(result):
        return 0
    ignore_signals()
    me = processes.find(os.getpid())
    disk.write_json(begun, {"pid": os.getpid(), "started": me.started if me else None})
    Supervisor(folder, spec).run()
    return 0


class Supervisor:
    def __init__(self, folder: str, spec: Dict[str, Any]) -> None:
        self._folder = folder
        self._spec = spec
        self._poll = select.poll()
        self._output = Output(os.path.join(folder, "log"), self._poll)
        self._program: Optional[Program] = None
        self._timeout_at = _NEVER if spec["timeout_s"] is None else time.monotonic() + spec["timeout_s"]
        self._kill_at = _NEVER
        self._stop_reason: Optional[str] = None
        self._timed_out = False
        self._has_killed = False
        self._started_at_ms: Optional[int] = None
        self._unwritten: Dict[str, Dict[str, Any]] = {}
        self._last_wake = 0.0
        self._cgroup = processes.make_cgroup(spec["cgroup"])
        self._control = self._open_control()
        self._woken = _wake_on_child_exit()
        self._poll.register(self._woken, select.POLLIN)
        self._is_subreaper = processes.become_subreaper()

    def run(self) -> None:
        for text in self._spec["say"]:
            self._output.say(text)
        try:
            reason = self._setup() or self._main()
        except CouldNotStart as error:
            self._output.say(str(error))
            self._finish(str(error), error.exit_code, None)
            return
        exit_code, signum = self._program.outcome() if self._program is not None else (None, None)
        self._finish(reason, exit_code, signum)

    # --- the two programs -------------------------------------------------------------------

    def _setup(self) -> Optional[str]:
        """Why the program must not start, or None. One rank runs the lines, the others wait for it."""
        script = self._spec["setup"]
        if script is None:
            return None
        held = self._wait_for_setup(script + ".lock")
        if held is None:
            return "stopped before it started: %s" % self._stop_reason
        try:
            done = disk.read_json(script + ".json") or self._run_setup(script)
        finally:
            os.close(held)
        if done is None:
            return "stopped during setup: %s" % self._stop_reason
        return str(done["reason"]) if done["reason"] else None

    def _wait_for_setup(self, path: str) -> Optional[int]:
        while self._stop_reason is None:
            held = disk.take_lock(path)
            if held is not None:
                return held
            self._wait(_SETUP_POLL_S)
            self._enforce()
        return None

    def _run_setup(self, script: str) -> Optional[Dict[str, Any]]:
        """What the other ranks read; None if it was stopped, so that nobody takes it for done."""
        program = self._start(["/bin/sh", "-eu", script], SYS, SYS)
        # What it leaves running may serve the program: it lives as long as the rank.
        while program.status is None:
            self._turn()
        if self._stop_reason is not None:
            return None
        exit_code, signum = program.outcome()
        if exit_code == 0:
            self._program = None
            done: Dict[str, Any] = {"reason": None}
        else:
            words = "exit %s" % exit_code if signum is None else "signal %s" % signum
            done = {"reason": "setup failed (%s)" % words}
            self._output.say(done["reason"])
        self._note(script + ".json", done)
        return done

    def _main(self) -> Optional[str]:
        """Runs the program; returns why it did not end by itself, or None."""
        if self._stop_reason is not None:
            return "stopped before it started: %s" % self._stop_reason
        program = self._start(self._spec["argv"], OUT, ERR)
        self._started_at_ms = now_ms()
        self._note("started.json", {"pid": program.pid, "started_at_ms": self._started_at_ms})
        while program.status is None:
            self._turn()
        return self._stop_reason

    def _start(self, argv: List[str], out: bytes, err: bytes) -> Program:
        program = Program(argv, self._spec["env"], self._spec["cwd"], self._cgroup)
        self._program = program
        self._output.add(program.out, out)
        self._output.add(program.err, err)
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
        self._end_leftovers()
        self._close_control()
        self._output.finish()
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
        if self._program is not None and self._program.status is None:
            self._program.signal_group(signal.SIGKILL)
        processes.kill(tree)

    # --- one turn of the loop ---------------------------------------------------------------

    def _turn(self) -> None:
        now = time.monotonic()
        retry_at = now + _RETRY_S if self._unwritten else _NEVER
        due_s = min(self._output.flush_at(), retry_at, self._timeout_at, self._kill_at) - now
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
                _drain(descriptor)
            elif descriptor == self._control:
                self._obey(_drain(descriptor))
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

    def _open_control(self) -> int:
        path = os.path.join(self._folder, "control")
        if not os.path.exists(path):
            os.mkfifo(path, 0o600)
        # Open for both directions, so that it never ends when an agent closes its side.
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._poll.register(descriptor, select.POLLIN)
        return descriptor

    def _close_control(self) -> None:
        """Takes the last orders. What the agent has to say later, it writes itself, once there is a result."""
        try:
            os.unlink(os.path.join(self._folder, "control"))
        except OSError:
            pass
        self._obey(_drain(self._control))

    def _obey(self, data: bytes) -> None:
        for line in data.splitlines():
            try:
                order = json.loads(line)
                verb, text, grace_s = order["do"], str(order["text"]), float(order.get("grace_s", 0))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
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


def _drain(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""
