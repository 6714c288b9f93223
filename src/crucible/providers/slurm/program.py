"""The program of a job: it starts our agent once on every node, each as a step of its own, and notes in the job's
comment which have started and ended. Only text is made here.

It never runs twice for one order: a folder that is made once says that the order has run. What is requeued, or was
submitted a second time, finds it and ends."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from crucible.model.errors import InvariantBroken
from crucible.model.lease import Boot, Order
from crucible.providers.slurm.request import machine_id

# Slurm takes 4 MiB; ours are a hundredth of it.
MAX_BYTES = 64_000
BOOT_WITHIN = timedelta(minutes=10)
ENROL_WITHIN = timedelta(minutes=10)
FENCE = timedelta(minutes=5)


def script(
    order: Order, boot: Boot, request: Mapping[str, Any], deployment: str, python: str, *, has_files: bool
) -> str:
    """`has_files`: the enrolment token is in a file beside it; else it is in the script itself."""
    if not boot.servers or not boot.agent_sha256:
        raise InvariantBroken(f"order {order.id} does not say where its machines find their agent")
    given = {
        "order_id": order.id,
        "machine_ids": [machine_id(deployment, order.id, index) for index in range(order.count)],
        "folder": request["folder"],
        "comment": request["comment"],
        "gres": request["gres"],
        "cpus": request["cpus"],
        "agent_sha256": boot.agent_sha256,
        "servers": list(boot.servers),
        "enrolment_token": None if has_files else boot.enrolment_token,
        "within_s": BOOT_WITHIN.total_seconds(),
        "enrol_within_s": ENROL_WITHIN.total_seconds(),
        "fence_s": FENCE.total_seconds(),
    }
    # The text of a JSON document in ASCII: as a Python literal it can be nothing but a string.
    text = f"#!{shebang(python)}\n" + PROGRAM.replace("@GIVEN@", repr(json.dumps(given, sort_keys=True)))
    if len(text) > MAX_BYTES:
        raise InvariantBroken(f"order {order.id} boots with {len(text)} bytes; {MAX_BYTES} are allowed")
    return text


def boot_file(boot: Boot) -> bytes:
    return json.dumps({"enrolment_token": boot.enrolment_token}).encode()


def shebang(python: str) -> str:
    return python if python.startswith("/") else f"/usr/bin/env {python}"


# For Python 3.8 and newer, with nothing but its standard library.
PROGRAM = '''"""A job of Crucible: it starts an agent on every node, and ends with the last of them."""
import ctypes
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

GIVEN = json.loads(@GIVEN@)
DEADLINE = time.monotonic() + GIVEN["within_s"]
MAX_AGENT = 16 << 20
LOOK_S = 0.2
# No server will say anything else to the same question.
FINAL = (401, 403, 404, 410)
PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """Why it did not work this time."""


class Final(Exception):
    """Why it never will."""


def main():
    try:
        if len(sys.argv) == 3 and sys.argv[1] == "step":
            return be_machine(int(sys.argv[2]))
        return be_job()
    except Final as error:
        say("boot failed: %s" % error)
    return 1


def place(*names):
    return os.path.join(GIVEN["folder"], *names)


# --- the job -----------------------------------------------------------------------------------------------


def be_job():
    element = os.environ.get("SLURM_ARRAY_TASK_ID")
    claim(element)
    program = place("orders", GIVEN["order_id"], "program-%s.py" % (element or "all"))
    with open(os.path.abspath(__file__), "rb") as file:
        write(program, file.read())
    nodes = ask_slurm(["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]).split()
    indices = range(len(GIVEN["machine_ids"])) if element is None else [int(element)]
    steps = {index: start(index, node, program) for index, node in zip(indices, nodes)}
    say("job %s of order %s on %s" % (os.environ["SLURM_JOB_ID"], GIVEN["order_id"], ", ".join(nodes)))
    return watch(steps)


def claim(element):
    """Whoever makes this folder runs the order; it is never removed."""
    os.makedirs(place("orders", GIVEN["order_id"]), mode=0o700, exist_ok=True)
    try:
        os.mkdir(place("orders", GIVEN["order_id"], "ran-%s" % (element or "all")), 0o700)
    except FileExistsError:
        raise Final("order %s has run before, and runs once" % GIVEN["order_id"])


def start(index, node, program):
    folder = place("machines", GIVEN["machine_ids"][index])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    argv = ["srun", "--nodes=1", "--ntasks=1", "--nodelist=" + node, "--job-name=" + GIVEN["machine_ids"][index]]
    argv += ["--cpus-per-task=%d" % GIVEN["cpus"], "--mem=0", "--gres=" + (GIVEN["gres"] or "none")]
    argv += ["--kill-on-bad-exit=0", "--unbuffered", "--output=" + os.path.join(folder, "agent.out")]
    argv += [sys.executable, program, "step", str(index)]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL)


def watch(steps):
    """Until the last has ended: its end is the job's, so it need not be noted."""
    marks, noted, code = {}, "", 0
    while True:
        for index, step in list(steps.items()):
            born = os.path.join(place("machines", GIVEN["machine_ids"][index]), "born")
            if index not in marks and os.path.exists(born):
                marks[index] = "%d+%d" % (index, time.time())
            if step.poll() is not None:
                code = step.returncode
                del steps[index]
                marks[index] = "%s %d-%d=%d" % (marks.get(index, ""), index, time.time(), code)
        if not steps:
            return code if 0 <= code < 256 else 1
        text = " ".join([GIVEN["comment"]] + " ".join(marks[index] for index in sorted(marks)).split())
        if text != noted and note(text):
            noted = text
        time.sleep(LOOK_S)


