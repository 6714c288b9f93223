"""The user's program in the crash tests. It does what its arguments say, one after the other, and tells a witness that
Crucible does not know: a file that every run appends to, and a lock per run that the kernel gives up at its death.

    python worker.py FOLDER NAME VERB[:VALUE]...

    lines:N       print N numbered lines            save:N       save checkpoints up to step N
    sleep:S       wait                              fail-below:A exit 3 while this is an attempt before A
    until-told    wait for SIGTERM or FOLDER/NAME.go
    deaf          ignore SIGTERM from now on        orphans      leave deaf processes in sessions of their own
    slow-save     begin a checkpoint and never end
    train:S[:N]   steps of S seconds until step N or FOLDER/NAME.go, a checkpoint every tenth; on SIGTERM one more
"""

import fcntl
import json
import os
import signal
import sys
import time

FAILED = 3
STOPPED = 143


class Run:
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.attempt, self.rank = int(os.environ["CRUCIBLE_ATTEMPT"]), int(os.environ["RANK"])
        self.witness = os.open(os.path.join(folder, "witness"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(self, what, **more):
        """One write of one line: it is there whole, or not at all."""
        fact = dict(more, name=self.name, attempt=self.attempt, rank=self.rank, what=what, pid=os.getpid())
        os.write(self.witness, (json.dumps(dict(fact, at=time.monotonic())) + "\n").encode())

    def begin(self):
        """Whoever else of this job is alive now holds a lock of an earlier attempt, or our own."""
        own = f"{self.name}.{self.attempt}.{self.rank}.alive"
        self.tell("start")
        self.hold(own, "doubled")
        for other in os.listdir(self.folder):
            parts = other.rsplit(".", 3)
            if parts[0] == self.name and parts[-1] == "alive" and int(parts[1]) != self.attempt:
                self.look(other)

    def hold(self, name, complaint):
        self.lock = os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT, 0o600)
        os.set_inheritable(self.lock, True)  # what we leave behind holds it too
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.tell(complaint)

    def look(self, name):
        other = os.open(os.path.join(self.folder, name), os.O_RDWR)
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.tell("overlap", other=name)
        finally:
            os.close(other)

    def end(self, code):
        self.tell("end", code=code)
        sys.stdout.flush()
        os._exit(code)

    def has(self, name):
        return os.path.exists(os.path.join(self.folder, name))


def lines(run, count):
    for i in range(int(count)):
        print(f"{run.name} {run.attempt} {run.rank} line {i}")
        if i % 10 == 9:
            time.sleep(0.01)


def save(run, last):
    from crucible import train

    found = train.latest_checkpoint()
    for step in range(found.step + 1 if found else 1, int(last) + 1):
        source = os.path.join(os.environ["CRUCIBLE_RUN_DIR"], f"model-{step}")
        with open(source, "w") as file:
            file.write(f"{step}" * 1000)
        train.save_checkpoint(source, step)
        train.log(step, loss=1.0 / step)


def train_on(run, value):
    from crucible import train

    seconds, _, last = value.partition(":")

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # should_stop takes it over
    train.should_stop()
    found = train.latest_checkpoint()
    step = found.step if found else 0
    if found and found.path.read_text() != content(step):
        run.tell("corrupt", step=step)
    run.tell("resumed", step=step)
    while step != int(last or -1) and not run.has(run.name + ".go"):
        time.sleep(float(seconds))
        step += 1
        must_stop = train.should_stop()
        if run.rank == 0 and (step % 10 == 0 or must_stop):
            save_step(run, step)
        if must_stop:
            run.end(STOPPED)


def save_step(run, step):
    from crucible import train

    source = os.path.join(os.environ["CRUCIBLE_RUN_DIR"], "model")
    with open(source, "w") as file:
        file.write(content(step))
    train.save_checkpoint(source, step)
    run.tell("saved", step=step)


def content(step):
    return f"{step}," * 20_000


def slow_save(run, _):
    from crucible.train.events import emit

    emit("checkpoint_began", step=1)
    wait(lambda: False)


def fail_below(run, attempt):
    if run.attempt < int(attempt):
        run.end(FAILED)


def until_told(run, _):
    wait(lambda: run.has(run.name + ".go"))


def deaf(run, _):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def orphans(run, _):
    """A child in a session of its own, and a grandchild whose parent is gone: both deaf, both holding our lock."""
    for is_double in (False, True):
        if os.fork() == 0:
            os.setsid()
            if is_double and os.fork() != 0:
                os._exit(0)
            deaf(run, None)
            run.tell("orphan")
            wait(lambda: False)


def wait(is_so):
    while not is_so():
        time.sleep(0.02)


VERBS = {
    "lines": lines,
    "save": save,
    "sleep": lambda run, seconds: time.sleep(float(seconds)),
    "fail-below": fail_below,
    "until-told": until_told,
    "deaf": deaf,
    "orphans": orphans,
    "slow-save": slow_save,
    "train": train_on,
}


def main(folder, name, *verbs):
    run = Run(folder, name)
    signal.signal(signal.SIGTERM, lambda *_: run.end(STOPPED))
    run.begin()
    for verb in verbs:
        what, _, value = verb.partition(":")
        VERBS[what](run, value)
    run.end(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
