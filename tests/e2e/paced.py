"""Runs a training script unchanged, with two things around it: its steps take their time only until /tmp/hurry is
there, so that a test waits no longer than it must; and /tmp/witness says when this process lived, on this host.

    python paced.py SCRIPT [argument …]"""

import os
import runpy
import sys
import threading
import time

HURRY, WITNESS = "/tmp/hurry", "/tmp/witness"
BEAT_S = 0.05
sleep = time.sleep


def paced(seconds: float) -> None:
    """Only the script's own pauses: libraries wait for what they wait."""
    is_script = sys._getframe(1).f_globals.get("__name__") == "__main__"
    sleep(0 if is_script and os.path.exists(HURRY) else seconds)


def testify() -> None:
    while True:
        with open(WITNESS, "a") as file:
            file.write(f"{time.time()} {os.environ['CRUCIBLE_ATTEMPT']} {os.getpid()}\n")
        sleep(BEAT_S)


if __name__ == "__main__":
    threading.Thread(target=testify, daemon=True).start()
    time.sleep = paced
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
