"""The platform against a server at the wire: what is sent, what is decided here and said, what is raised."""

import asyncio
import io
import json
import logging
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crucible import Client, Job, MLPlatform, Requirements
from crucible.client import exits
from crucible.client.connecting import resolve
from crucible.client.errors import BadConfiguration, JobCancelled, JobFailed, JobNotOver
from crucible.model.errors import InfeasibleJob, InvalidRequest
from crucible.spec import load
from doubles.api_server import api, brief
from doubles.api_server import job as job_view
from doubles.http_server import Double, Handler, Request, serving

ID = str(job_view()["id"])
SCRIPT = "print('grüße')\n"
NO_GPU = {"error": "infeasible_job", "message": "no offer fits", "details": {"field": "resources.gpu_memory"}}


class Server:
    """Knows packages and jobs; says no to GPUs if it is told to."""

    def __init__(self) -> None:
        self.packages: dict[str, bytes] = {}
        self.specs: list[Any] = []
        self.refusal: dict[str, Any] | None = None
        self.refuses_all = False
        self.blocking = "gpu_memory"
        self.asked: dict[str, Any] = {}
        self.double: Double

    def routes(self) -> dict[str, Any]:
        return {
            "POST /v1/jobs": self.submit,
            "POST /v1/plan": self.plan,
            "POST /v1/recommendations": self.recommend,
            "GET /v1/jobs": {"items": [brief()], "next_cursor": None},
            f"GET /v1/jobs/{ID}": job_view(status="completed"),
            f"GET /v1/jobs/{ID}/metrics": self.metrics,
            f"GET /v1/jobs/{ID}/events": {"items": [], "next_after": None},
            f"GET /v1/jobs/{ID}/checkpoints": {"items": [{"step": 10}, {"step": 20}]},
            f"GET /v1/jobs/{ID}/artifacts": {"items": []},
            f"POST /v1/jobs/{ID}/cancel": {"id": ID, "status": "running", "desired": "cancel"},
        }

    def submit(self, request: Request) -> Any:
        return self._answer(request, (201, {"id": ID, "status": "pending"}))

    def plan(self, request: Request) -> Any:
        """As the planner does: it names what could run it, and refuses nothing."""
        gpus = load(json.loads(request.body)["spec_yaml"]).spec.resources.gpus
        is_refused = self.refusal is not None and (gpus or self.refuses_all)
        chosen = {"gpus": gpus}
        rejections = [{"rule": self.blocking, "reason": "because"}] if is_refused else []
        runnable = None if is_refused else chosen
        return {"chosen": chosen, "runnable": runnable, "alternatives": [], "rejections": rejections, "notes": ["old"]}

    def recommend(self, request: Request) -> Any:
        self.asked = json.loads(request.body)
        return {"recommendations": [], "notes": ["read"]}

    def _answer(self, request: Request, otherwise: Any) -> Any:
        spec = load(json.loads(request.body)["spec_yaml"]).spec
        self.specs.append(spec)
        if self.refusal is not None and (spec.resources.gpus or self.refuses_all):
            return 422, self.refusal
        return otherwise

    def metrics(self, request: Request) -> dict[str, Any]:
        offset = int(request.query["offset"])
        points = [{"step": 1, "values": {"loss": 2.0, "lr": 0.1}}, {"step": 2, "values": {"loss": 1.0}}]
        return {"items": points[offset : offset + 1], "next_offset": min(offset + 1, 2)}


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    routes: Any = Routes(found)
    with api(routes) as double:
        found.double = double
        yield found


