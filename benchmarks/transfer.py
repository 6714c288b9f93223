"""A checkpoint on its way to real object storage (SeaweedFS on this computer), by the agent's own code, beside a plain
put of obstore and an upload of boto3. Each runs in a process of its own, in turns; only the transfer is measured, and
CPU seconds are the client's. The agent's includes linking the files aside, its notes on disk and the manifest."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import timing
from benchmarks.figure import Figure

LARGE_BYTES = 512_000_000
SMALL_FILES, SMALL_BYTES = 2000, 4096
ROUNDS = 3
# What boto3's own transfers use.
BOTO_THREADS = 10
SLOT = "00000-00000-0123456789abcdef"

Spent = Mapping[str, float]


def measure() -> Iterator[Figure]:
    began = timing.own()
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        _make_files(Path(folder))
        large = [_round("large", ["agent", "obstore", "boto3"], number, folder) for number in range(ROUNDS)]
        small = [_round("small", ["agent", "boto3"], number, folder) for number in range(ROUNDS)]
    wall_s = (timing.own() - began).wall_s
    rate = {who: LARGE_BYTES / 1e6 / statistics.median(one[who]["wall_s"] for one in large) for who in large[0]}
    cpu = {f"{who}_cpu_s": statistics.median(one[who]["cpu_s"] for one in large) for who in large[0]}
    yield Figure(
        name="transfer.large_time_over_obstore",
        value=_ratio(large, "agent", "obstore", "wall_s"),
        unit="x",
        bound=1 / 0.9,
        cpu_s=sum(one["agent"]["cpu_s"] for one in large),
        wall_s=wall_s,
        context={"mb": LARGE_BYTES / 1e6, **{f"{who}_mb_per_s": value for who, value in rate.items()}},
    )
    yield Figure(
        name="transfer.large_cpu_over_boto3",
        value=_ratio(large, "agent", "boto3", "cpu_s"),
        unit="x",
        bound=0.5,
        cpu_s=sum(one["agent"]["cpu_s"] for one in large),
        wall_s=wall_s,
        context={"mb": LARGE_BYTES / 1e6, **cpu},
    )
    yield Figure(
        name="transfer.small_time_over_boto3",
        value=_ratio(small, "agent", "boto3", "wall_s"),
        unit="x",
        bound=0.5,
        cpu_s=sum(one["agent"]["cpu_s"] for one in small),
        wall_s=wall_s,
        context={"files": SMALL_FILES, "bytes": SMALL_BYTES, **_files_per_s(small)},
    )


def _ratio(rounds: list[Mapping[str, Spent]], one: str, other: str, what: str) -> float:
    mine, theirs = (statistics.median(each[who][what] for each in rounds) for who in (one, other))
    return mine / theirs


def _files_per_s(rounds: list[Mapping[str, Spent]]) -> dict[str, float]:
    times = {who: statistics.median(each[who]["wall_s"] for each in rounds) for who in rounds[0]}
    return {f"{who}_files_per_s": SMALL_FILES / wall_s for who, wall_s in times.items()}


def _round(what: str, whose: list[str], number: int, folder: str) -> dict[str, Spent]:
    """In a storage of its own, for that of the tests is small; each time another one begins."""
    shift = number % len(whose)
    with _storage() as environ:
        return {who: _run(who, what, folder, environ) for who in whose[shift:] + whose[:shift]}


def _run(who: str, what: str, folder: str, environ: Mapping[str, str]) -> Spent:
    argv = [sys.executable, "-m", "benchmarks.transfer", who, what, folder]
    ran = subprocess.run(argv, env={**os.environ, **environ}, stdout=subprocess.PIPE, check=True, timeout=600)
    found: Spent = json.loads(ran.stdout)
    return found


def _make_files(folder: Path) -> None:
    """As a training script saves them: the digests are its work, before the agent hears of anything."""
    from crucible.train.checkpoint_store import CheckpointStore

    (folder / "large").mkdir()
    (folder / "large/weights").write_bytes(os.urandom(1_000_000) * (LARGE_BYTES // 1_000_000))
    (folder / "small").mkdir()
    for number in range(SMALL_FILES):
        (folder / f"small/{number:05d}").write_bytes(os.urandom(SMALL_BYTES))
    for what in ("large", "small"):
        CheckpointStore(str(folder / "store" / what)).commit(folder / what, 1)


@contextmanager
def _storage() -> Iterator[dict[str, str]]:
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    import storage_engines

    with tempfile.TemporaryDirectory(prefix="crucible-bench-s3-", ignore_cleanup_errors=True) as folder:
        port, process = storage_engines.start_seaweedfs(Path(folder))
        try:
            engine = storage_engines.s3_engine(port)
            storage_engines.wait_until(lambda: storage_engines.make_bucket(engine), process, Path(folder))
            yield {**engine.environ, "BENCH_BUCKET": engine.bucket}
        finally:
            storage_engines.stop(process)


# --- one transfer, in a process of its own ------------------------------------------------------------


def _transfer(who: str, what: str, folder: Path) -> Spent:
    act = {"agent": _by_agent, "obstore": _by_obstore, "boto3": _by_boto3}[who](what, folder)
    cpu, wall = time.process_time(), time.perf_counter()
    act()
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}


def _by_agent(what: str, folder: Path) -> Callable[[], None]:
    from crucible.agent.meter import Transfer
    from crucible.agent.upload import Upload
    from crucible.agent.words import Words

    manifest = folder / "store" / what / "step-000000001/manifest.json"
    digest = _sha256(manifest)
    slots: Any = _Slots()
    upload = Upload(str(folder / "upload"), slots, threading.Event(), Words(str(folder / "agent.log")))

    def act() -> None:
        upload.load(str(manifest), digest)
        upload.send(Transfer(upload.plan([])))
        upload.discard()

    return act


class _Slots:
    """The server's part: a slot whose requests were signed before."""

    def __init__(self) -> None:
        from crucible.agent.protocol import SlotReply
        from crucible.agent.slots import Slot

        reply = {
            "slot": SLOT,
            "prefix": "s3://bench",
            "manifest": _signed(f"manifests/{SLOT}.json"),
            "result": _signed("results/bench-0.json"),
            "parts": [_signed(f"parts/{SLOT}/{number:05d}") for number in range(16)],
            "lives_s": 3600.0,
        }
        self._slot = Slot(SlotReply(reply))

    def take(self, wait_s: float) -> object:
        return self._slot

    def extend(self, slot: object, count: int) -> None:
        if count > 16:
            raise RuntimeError(f"{count} objects were not expected")

    def expect(self, count: int) -> None:
        pass


def _signed(key: str) -> dict[str, object]:
    import obstore

    return {"method": "PUT", "url": obstore.sign(_store(), "PUT", key, timedelta(hours=1)), "headers": {}}


def _by_obstore(what: str, folder: Path) -> Callable[[], None]:
    import obstore

    store = _store()
    return lambda: obstore.put(store, "obstore/weights", folder / what / "weights") and None


def _by_boto3(what: str, folder: Path) -> Callable[[], None]:
    import boto3

    bucket = os.environ["BENCH_BUCKET"]
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"], region_name=os.environ["AWS_REGION"])
    if what == "large":
        return lambda: client.upload_file(str(folder / "large/weights"), bucket, "boto3/weights")

    def act() -> None:
        with ThreadPoolExecutor(BOTO_THREADS) as pool:
            for path in (folder / "small").iterdir():
                pool.submit(client.upload_file, str(path), bucket, f"boto3/{path.name}")

    return act


def _store() -> Any:
    from obstore.store import S3Store

    return S3Store(
        os.environ["BENCH_BUCKET"],
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
        region=os.environ["AWS_REGION"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        client_options={"allow_http": True},
    )


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(_transfer(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
