"""Leases, outputs and commits of shards against a real server, as many workers at a time as a small batch has. The
program of the job sleeps; its token is used by eight clients, which do nothing with the items."""

import hashlib
import http.client
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import server, timing
from benchmarks.figure import Figure
from crucible.client.package import pack

SHARDS = 2000
WORKERS = 8
OUTPUT = b'{"index":0,"result":"a label"}\n' * 20
# Of the server, for a lease, its output on the server's own disk, and its commit.
BOUND_MS = 12.0
SPEC = f"""\
job:
  name: batch
  type: inference
  entrypoint: sleeps.py
  shards: {{count: {SHARDS}, size: 1, workers: 1}}
"""


def measure() -> Iterator[Figure]:
    with server.running("--local-gpus", "1") as running:
        job_id = submitted(running)
        token = token_of(running)
        before = running.spent()
        workers = [threading.Thread(target=work, args=(running.address, token)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        spent = running.spent() - before
        counts = running.ask("GET", f"/v1/jobs/{job_id}/shards?limit=1")["counts"]
        if counts["done"] != SHARDS:
            raise RuntimeError(f"only {counts['done']} of {SHARDS} shards are done")
        running.ask("POST", f"/v1/jobs/{job_id}/cancel")
    yield Figure(
        name="a shard leased, sent and committed",
        value=spent.cpu_s / SHARDS * 1000,
        unit="ms CPU of the server",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        bound=BOUND_MS,
        context={"shards": SHARDS, "workers": WORKERS, "per_s": SHARDS / spent.wall_s},
    )


def submitted(running: server.Server) -> str:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "sleeps.py"
        script.write_text("import time\ntime.sleep(3600)\n")
        package = pack(script, "sleeps.py")
    connection = running.connect()
    connection.request("PUT", f"/v1/packages/{package.digest}", package.path.read_bytes(), running.headers)
    connection.getresponse().read()
    connection.close()
    package.path.unlink()
    body = {"spec_yaml": SPEC, "code_digest": package.digest}
    return str(running.ask("POST", "/v1/jobs", body)["id"])


def token_of(running: server.Server) -> str:
    """Of the attempt, when its program runs."""
    pattern = "local/machines/*/attempts/*/rank-0/started.json"
    timing.until(lambda: any(running.home.glob(pattern)), "the program of the job")
    return (next(running.home.glob(pattern)).parent / "token").read_text()


def work(address: tuple[str, int], token: str) -> None:
    connection = http.client.HTTPConnection(*address, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(what: str, body: dict[str, Any]) -> Any:
        connection.request("POST", f"/worker/v1/shards/{what}", json.dumps(body), headers)
        return json.loads(connection.getresponse().read())

    digest = hashlib.sha256(OUTPUT).hexdigest()
    while (shard := ask("lease", {"asked": os.urandom(16).hex()}).get("shard")) is not None:
        connection.request("PUT", "/" + shard["parts"][0]["url"].split("/", 3)[3], OUTPUT)
        connection.getresponse().read()
        said = {"number": shard["number"], "fence": shard["fence"], "size": len(OUTPUT), "sha256": digest}
        ask("commit", {**said, "seconds": 0.01})
    connection.close()