class Routes(dict[str, Any]):
    """The table, and packages by whatever name they have."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.routes())
        self._server = server

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or "/v1/packages/" in str(key)

    def __missing__(self, key: str) -> Any:
        return self._package

    def _package(self, request: Request) -> Any:
        digest = request.path.rsplit("/", 1)[-1]
        if request.method == "PUT":
            self._server.packages[digest] = request.body
            return 201, {}
        return (200 if digest in self._server.packages else 404), {}


@pytest.fixture
def platform(server: Server) -> Iterator[MLPlatform]:
    with MLPlatform(server.double.url, "s3cret-token") as found:
        yield found


def shipped(server: Server) -> dict[str, str]:
    (package,) = server.packages.values()
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]


# --- submitting ---------------------------------------------------------------------------------------------


def test_the_text_of_a_script_is_shipped_and_run(platform: MLPlatform, server: Server) -> None:
    job = platform.submit(SCRIPT, name="first")
    assert (job.id, job.notes) == (ID, ())
    assert shipped(server) == {"train.py": SCRIPT}
    sent = json.loads(server.double.requests[-1].body)
    assert sent["name"] == "first" and sent["code_digest"] in server.packages
    assert (server.specs[0].entrypoint, server.specs[0].resources.gpus) == ("train.py", 1)


def test_the_same_code_is_shipped_once(platform: MLPlatform, server: Server) -> None:
    platform.submit(SCRIPT)
    platform.submit(SCRIPT)
    assert [request.method for request in server.double.requests].count("PUT") == 1


def test_a_file_and_a_folder_are_shipped_as_they_are(platform: MLPlatform, server: Server, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(SCRIPT)
    platform.submit(tmp_path / "run.py")
    assert shipped(server) == {"run.py": SCRIPT} and server.specs[-1].entrypoint == "run.py"
    server.packages.clear()
    (tmp_path / "extra.txt").write_text("more")
    platform.submit(tmp_path, entrypoint="run.py")
    assert shipped(server) == {"extra.txt": "more", "run.py": SCRIPT}


def test_text_that_is_no_text_is_refused(platform: MLPlatform) -> None:
    with pytest.raises(InvalidRequest, match="UTF-8"):
        platform.submit("print('\ud800')\n")


def test_a_wish_for_a_gpu_is_given_up_aloud(
    platform: MLPlatform, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.refusal = NO_GPU
    with caplog.at_level(logging.WARNING, "crucible"):
        job = platform.submit(SCRIPT, Requirements(gpu_memory_gb=16))
    assert [spec.resources.gpus for spec in server.specs] == [1, 0]
    assert "runs on CPUs (no offer fits)" in job.notes[0] and caplog.messages == list(job.notes)
    assert job.status().notes == job.notes


def test_a_plan_says_what_submit_would_do(platform: MLPlatform, server: Server) -> None:
    assert platform.plan(SCRIPT)["chosen"] == {"gpus": 1}
    server.refusal = NO_GPU
    made = platform.plan(SCRIPT)
    assert made["chosen"] == {"gpus": 0}
    assert made.get("notes", [])[0] == "old" and "runs on CPUs" in made.get("notes", [])[1]
    assert platform.plan(SCRIPT, Requirements(gpus=1))["chosen"] == {"gpus": 1}
    server.blocking = "sold_out"
    assert platform.plan(SCRIPT)["chosen"] == {"gpus": 1}, "it would wait for it"
    server.blocking, server.refuses_all = "gpu_memory", True
    assert platform.plan(SCRIPT)["chosen"] == {"gpus": 1}, "CPUs will not do either"
    assert server.packages == {}


def test_a_rule_about_gpus_is_never_bent(platform: MLPlatform, server: Server) -> None:
    server.refusal = NO_GPU
    with pytest.raises(InfeasibleJob, match="no offer fits"):
        platform.submit(SCRIPT, Requirements(gpus=1))
    assert len(server.specs) == 1


@pytest.mark.parametrize("field", ["constraints.budget", "constraints.deadline", "job.constraints.min_reliability"])
def test_a_refusal_about_money_or_time_is_not_dodged_by_running_on_cpus(
    platform: MLPlatform, server: Server, field: str
) -> None:
    server.refusal = {**NO_GPU, "details": {"field": field}}
    with pytest.raises(InfeasibleJob):
        platform.submit(SCRIPT)
    assert len(server.specs) == 1


def test_if_cpus_will_not_do_either_the_first_reason_is_told(platform: MLPlatform, server: Server) -> None:
    server.refusal, server.refuses_all = NO_GPU, True
    with pytest.raises(InfeasibleJob) as refused:
        platform.submit(SCRIPT)
    assert refused.value.details["field"] == "resources.gpu_memory" and len(server.specs) == 2


def test_a_recommendation_is_asked_for_in_the_servers_words(
    platform: MLPlatform, server: Server, tmp_path: Path
) -> None:
    needs = Requirements(
        gpu_memory_gb=16, duration_hours_estimated=3, checkpoint_frequency_minutes=0.5, max_cost_usd=10
    )
    made = platform.recommend(SCRIPT, {"optimize_for": "cost", "allowed_backends": None}, needs)
    assert made["recommendations"] == [] and made["notes"] == ["read"]
    assert server.asked["files"] == [{"name": "script.py", "text": SCRIPT}]
    assert server.asked["preferences"] == {
        "gpu_memory_gb": 16,
        "duration_hours": 3,
        "checkpoint_frequency_minutes": 1,
        "max_cost_usd": 10,
        "optimize_for": "cost",
        "allowed_backends": None,
    }
    (tmp_path / "run.py").write_bytes(b"# caf\xe9\n")
    made = platform.recommend(tmp_path / "run.py")
    assert server.asked["entrypoint"] == "run.py" and "Latin-1" in made["notes"][0]


def test_a_coroutine_submits_and_monitors(platform: MLPlatform, server: Server) -> None:
    async def story() -> list[str]:
        job = await platform.asubmit(SCRIPT, name="async")
        return [status.phase async for status in job.monitor()]

    assert asyncio.run(story()) == ["completed"]
    assert shipped(server) == {"train.py": SCRIPT}


def test_submit_works_inside_a_running_loop_as_in_a_notebook(platform: MLPlatform) -> None:
    async def cell() -> str:
        return platform.submit(SCRIPT).id

    assert asyncio.run(cell()) == ID


def test_a_platform_may_be_shared_by_threads(platform: MLPlatform, server: Server) -> None:
    def work(number: int) -> set[str]:
        job = platform.submit(f"print({number})\n")
        return {job.status().phase for _ in range(20)}

    with ThreadPoolExecutor(8) as threads:
        assert set().union(*threads.map(work, range(16))) == {"completed"}
    assert len(server.packages) == len(server.specs) == 16


def test_a_mistake_is_told_without_a_server() -> None:
    nowhere = MLPlatform("http://127.0.0.1:9")
    with pytest.raises(InvalidRequest, match="code is empty"):
        nowhere.submit("")


# --- jobs ---------------------------------------------------------------------------------------------------


def test_a_completed_job_has_a_result(platform: MLPlatform) -> None:
    result = platform.job("resnet50").result()
    assert result.metrics == {"loss": 1.0, "lr": 0.1}
    assert result.checkpoint is not None and result.checkpoint["step"] == 20
    assert result.status.is_over and result.status.backend == "local"


@pytest.mark.parametrize(("status", "kind", "code"), [("failed", JobFailed, 100), ("cancelled", JobCancelled, 103)])
def test_a_job_without_a_result_raises(status: str, kind: type[JobFailed], code: int) -> None:
    with (
        api({f"GET /v1/jobs/{ID}": job_view(status=status, reason="exited with 7")}) as double,
        MLPlatform(double.url) as platform,
        pytest.raises(kind, match="exited with 7") as raised,
    ):
        platform.job(ID).result()
    assert exits.of_error(raised.value) == code


def test_a_wait_that_is_too_short_says_so() -> None:
    with (
        api({f"GET /v1/jobs/{ID}": job_view()}) as double,
        MLPlatform(double.url) as platform,
        pytest.raises(JobNotOver),
    ):
        platform.job(ID).wait(timeout_s=0.01)


def test_jobs_are_listed_cancelled_and_described(platform: MLPlatform) -> None:
    assert [job["name"] for job in platform.jobs()] == ["resnet50"]
    job = platform.job(ID)
    assert job.cancel().get("desired") == "cancel"
    assert job.view()["name"] == "resnet50" and repr(job) == f"Job('{ID}')"
    assert [point["step"] for point in job.metrics()] == [1, 2]


def test_a_long_line_that_came_in_pieces_is_one_line() -> None:
    records = [(0, "one", False), (0, "tw", True), (1, "other", False), (0, "o", False), (0, "unfinished", True)]
    lines = "".join(
        json.dumps({"attempt": 0, "rank": rank, "n": n, "t": 0, "s": "out", "x": text} | ({"p": True} if part else {}))
        + "\n"
        for n, (rank, text, part) in enumerate(records)
    ).encode()

    def answer(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        reply.chunk(lines)
        reply.end_chunks()

    with serving(answer) as double, Client(double.transport()) as client:
        assert list(Job(ID, client, lambda: client).logs()) == ["one", "other", "two", "unfinished"]


# --- which server -------------------------------------------------------------------------------------------


def test_a_token_goes_only_to_the_server_it_is_for(tmp_path: Path) -> None:
    saved = tmp_path / "crucible" / "config.json"
    saved.parent.mkdir()
    saved.write_text(json.dumps({"url": "https://saved.example", "token": "saved"}))
    environ = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "CRUCIBLE_SERVER": "https://configured.example",
        "CRUCIBLE_TOKEN": "configured",
    }

    def token(url: str | None, given: str | None = None) -> str | None:
        endpoint = resolve(environ, url, given)
        assert endpoint is not None
        return endpoint.token

    assert token(None) == token("https://configured.example/") == "configured"
    assert token("https://saved.example") == "saved"
    assert token("https://other.example") is None
    assert token("https://other.example", "given") == token(None, "given") == "given"


def test_without_any_server_the_embedded_one_is_meant(tmp_path: Path) -> None:
    assert resolve({"XDG_CONFIG_HOME": str(tmp_path)}, None, None) is None


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadConfiguration, match="is not a server address"):
        MLPlatform("localhost:8750").jobs()
