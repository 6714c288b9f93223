"""The first program of a machine that was bought in a cloud: it learns who the machine is, fetches the agent that was
ordered and becomes it. Only text is made here; nothing is asked and nothing is run.

A machine that cannot be used says why on its console, in one line that begins with "crucible: boot failed:", and powers
itself off: it must not cost money in silence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from crucible.model.errors import InvariantBroken
from crucible.model.lease import Boot, Order

# What clouds take as user-data is 16 KiB, sometimes after base64.
MAX_BYTES = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """What a machine of this cloud can ask about itself, and how it ends. A question needs a session token: a PUT to
    `token_path` gives one."""

    endpoint: str
    endpoint_variable: str  # the environment variable that names another endpoint
    token_path: str
    token_header: str
    token_ttl_header: str
    machine_id_path: str
    address_path: str  # where the other machines of a gang reach it
    notice_path: str  # absent until the cloud takes the machine back; then {"action": …, "time": …}
    hint_path: str  # absent until the cloud thinks that it may; only told to people
    power_off: tuple[str, ...] = ("shutdown", "-h", "now")  # after which the machine costs nothing
    boot_within: timedelta = timedelta(minutes=10)  # from the start of the program to the agent
    enrol_within: timedelta = timedelta(minutes=10)  # from the start of the agent to a server's welcome
    max_life: timedelta | None = None  # of the agent, whatever a server says; None: as long as somebody wants it


EC2 = Cloud(
    endpoint="http://169.254.169.254",
    endpoint_variable="AWS_EC2_METADATA_SERVICE_ENDPOINT",
    token_path="/latest/api/token",  # noqa: S106
    token_header="X-aws-ec2-metadata-token",  # noqa: S106
    token_ttl_header="X-aws-ec2-metadata-token-ttl-seconds",  # noqa: S106
    machine_id_path="/latest/meta-data/instance-id",
    address_path="/latest/meta-data/local-ipv4",
    notice_path="/latest/meta-data/spot/instance-action",
    hint_path="/latest/meta-data/events/recommendations/rebalance",
)


def script(order: Order, boot: Boot, cloud: Cloud) -> str:
    """User-data for every machine of the order. The same order and boot give the same bytes: a purchase that is asked
    for again must be the same request."""
    if not boot.servers or not boot.agent_sha256:
        raise InvariantBroken(f"order {order.id} does not say where its machines find their agent")
    given = json.dumps(settings(order, boot, cloud), sort_keys=True)
    # The text of a JSON document in ASCII: as a Python literal it can be nothing but a string.
    text = PROGRAM.replace("@GIVEN@", repr(given))
    if len(text) > MAX_BYTES:
        raise InvariantBroken(f"order {order.id} boots with {len(text)} bytes; clouds take {MAX_BYTES}")
    return text


def settings(order: Order, boot: Boot, cloud: Cloud) -> Mapping[str, Any]:
    """What the program is given. `boot` becomes boot.json, beside what the machine learns about itself."""
    return {
        "agent_sha256": boot.agent_sha256,
        "within_s": cloud.boot_within.total_seconds(),
        "endpoint_variable": cloud.endpoint_variable,
        "paths": {"machine_id": cloud.machine_id_path, "address": cloud.address_path},
        "metadata": {
            "endpoint": cloud.endpoint,
            "token_path": cloud.token_path,
            "token_header": cloud.token_header,
            "token_ttl_header": cloud.token_ttl_header,
            "notice_path": cloud.notice_path,
            "hint_path": cloud.hint_path,
        },
        "is_watched": order.is_spot,  # the others are not taken back, so they need not ask
        "boot": {
            "servers": list(boot.servers),
            "enrolment_token": boot.enrolment_token,
            "order_id": order.id,
            "power_off": list(cloud.power_off),
            "enrol_within_s": cloud.enrol_within.total_seconds(),
            "max_life_s": None if cloud.max_life is None else cloud.max_life.total_seconds(),
        },
    }


# For Python 3.8 and newer, with nothing but its standard library: whatever the image brings.
PROGRAM = '''#!/usr/bin/env python3
"""The first program of a machine of Crucible: it fetches the agent, checks it and becomes it, or powers off."""
import hashlib
import http.client
import json
import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

GIVEN = json.loads(@GIVEN@)
DEADLINE = time.monotonic() + GIVEN["within_s"]
MAX_AGENT = 16 << 20
MAX_WORD = 1 << 10
# No server will say anything else to the same question.
FINAL = (401, 403, 404, 410)


class Failed(Exception):
    """Why it did not work this time."""


class Final(Exception):
    """Why it never will."""


def main():
    try:
        become_agent(os.environ.get("CRUCIBLE_NODE_DIR") or "/var/lib/crucible")
    except Exception as error:
        say("boot failed: %s" % (error if isinstance(error, Final) else "%s: %s" % (type(error).__name__, error)))
    argv = GIVEN["boot"]["power_off"]
    try:
        subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        say("could not power off: %s" % error)
    return 1


def become_agent(folder):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    metadata = dict(GIVEN["metadata"])
    metadata["endpoint"] = os.environ.get(GIVEN["endpoint_variable"]) or metadata["endpoint"]
    boot = dict(GIVEN["boot"], metadata=metadata if GIVEN["is_watched"] else None)
    boot.update(persist(lambda: learn(metadata), "the metadata service does not say who this machine is"))
    say("machine %s at %s, order %s" % (boot["machine_id"], boot["address"], boot["order_id"]))
    server, agent = persist(fetch, "no server hands out the agent")
    boot["servers"] = sorted(boot["servers"], key=lambda each: each != server)
    program = os.path.join(folder, "crucible-agent.pyz")
    write(program, agent)
    write(os.path.join(folder, "boot.json"), json.dumps(boot).encode())
    os.environ.setdefault("HOME", os.path.expanduser("~"))
    os.execv(sys.executable, [sys.executable, program, "--dir", folder])


def learn(metadata):
    """Who this machine is, as its cloud says."""
    headers = {metadata["token_ttl_header"]: "300"}
    token = word(ask("PUT", metadata["endpoint"], metadata["token_path"], headers, MAX_WORD))
    headers = {metadata["token_header"]: token}
    paths = GIVEN["paths"].items()
    return {name: word(ask("GET", metadata["endpoint"], path, headers, MAX_WORD)) for name, path in paths}


def word(answer):
    status, body = answer
    text = body.decode("ascii", "replace").strip()
    if status != 200 or not text or len(text.split()) != 1:
        raise Failed("HTTP %d, %d bytes" % (status, len(body)))
    return text


def fetch():
    """A server that answers, and the agent that was ordered."""
    problems, refusals = [], 0
    path = "/v1/agent/" + GIVEN["agent_sha256"]
    headers = {"Authorization": "Bearer " + GIVEN["boot"]["enrolment_token"]}
    for server in GIVEN["boot"]["servers"]:
        try:
            status, body = ask("GET", server, path, headers, MAX_AGENT)
        except (OSError, http.client.HTTPException, ValueError, Failed) as error:
            problems.append("%s does not answer (%s)" % (server, error or type(error).__name__))
            continue
        if status == 200:
            return server, checked(body, server)
        problems.append("%s says HTTP %d %s" % (server, status, http.client.responses.get(status, "")))
        refusals += status in FINAL
    kind = Final if refusals == len(problems) else Failed
    raise kind("no server hands out the agent: " + "; ".join(problems))


def checked(body, server):
    digest = hashlib.sha256(body).hexdigest()
    if digest != GIVEN["agent_sha256"]:
        raise Final("the agent of %s is not the one that was ordered: its sha256 is %s" % (server, digest))
    return body


def persist(action, what):
    """Tries again, ever more slowly, until it works, never will, or took too long."""
    pause, said = 0.5, None
    while True:
        try:
            return action()
        except (OSError, http.client.HTTPException, ValueError, Failed) as error:
            problem = str(error) or type(error).__name__
        if problem != said:
            say("%s; trying again" % problem)
            said = problem
        # Not all machines of a gang at once.
        pause_s = pause * (0.5 + os.urandom(1)[0] / 510)
        if time.monotonic() + pause_s >= DEADLINE:
            raise Final("%s, for %g s: %s" % (what, GIVEN["within_s"], problem))
        time.sleep(pause_s)
        pause = min(15.0, 2 * pause)


def ask(method, base, path, headers, limit):
    """Status and body. No redirects, no proxies: the token goes to nobody else."""
    parts = urlsplit(base)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        body = b""
        for piece in iter(lambda: answer.read(1 << 16), b""):
            body += piece
            if len(body) > limit or time.monotonic() > DEADLINE:
                raise Failed("the answer is too large or too slow")
        if answer.length:
            raise Failed("the answer ended early")
        return answer.status, body
    finally:
        connection.close()


def write(path, data):
    """Whole or not at all, and nobody else's to read."""
    part = path + ".part"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(part, path)


def say(text):
    """A line on the console."""
    print("crucible: " + " ".join(text.split()), flush=True)


sys.exit(main())
'''
