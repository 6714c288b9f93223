"""A double of Crucible's server: the agent protocol and nothing else, on loopback, with faults on demand. With a double
of storage behind it, it signs for it and says what is there.

It validates every message with the real wire models, keeps log and metric records by their numbers as the real streams
do (a record twice is kept once, a gap is refused), and remembers what it saw. It can be stopped and started on another
port without losing its memory, as the real one can."""

import base64
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from crucible.core.checkpoint import manifest_key, part_keys, result_key, slot_of_manifest
from crucible.core.stored_manifest import BadManifest, StoredManifest, read_stored
from crucible.wire import agent as wire
from crucible.wire import datasets as trees
from crucible.wire import outputs as left
from doubles.outputs import OutputsDouble
from doubles.storage import StorageDouble
from doubles.trees import TreesDouble

ENROLMENT_TOKEN = "enrolment-token-of-the-order"
NODE_KEY = "node-key-of-the-node"
Source = tuple[str, int]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; without this every answer would wait for a delayed acknowledgement.
    disable_nagle_algorithm = True
    server: "_Http"

    def do_GET(self) -> None:
        self.server.double.handle(self)

    def do_POST(self) -> None:
        self.server.double.handle(self)

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    double: "ServerDouble"

    def handle_error(self, *_: Any) -> None:
        pass  # an agent that is killed breaks connections


