"""`python -m crucible.train.shard_command -- PROGRAM …`: runs a program once for each shard that this worker is given.

It finds its items in the file $CRUCIBLE_ITEMS, one a line, and writes what comes of them to $CRUCIBLE_OUTPUT_FILE. Some
that failed may be told in $CRUCIBLE_ERRORS_FILE, a JSON object a line. A program that fails is run again; after the
last time all items of the shard have failed."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, Any, Deque, Dict, List, Optional

from .items import ERRORS, FIRST, ITEMS, KIND, OUTPUT
from .shard_desk import Desk
from .shard_work import LeasedWork
from .stopping import should_stop

# A program that fails so often with a shard would fail again.
TRIES = 3
USAGE = 2
_LOOK_S = 0.1
# A program that nobody waits for any more gets so long to end.
_GRACE_S = 10.0
_LAST_LINES = 5
_MAX_REASON = 400


def main(argv: List[str]) -> int:
    program = argv[argv.index("--") + 1 :] if "--" in argv else []
    if not program:
        print("usage: python -m crucible.train.shard_command -- PROGRAM …", file=sys.stderr)
        return USAGE
    desk = Desk()
    for work in desk.works():
        if work_on(work, program):
            desk.finished(work)
        elif should_stop():
            break
    desk.end()
    return 0


def work_on(work: LeasedWork, program: List[str]) -> bool:
    """Whether there is something to commit."""
    env = environment(work)
    for number in range(1, TRIES + 1):
        for name in (OUTPUT, ERRORS):
            open(env[name], "wb").close()
        reason = Run(work, program, env).outcome()
        if should_stop() or not work.is_wanted:
            return False
        if reason is None:
            take_results(work, env)
            return True
        words = "shard %d failed (%s), try %d of %d" % (work.number, reason.splitlines()[0], number, TRIES)
        print("crucible: " + words, file=sys.stderr, flush=True)
        work.reason = reason
    return True


def environment(work: LeasedWork) -> Dict[str, str]:
    path = os.path.join(work.folder, "items.txt")
    kind = "files" if work.kind == "objects" else work.kind
    with open(path, "wb") as file:
        write_items(work, file)
    return dict(
        os.environ,
        **{
            ITEMS: path,
            OUTPUT: os.path.join(work.folder, "written"),
            ERRORS: os.path.join(work.folder, "failed"),
            KIND: kind,
            FIRST: str(work.first),
            "CRUCIBLE_ITEM_COUNT": str(work.items),
            "CRUCIBLE_SHARD": str(work.number),
        },
    )


def write_items(work: LeasedWork, file: IO[bytes]) -> None:
    """One a line, as they can be opened: files of a dataset with their folder, objects where they were brought to."""
    is_path = work.kind == "objects" or (work.kind == "files" and work.lease["source"]["base"] == "dataset")
    for position, value in enumerate(work.values()):
        text = work.path_of(position, str(value)) if is_path else str(value)
        file.write(text.encode("utf-8", "surrogateescape") + b"\n")


def take_results(work: LeasedWork, env: Dict[str, str]) -> None:
    with open(env[OUTPUT], "rb") as file:
        work.results.copy(file)
    with open(env[ERRORS], "rb") as file:
        for line in file:
            said = error_of(line)
            if said is not None and work.results.failed < work.items:
                work.results.failed_too(said)
    work.reason = None


def error_of(line: bytes) -> Optional[Dict[str, Any]]:
    try:
        said = json.loads(line)
        kept = {"reason": str(said.get("reason", ""))}
        if isinstance(said.get("index"), int) and said["index"] >= 0:
            kept["index"] = said["index"]
        return dict(kept, item=str(said["item"])[:4096]) if "item" in said else kept
    except (ValueError, AttributeError):
        return None  # no object of JSON: nobody knows what it means


class Run:
    """One run of the program, in a session of its own, so that all of it can be ended."""

    def __init__(self, work: LeasedWork, program: List[str], env: Dict[str, str]) -> None:
        self._work = work
        self._last: Deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._program = program
        self._env = env

    def outcome(self) -> Optional[str]:
        """None if it succeeded, else why not."""
        try:
            process = subprocess.Popen(self._program, env=self._env, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            return "could not start %s: %s" % (self._program[0], error.strerror)
        passing = threading.Thread(target=self._pass_on, args=(process.stderr,), daemon=True)
        passing.start()
        code = self._wait(process)
        passing.join(1.0)  # a child that it left behind may hold the pipe
        if code == 0:
            return None
        ended = "exit code %d" % code if code > 0 else "signal %d" % -code
        return "\n".join([ended, *self._last])[:_MAX_REASON]

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        left_s, is_told = _GRACE_S, False
        while True:
            try:
                return process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if is_told and not should_stop():  # of one that is stopped the agent says when it is killed
                    left_s -= _LOOK_S
            if not is_told and (should_stop() or not self._work.is_wanted):
                is_told = True
                _signal(process, signal.SIGTERM)
            if left_s <= 0:
                _signal(process, signal.SIGKILL)

    def _pass_on(self, pipe: IO[bytes]) -> None:
        for line in iter(lambda: pipe.readline(1 << 16), b""):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            self._last.append(line.decode("utf-8", "replace").rstrip())


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
