"""A docker at the process boundary: it writes down how it was called and runs the program that the words name, here.
Its containers belong to nobody below the caller, as those of a daemon do."""

import json
import stat
import sys
from pathlib import Path

SOURCE = """\
#!{python}
import json, os, signal, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
with open(os.path.join(here, "calls.jsonl"), "a") as file:
    file.write(json.dumps(words) + "\\n")
if words[:1] == ["--config"]:
    with open(os.path.join(words[1], "config.json")) as file:
        login = file.read()
    words = words[2:]
if words[0] == "info":
    print("null")
elif words[:2] == ["image", "inspect"]:
    sys.exit(0 if os.path.exists(os.path.join(here, "has-image")) else 1)
elif words[0] == "pull":
    if "right" not in globals().get("login", ""):
        sys.exit("Error response from daemon: pull access denied for x, repository does not exist")
    open(os.path.join(here, "has-image"), "w").close()
elif words[0] == "rm":
    path = os.path.join(here, words[-1] + ".pid")
    if not os.path.exists(path):
        sys.exit("Error response from daemon: No such container: " + words[-1])
    os.killpg(int(open(path).read()), 9)
    os.unlink(path)
elif words[0] == "run":
    name = words[words.index("--name") + 1]
    env = dict(line.split("=", 1) for line in open(words[words.index("--env-file") + 1]).read().splitlines())
    env.update((words[at + 1], os.environ[words[at + 1]]) for at, word in enumerate(words) if word == "--env")
    # No mark in its environment: the daemon's processes belong to another user.
    env = {{n: v for n, v in env.items() if n not in ("CRUCIBLE_RANK_ID", "CRUCIBLE_MACHINE_ID")}}
    argv = words[words.index("--entrypoint") + 3 :]
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            child = subprocess.Popen(argv, env=dict(env, PATH=os.environ["PATH"]), start_new_session=True)
            with open(os.path.join(here, name + ".pid"), "w") as file:
                file.write(str(child.pid))
            code = child.wait()
            os.write(writer, b"%d" % (code if code >= 0 else 128 - code))
        os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(int(open(os.path.join(here, name + ".pid")).read()), 15))
    sys.exit(int(os.read(reader, 16) or b"137"))
"""


class FakeDocker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "docker"
        program.write_text(SOURCE.format(python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (folder / "has-image").touch()

    def calls(self, verb: str) -> list[list[str]]:
        found = [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]
        return [words for words in found if verb in words[:3]]