class ServerDouble:
    def __init__(self, report_every_s: float = 0.5, orphan_after_s: float = 600) -> None:
        self.report_every_s = report_every_s
        self.orphan_after_s = orphan_after_s
        self.storage: StorageDouble | None = None
        self.trees: TreesDouble | None = None
        self.outputs: OutputsDouble | None = None
        self.signatures_live_s = 3600.0
        self.slots: list[wire.SlotRequest] = []
        self.candidates: list[wire.CandidateRequest] = []
        self._changed = threading.Condition()
        self._http: _Http | None = None
        self.url = ""
        self.servers: list[str] = []  # that answers to reports name
        self.work = wire.WorkReply(version="0")
        self.packages: dict[str, bytes] = {}
        self.secrets: dict[str, bytes] = {}  # of every attempt
        self.agents: dict[str, bytes] = {}  # by path
        # Faults: a path and what happens to its next requests.
        self.replies_to_lose: dict[str, int] = {}
        self.refusals: dict[str, int] = {}
        self.takes_records = True
        self.cannot_use: Callable[[wire.Report], bool] = lambda report: False
        # What it saw.
        self.problems: list[str] = []
        self.enrolments: list[wire.Enrol] = []
        self.reports: list[wire.Report] = []
        self.report_bytes: list[int] = []
        self.requests: list[tuple[str, float]] = []
        self.logs: dict[Source, list[wire.LogRecord]] = {}
        self.metrics: dict[Source, list[wire.MetricRecord]] = {}
        self.ranks: dict[Source, wire.RankReport] = {}
        self.states: dict[Source, list[str]] = {}
        self.checkpoints: list[wire.CheckpointReport] = []
        self.progress: list[wire.ProgressReport] = []
        # The log as it was when the exit of a rank was reported.
        self.lines_at_exit: dict[Source, int] = {}

    # --- its own life -----------------------------------------------------------------------

    def start(self) -> None:
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.double = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """As if killed: connections break, also those that wait for work."""
        if self._http is None:
            return
        http, self._http = self._http, None
        http.shutdown()
        http.server_close()
        with self._changed:
            self._changed.notify_all()

    # --- what a test says and asks ------------------------------------------------------------

    def give(self, *ranks: wire.RankWork, retire: bool = False) -> None:
        with self._changed:
            version = str(int(self.work.version) + 1)
            self.work = wire.WorkReply(version=version, ranks=list(ranks), retire=retire)
            self._changed.notify_all()

    def wait_for(self, claim: Callable[[], Any], timeout_s: float = 20, what: str = "") -> Any:
        """The first true value of `claim`, asked again whenever something arrived."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not (value := claim()):
                left = deadline - time.monotonic()
                assert left > 0, f"did not happen within {timeout_s} s: {what or claim}; ranks: {self.ranks}"
                self._changed.wait(min(left, 0.05))
        return value

    def exit_of(self, attempt_id: str = "att-1", rank: int = 0, timeout_s: float = 20) -> wire.RankReport:
        def exited() -> wire.RankReport | None:
            report = self.ranks.get((attempt_id, rank))
            return report if report is not None and report.state == "exited" else None

        return self.wait_for(exited, timeout_s, f"exit of {attempt_id}/{rank}")  # type: ignore[no-any-return]

    def lines(self, stream: str | None = "out", attempt_id: str = "att-1", rank: int = 0) -> list[str]:
        """Whole lines: pieces joined."""
        lines: list[str] = []
        is_open: dict[str, bool] = {}
        for record in self.logs.get((attempt_id, rank), []):
            if stream is not None and record.s != stream:
                continue
            if is_open.get(record.s):
                lines[-1] += record.x
            else:
                lines.append(record.x)
            is_open[record.s] = record.p
        return lines

    def has_line(self, text: str, stream: str | None = "out", attempt_id: str = "att-1", rank: int = 0) -> bool:
        return any(text in line for line in self.lines(stream, attempt_id, rank))

    # --- the protocol -------------------------------------------------------------------------

    def handle(self, http: _Handler) -> None:
        parts = urlsplit(http.path)
        body = http.rfile.read(int(http.headers.get("Content-Length") or 0))
        self.requests.append((parts.path, time.monotonic()))
        refusal = self.refusals.get(parts.path)
        if refusal is not None:
            http.answer(refusal, b'{"error": "refused", "message": "a fault of the test"}')
            return
        wanted = ENROLMENT_TOKEN if parts.path.endswith("/enrol") or parts.path in self.agents else NODE_KEY
        if http.headers.get("Authorization") != f"Bearer {wanted}":
            self.problems.append(f"{parts.path} came with another secret")
        try:
            status, answer = self._route(parts.path, parse_qs(parts.query, keep_blank_values=True), body)
        except ValidationError as error:
            self.problems.append(f"{parts.path}: {error}")
            status, answer = 422, b"{}"
        if self._http is None or self._loses_reply(parts.path):
            http.close_connection = True
            return
        http.answer(status, answer)

    def _loses_reply(self, path: str) -> bool:
        left = self.replies_to_lose.get(path, 0)
        self.replies_to_lose[path] = max(0, left - 1)
        return left > 0

    def _route(self, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, bytes]:
        if path == "/agent/v1/enrol":
            return 200, self._enrol(wire.Enrol.model_validate_json(body))
        if path == "/agent/v1/work":
            return 200, self._wait_for_work(query["seen"][0], float(query["wait"][0]))
        if path == "/agent/v1/report":
            self.report_bytes.append(len(body))
            return self._report(wire.Report.model_validate_json(body))
        if path in self.agents:
            return 200, self.agents[path]
        if path == "/agent/v1/secrets":
            return 200, self._secrets(wire.SecretsAsked.model_validate_json(body))
        if path == "/agent/v1/storage/slot":
            return 200, self._slot(wire.SlotRequest.model_validate_json(body)).model_dump_json().encode()
        if path == "/agent/v1/storage/candidate":
            return 200, self._candidate(wire.CandidateRequest.model_validate_json(body)).model_dump_json().encode()
        if path == "/agent/v1/datasets" and self.trees is not None:
            return self.trees.tree(trees.TreeRequest.model_validate_json(body))
        if path == "/agent/v1/datasets/fetched" and self.trees is not None:
            return 200, self.trees.note(trees.TreeFetched.model_validate_json(body))
        if path == "/agent/v1/outputs" and self.outputs is not None:
            return self.outputs.upload(left.OutputAsked.model_validate_json(body))
        if path == "/agent/v1/outputs/whole" and self.outputs is not None:
            return self.outputs.whole(left.OutputWhole.model_validate_json(body))
        digest = path.removeprefix("/agent/v1/packages/")
        return (200, self.packages[digest]) if digest in self.packages else (404, b"{}")

    def _enrol(self, message: wire.Enrol) -> bytes:
        with self._changed:
            self.enrolments.append(message)
            self._changed.notify_all()
        return (
            wire.Enrolled(
                node_id="node-1",
                node_key=NODE_KEY,
                report_every_s=self.report_every_s,
                servers=[self.url],
                orphan_after_s=self.orphan_after_s,
            )
            .model_dump_json()
            .encode()
        )

    def _secrets(self, asked: wire.SecretsAsked) -> bytes:
        items = [
            wire.SecretValue(name=name, value=base64.b64encode(value).decode()) for name, value in self.secrets.items()
        ]
        return wire.SecretsReply(items=items).model_dump_json().encode()

    def _wait_for_work(self, seen: str, wait_s: float) -> bytes:
        http = self._http
        deadline = time.monotonic() + wait_s
        with self._changed:
            while self.work.version == seen and self._http is http and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            if self.work.version == seen:
                return wire.WorkReply(version=seen, unchanged=True).model_dump_json().encode()
            return self.work.model_dump_json().encode()

    # --- storage ------------------------------------------------------------------------------

    def _slot(self, asked: wire.SlotRequest) -> wire.SlotReply:
        assert self.storage is not None
        number = next(each.launch.number for each in self.work.ranks if each.launch.attempt_id == asked.attempt_id)
        slot = asked.slot or f"{number:05d}-{asked.rank:05d}-{secrets.token_hex(8)}"
        with self._changed:
            self.slots.append(asked)
            self._changed.notify_all()
        return wire.SlotReply(
            slot=slot,
            prefix="s3://bucket/lineage/task",
            manifest=self.storage.sign("PUT", manifest_key(slot)),
            parts=[self.storage.sign("PUT", key) for key in part_keys(slot, asked.first, asked.count)],
            result=self.storage.sign("PUT", result_key(asked.attempt_id, asked.rank)),
            lives_s=self.signatures_live_s,
        )

    def _candidate(self, asked: wire.CandidateRequest) -> wire.CandidateReply:
        assert self.storage is not None
        self.candidates.append(asked)
        found = self._wholes(self.storage)
        if asked.skip >= len(found):
            return wire.CandidateReply(candidate=None)
        shards = [
            wire.StoredShard(
                slot=one.slot,
                manifest=self.storage.objects[manifest_key(one.slot)].decode(),
                objects=[self.storage.sign("GET", each.key) for each in one.objects],
            )
            for one in found[asked.skip]
        ]
        return wire.CandidateReply(candidate=wire.Candidate(step=found[asked.skip][0].node.step, shards=shards))

    def _wholes(self, storage: StorageDouble) -> list[list[StoredManifest]]:
        """Newest first, those with all their shards."""
        groups: dict[tuple[int, int, int], dict[int, StoredManifest]] = {}
        for key in storage.names("manifests/"):
            with contextlib.suppress(BadManifest):
                one = read_stored(storage.objects[key], slot_of_manifest(key) or "")
                name = (one.node.step, one.node.attempt, one.node.shards)
                groups.setdefault(name, {})[one.node.shard] = one
        complete = [name for name in sorted(groups, reverse=True) if len(groups[name]) == name[2]]
        return [[groups[name][number] for number in range(name[2])] for name in complete]

    def _report(self, report: wire.Report) -> tuple[int, bytes]:
        if self.cannot_use(report):
            return 422, b'{"error": "invalid_request", "message": "a fault of the test"}'
        with self._changed:
            self.reports.append(report)
            acks = []
            for batch in report.streams if self.takes_records else []:
                source = (batch.attempt_id, batch.rank)
                log = self.logs.setdefault(source, [])
                metrics = self.metrics.setdefault(source, [])
                if not (_extend(log, batch.log) and _extend(metrics, batch.metrics)):
                    self.problems.append(f"a gap in the records of {source}: {len(log)} {len(metrics)}")
                    return 400, b'{"message": "a gap"}'
                acks.append(wire.StreamAck(attempt_id=source[0], rank=source[1], log=len(log), metrics=len(metrics)))
            self._note(report)
            self._changed.notify_all()
        said = wire.ReportReply(acks=acks, servers=self.servers, work_version=self.work.version)
        return 200, said.model_dump_json().encode()

    def _note(self, report: wire.Report) -> None:
        for rank in report.ranks:
            source = (rank.attempt_id, rank.rank)
            self.ranks[source] = rank
            states = self.states.setdefault(source, [])
            if not states or states[-1] != rank.state:
                states.append(rank.state)
                self.lines_at_exit[source] = len(self.logs.get(source, []))
        self.checkpoints += [each for each in report.checkpoints if each not in self.checkpoints]
        self.progress += report.progress


def _extend(kept: list[Any], new: list[Any]) -> bool:
    for record in new:
        if record.n > len(kept):
            return False
        if record.n == len(kept):
            kept.append(record)
    return True


@contextlib.contextmanager
def running_double(**options: Any) -> Iterator[ServerDouble]:
    double = ServerDouble(**options)
    double.start()
    try:
        yield double
    finally:
        double.stop()
    assert double.problems == [], json.dumps(double.problems, indent=2)