def note(text):
    try:
        ask_slurm(["scontrol", "update", "JobId=" + own_name(), "Comment=" + text])
    except Failed as error:
        say("%s; trying again" % error)
        time.sleep(1.0)
        return False
    return True


def own_name():
    """The plain number of one element would mean the whole array."""
    element = os.environ.get("SLURM_ARRAY_TASK_ID")
    job = os.environ["SLURM_JOB_ID"]
    return job if element is None else "%s_%s" % (os.environ["SLURM_ARRAY_JOB_ID"], element)


def ask_slurm(argv):
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed("%s: %s" % (argv[0], error))
    if done.returncode:
        raise Failed("%s: %s" % (argv[0], done.stdout.decode("utf-8", "replace").strip()[-300:]))
    return done.stdout.decode("utf-8", "replace")


# --- a machine ---------------------------------------------------------------------------------------------


def be_machine(index):
    """The agent is a child, and what it leaves behind too: Slurm ends a step with all its children."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    machine = GIVEN["machine_ids"][index]
    folder = place("machines", machine)
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    address = own_address(node)
    say("machine %s on %s at %s, order %s" % (machine, node, address, GIVEN["order_id"]))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    write(os.path.join(folder, "born"), b"")
    token = GIVEN["enrolment_token"] or kept_token()
    agent = pushed() or fetched(folder, token)
    boot = {
        "servers": GIVEN["servers"],
        "enrolment_token": token,
        "order_id": GIVEN["order_id"],
        "machine_id": machine,
        "address": address,
        "device_names": device_names(node),
        "power_off": None,
        "fence_s": GIVEN["fence_s"],
        "enrol_within_s": GIVEN["enrol_within_s"],
    }
    write(os.path.join(folder, "boot.json"), json.dumps(boot).encode())
    os.environ["CRUCIBLE_MACHINE_ID"] = machine
    child = subprocess.Popen([sys.executable, agent, "--dir", folder], stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    end_orphans()
    return code if code >= 0 else 128 - code


def device_names(node):
    """What CUDA calls here what the server calls by number, or by node and number."""
    visible = words("CUDA_VISIBLE_DEVICES")
    numbers = words("SLURM_STEP_GPUS") or words("SLURM_JOB_GPUS") or visible
    names = {str(place): name for place, name in enumerate(visible)}
    names.update({"%s/%s" % (node, number): name for number, name in zip(numbers, visible)})
    return names


def words(variable):
    return [word for word in os.environ.get(variable, "").split(",") if word]


def own_address(node):
    """Where the other nodes reach this one: what its name means, else where it sends from to reach a server."""
    try:
        found = socket.getaddrinfo(node, None, socket.AF_INET)[0][4][0]
        if not found.startswith("127."):
            return found
    except OSError:
        pass
    for server in GIVEN["servers"]:
        parts = urlsplit(server)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((parts.hostname, parts.port or 80))
                return probe.getsockname()[0]
        except (OSError, TypeError):
            continue
    return "127.0.0.1"


def kept_token():
    path = place("orders", GIVEN["order_id"], "boot.json")
    try:
        with open(path, encoding="ascii") as file:
            return json.load(file)["enrolment_token"]
    except (OSError, ValueError, KeyError) as error:
        raise Final("%s cannot be read: is the folder shared by all nodes? (%s)" % (path, error))


def pushed():
    path = os.path.join(os.path.dirname(GIVEN["folder"]), "agents", GIVEN["agent_sha256"] + ".pyz")
    try:
        with open(path, "rb") as file:
            return path if hashlib.sha256(file.read(MAX_AGENT)).hexdigest() == GIVEN["agent_sha256"] else None
    except OSError:
        return None


def fetched(folder, token):
    pause = 0.5
    while True:
        try:
            body = fetch(token)
            break
        except (OSError, http.client.HTTPException, ValueError, Failed) as error:
            problem = str(error) or type(error).__name__
        if time.monotonic() + pause >= DEADLINE:
            raise Final("no server hands out the agent, for %g s: %s" % (GIVEN["within_s"], problem))
        time.sleep(pause)
        pause = min(15.0, 2 * pause)
    path = os.path.join(folder, "crucible-agent.pyz")
    write(path, body)
    return path


def fetch(token):
    problems, refusals = [], 0
    for server in GIVEN["servers"]:
        try:
            status, body = ask(server, "/v1/agent/" + GIVEN["agent_sha256"], {"Authorization": "Bearer " + token})
        except (OSError, http.client.HTTPException, ValueError, Failed) as error:
            problems.append("%s does not answer (%s)" % (server, error or type(error).__name__))
            continue
        if status == 200 and hashlib.sha256(body).hexdigest() == GIVEN["agent_sha256"]:
            return body
        said = "HTTP %d" % status if status != 200 else "an agent that was not ordered"
        problems.append("%s says %s" % (server, said))
        refusals += status == 200 or status in FINAL
    kind = Final if refusals == len(problems) else Failed
    raise kind("no server hands out the agent: " + "; ".join(problems))


def ask(base, path, headers):
    """Status and body. No redirects, no proxies: the token goes to nobody else."""
    parts = urlsplit(base)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(MAX_AGENT + 1)
        if len(body) > MAX_AGENT or answer.length:
            raise Failed("the answer is too large or ended early")
        return answer.status, body
    finally:
        connection.close()


def end_orphans():
    """What the agent left behind became ours."""
    while True:
        try:
            with open("/proc/self/task/%d/children" % os.getpid()) as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            return
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass


def write(path, data):
    """Whole or not at all, and nobody else's to read."""
    part = "%s.%d.part" % (path, os.getpid())
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(part, path)


def say(text):
    print("crucible: " + " ".join(text.split()), flush=True)


sys.exit(main())
'''
