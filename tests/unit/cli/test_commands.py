"""Commands against a server whose answers we wrote: what is printed where, and with which exit code."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from doubles.api_server import attempt, brief, costs, job, rank
from doubles.http_server import Request

ID = "019a8c3f-2b41-7000-8000-000000000001"
OTHER = "019a8c3f-2b42-7000-8000-000000000002"


def one_job(**changes: Any) -> dict[str, Any]:
    view = job(**changes)
    return {
        f"GET /v1/jobs/{ID}": view,
        f"GET /v1/jobs/{ID}/attempts": {"items": [attempt()]},
        f"GET /v1/jobs/{ID}/events": {
            "items": [{"seq": 1, "at": "2026-01-17T10:00:00Z", "from": None, "to": "pending"}]
        },
        f"GET /v1/jobs/{ID}/why": {"tasks": []},
    }


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    def answer(request: Request) -> dict[str, Any]:
        name = request.query.get("name")
        return {"items": [item for item in items if name in (None, item["name"])], "next_cursor": None}

    return {"GET /v1/jobs": answer}


# --- costs --------------------------------------------------------------------------------------------


def test_costs_are_a_page_for_people_and_everything_for_programs(crucible: Any, serve: Any) -> None:
    serve({**one_job(), f"GET /v1/jobs/{ID}/costs": costs()})
    page = crucible("costs", ID)
    assert page.code == 0 and page.err == ""
    assert page.out.startswith("So far:     $12.35\n") and "\x1b" not in page.out
    assert json.loads(crucible("costs", ID, "-o", "json").out) == costs()
    table = crucible("costs", ID, "--intervals").out.splitlines()
    assert len(table) == 1 + len(costs()["intervals"])


def test_a_job_that_cost_nothing_says_so(crucible: Any, serve: Any) -> None:
    nothing = {"so_far_usd": 0.0, "per_hour_usd": 0.0, "machines": [], "intervals": [], "by_kind": []}
    serve({**one_job(), f"GET /v1/jobs/{ID}/costs": costs(**nothing, remaining=None, postings=[])})
    ran = crucible("costs", ID)
    assert ran.code == 0 and "nothing was charged" in ran.err


# --- lists --------------------------------------------------------------------------------------------


def test_ps_asks_for_what_waits_or_runs_and_prints_whole_ids_to_a_pipe(crucible: Any, serve: Any) -> None:
    server = serve(listing(brief()))
    ran = crucible("ps")
    assert ran.code == 0
    assert ran.out.splitlines()[1].startswith(f"{ID}  resnet50  running")
    assert server.requests[0].query["status"] == "pending,scheduled,provisioning,running,checkpointing"


def test_ps_with_all_asks_for_every_state_and_status_for_those_named(crucible: Any, serve: Any) -> None:
    server = serve(listing(brief()))
    crucible("ps", "-a")
    crucible("status", "--status", "failed", "--status", "cancelled", "--limit", "7")
    assert "status" not in server.requests[0].query
    assert server.requests[1].query["status"] == "failed,cancelled"
    assert server.requests[1].query["limit"] == "7"


def test_ps_reads_page_after_page(crucible: Any, serve: Any) -> None:
    def pages(request: Request) -> dict[str, Any]:
        page = int(request.query.get("cursor", 0))
        return {"items": [brief(id=f"{ID[:-1]}{page}")], "next_cursor": str(page + 1) if page < 2 else None}

    serve({"GET /v1/jobs": pages})
    assert len(crucible("ps", "-q").out.splitlines()) == 3
    assert len(crucible("ps", "-q", "--limit", "2").out.splitlines()) == 2


def test_an_empty_list_says_so_on_stderr_only(crucible: Any, serve: Any) -> None:
    serve(listing())
    ran = crucible("ps")
    assert (ran.out, ran.code) == ("", 0)
    assert "crucible ps -a" in ran.err


def test_ps_as_json_and_yaml_is_what_the_server_said(crucible: Any, serve: Any) -> None:
    serve(listing(brief()))
    assert json.loads(crucible("ps", "-o", "json").out)["items"] == [brief()]
    assert yaml.safe_load(crucible("ps", "-o", "yaml").out)["items"] == [brief()]


# --- one job ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [ID, ID.upper(), ID[:13], "resnet50"])
def test_a_job_is_named_by_id_prefix_or_name(crucible: Any, serve: Any, word: str) -> None:
    serve(one_job() | listing(brief(), brief(id=OTHER, name="other")))
    ran = crucible("describe", word, "-o", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["id"] == ID


def test_a_name_means_its_newest_job(crucible: Any, serve: Any) -> None:
    serve(one_job() | listing(brief(), brief(id=OTHER)))
    assert json.loads(crucible("describe", "resnet50", "-o", "json").out)["id"] == ID


def test_a_prefix_of_several_jobs_is_refused_with_their_names(crucible: Any, serve: Any) -> None:
    serve(one_job() | listing(brief(), brief(id=OTHER, name="other")))
    ran = crucible("describe", ID[:10])
    assert ran.code == 2
    assert ID in ran.err and f"{OTHER} (other)" in ran.err


@pytest.mark.parametrize("word", ["nothing-like-it", "ffff"])
def test_a_job_that_is_not_there_is_exit_code_5(crucible: Any, serve: Any, word: str) -> None:
    serve(listing(brief()))
    ran = crucible("logs", word)
    assert ran.code == 5
    assert ran.err.startswith(f"error: there is no job named '{word}'")


def test_an_error_as_json_is_one_object_on_stderr(crucible: Any, serve: Any) -> None:
    serve({f"GET /v1/jobs/{ID}": (401, {"error": "unauthenticated", "message": "who are you?", "details": {}})})
    ran = crucible("wait", ID, "-o", "json")
    said = json.loads(ran.err)
    assert ran.code == 4
    assert (said["error"], said["message"], said["exit_code"]) == ("unauthenticated", "who are you?", 4)
    assert "crucible login" in said["hint"]
    assert ran.out == ""


def test_describe_shows_the_job_its_attempts_and_its_events(crucible: Any, serve: Any) -> None:
    serve(one_job())
    out = crucible("describe", ID).out
    for words in (
        "resnet50",
        "running",
        "local/here, 2 × this-machine",
        "$12.35 (estimated $72.00)",
        "ATTEMPT",
        "Events:",
    ):
        assert words in out


def test_why_names_the_rank_that_failed_and_what_to_do(crucible: Any, serve: Any) -> None:
    ended = attempt(outcome="failed", ranks=[rank(0, state="exited", exit_code=3)])
    serve(one_job(status="failed", reason="out of retries") | {f"GET /v1/jobs/{ID}/attempts": {"items": [ended]}})
    out = crucible("why", ID).out
    assert out.splitlines()[:2] == ["resnet50 failed: out of retries", "  attempt 0, rank 0 exited with 3"]
    assert "crucible resume" in out


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 100), ("cancelled", 103)])
def test_wait_ends_with_the_exit_code_of_the_job(crucible: Any, serve: Any, status: str, code: int) -> None:
    states = iter(["running", "running", status])
    serve({f"GET /v1/jobs/{ID}": lambda request: job(status=next(states))})
    ran = crucible("wait", ID)
    assert ran.code == code
    assert ran.out.strip() == f"resnet50 {status}"


PREDICTION = {"estimated_hours": 1.0, "actual_hours": 1.5, "estimated_cost_usd": 0.0, "actual_cost_usd": 0.0}


def test_wait_says_what_a_job_took_against_its_estimate(crucible: Any, serve: Any) -> None:
    serve({f"GET /v1/jobs/{ID}": job(status="completed", prediction=PREDICTION)})
    ran = crucible("wait", ID)
    assert ran.err.strip() == "took 1h 30m, estimated 1h 00m (+50%); cost $0.00, estimated $0.00"
    assert crucible("wait", ID, "-o", "json").err == ""
    assert crucible("wait", ID, "-q").err == ""


@pytest.mark.parametrize(
    ("status", "prediction"),
    [
        ("failed", PREDICTION),
        ("completed", PREDICTION | {"estimated_hours": None}),
        ("completed", PREDICTION | {"actual_hours": None}),
        ("completed", None),
    ],
)
def test_without_an_estimate_or_an_end_nothing_is_compared(
    crucible: Any, serve: Any, status: str, prediction: Any
) -> None:
    serve({f"GET /v1/jobs/{ID}": job(status=status, prediction=prediction)})
    assert "estimated" not in crucible("wait", ID).err


def test_accuracy_asks_for_what_the_options_say(crucible: Any, serve: Any) -> None:
    nothing = {"key": {}, "hours": None, "cost": None}
    said = {"jobs": 0, "since": None, "overall": nothing, "groups": [], "trend": []}
    server = serve({"GET /v1/predictions/accuracy": said})
    ran = crucible("accuracy", "--gpu", "L4", "--class", "llm", "--framework", "pytorch", "--team", "a", "--limit", "9")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to compare: 0 completed jobs" in ran.err
    asked = {"gpu": "L4", "model_class": "llm", "framework": "pytorch", "team": "a", "limit": "9"}
    assert server.requests[0].query == asked
    ran = crucible("accuracy", "-o", "json")
    assert (json.loads(ran.out), ran.err) == (said, "")


def test_wait_gives_up_with_exit_code_8(crucible: Any, serve: Any) -> None:
    serve(one_job())
    ran = crucible("wait", ID, "--timeout", "0.2")
    assert ran.code == 8
    assert "still running" in ran.err


def test_events_are_printed_in_order(crucible: Any, serve: Any) -> None:
    pages = {
        "0": {"items": [{"seq": 1, "at": "2026-01-17T10:00:00Z", "from": None, "to": "pending"}], "next_after": 1},
        "1": {"items": [{"seq": 2, "at": "2026-01-17T10:00:01Z", "from": "pending", "to": "failed", "reason": "r"}]},
    }
    server = serve({f"GET /v1/jobs/{ID}/events": lambda request: pages[request.query["after"]]})
    lines = crucible("events", ID, "--all").out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == ["pending", "pending → failed  r"]
    assert server.requests[0].query["all"] == "true"


@pytest.mark.parametrize("since", ["10m", "1.5h", "2026-01-17T10:00:00Z"])
def test_since_is_sent_as_a_moment(crucible: Any, serve: Any, since: str) -> None:
    server = serve(one_job() | {f"GET /v1/jobs/{ID}/logs": {}})
    crucible("logs", ID, "--since", since, "--rank", "1", "--tail", "5")
    query = server.requests[-1].query
    assert datetime.fromisoformat(query["since"]).tzinfo is not None
    assert (query["rank"], query["tail"], query["format"]) == ("1", "5", "json")


@pytest.mark.parametrize("since", ["soon", "m", "2026", "99999999999d"])
def test_a_since_that_is_no_time_is_refused(crucible: Any, since: str) -> None:
    ran = crucible("logs", ID, "--since", since)
    assert ran.code == 2
    assert "10m" in ran.err


# --- changes ------------------------------------------------------------------------------------------


def test_cancel_takes_several_jobs_and_goes_on_after_a_refusal(crucible: Any, serve: Any) -> None:
    server = serve(
        {
            f"POST /v1/jobs/{ID}/cancel": (409, {"error": "conflict", "message": "it has completed", "details": {}}),
            f"POST /v1/jobs/{OTHER}/cancel": {"id": OTHER, "status": "cancelled", "desired": "cancel", "reason": None},
        }
    )
    ran = crucible("cancel", ID, OTHER)
    assert ran.code == 1
    assert ran.out == f"cancelled {OTHER} (cancelled)\n"
    assert f"error: {ID}: it has completed" in ran.err
    assert [request.method for request in server.requests] == ["POST", "POST"]


def test_hold_sends_its_reason(crucible: Any, serve: Any) -> None:
    server = serve({f"POST /v1/jobs/{ID}/hold": {"id": ID, "status": "pending", "desired": "hold", "reason": "x"}})
    assert crucible("hold", ID, "--reason", "budget").code == 0
    assert json.loads(server.requests[0].body) == {"reason": "budget"}


def test_retry_prints_the_id_of_the_new_job(crucible: Any, serve: Any) -> None:
    serve({f"POST /v1/jobs/{ID}/retry": (201, {"id": OTHER, "status": "pending", "origin": ID})})
    ran = crucible("retry", ID)
    assert ran.out == f"{OTHER}\n"
    assert f"crucible logs -f {OTHER}" in ran.err


# --- job files ----------------------------------------------------------------------------------------


GOOD = "job:\n  command: [echo, hi]   # hello\n"
PLAN = {
    "chosen": {"provider": "local", "region": "here", "instance_type": "m", "gpus": 0, "count": 1, "why": "free"},
    "alternatives": [],
    "rejections": [],
    "warnings": [],
}


def submitting(**more: Any) -> dict[str, Any]:
    created = (201, {"id": ID, "status": "pending", "created_at": "2026-01-17T10:00:00Z", "origin": None})
    return {"POST /v1/plan": PLAN, "POST /v1/jobs": created, **more}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(GOOD)
    return path


def test_submit_sends_the_text_to_the_letter_with_a_key_that_makes_it_safe_to_repeat(
    crucible: Any, serve: Any, good: Path
) -> None:
    server = serve(submitting())
    ran = crucible("submit", str(good), "-d", "-n", "hello")
    assert (ran.code, ran.out) == (0, f"{ID}\n"), ran.err
    sent = server.requests[-1]
    assert json.loads(sent.body) == {"name": "hello", "spec_yaml": GOOD}
    assert len(sent.headers["idempotency-key"]) == 32
    assert "local/here" in ran.err


def test_submit_never_asks_without_a_terminal(crucible: Any, serve: Any, good: Path) -> None:
    serve(submitting())
    assert crucible("submit", str(good), "-d").code == 0


@pytest.mark.parametrize("alias", ["launch", "apply", "run"])
def test_submit_has_the_names_people_know(crucible: Any, serve: Any, good: Path, alias: str) -> None:
    serve(submitting())
    assert crucible(alias, str(good), "-dq").out == f"{ID}\n"


def test_an_option_that_changes_the_spec_changes_the_text_and_says_so(crucible: Any, serve: Any, good: Path) -> None:
    server = serve(submitting())
    ran = crucible("submit", str(good), "-d", "--gpus", "2", "--env", "LR=0.1")
    sent = yaml.safe_load(json.loads(server.requests[-1].body)["spec_yaml"])
    assert sent["job"]["resources"] == {"gpus": 2}
    assert sent["job"]["env"] == {"LR": "0.1"}
    assert "differs from" in ran.err and "job.resources.gpus" in ran.err


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 100), ("cancelled", 103)])
def test_submit_as_json_waits_and_prints_the_finished_job(
    crucible: Any, serve: Any, good: Path, status: str, code: int
) -> None:
    serve(submitting(**{f"GET /v1/jobs/{ID}": job(status=status)}))
    ran = crucible("submit", str(good), "-o", "json")
    assert ran.code == code
    assert json.loads(ran.out)["status"] == status


def test_a_broken_file_is_refused_with_its_lines_before_any_server_is_asked(crucible: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("job:\n  comand: [echo]\n")
    for command in ("submit", "plan"):
        ran = crucible(command, str(path))
        assert ran.code == 2
        assert f"{path}:2:3: job.comand:" in ran.err
        assert "did you mean" in ran.err


def test_a_missing_file_is_exit_code_2(crucible: Any) -> None:
    ran = crucible("submit", "nowhere.yaml")
    assert ran.code == 2
    assert ran.err == "error: nowhere.yaml: No such file or directory\n"


@pytest.mark.parametrize(
    ("error", "details", "code"),
    [
        ("infeasible_job", {"field": "resources.gpus"}, 3),
        ("infeasible_job", {"field": "constraints.budget"}, 6),
        ("not_available_yet", {"field": "job.sweep"}, 2),
        ("invalid_spec", {"problems": []}, 2),
    ],
)
def test_a_job_that_is_refused_says_why(
    crucible: Any, serve: Any, good: Path, error: str, details: dict[str, Any], code: int
) -> None:
    serve({"POST /v1/plan": (422, {"error": error, "message": "because", "details": details})})
    ran = crucible("submit", str(good))
    assert ran.code == code
    assert ran.err.splitlines()[0] == "error: because"


def test_a_plan_without_a_place_is_exit_code_3(crucible: Any, serve: Any, good: Path) -> None:
    serve({"POST /v1/plan": {**PLAN, "chosen": None, "reason": "all taken"}})
    ran = crucible("plan", str(good))
    assert ran.code == 3
    assert ran.out == "no place now: all taken\n"


def test_validate_looks_at_every_file_and_needs_no_server(crucible: Any, good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("job:\n  entrypoint: train.py\n  resources:\n    gpus: many\n")
    ran = crucible("validate", str(bad), str(good), str(tmp_path / "none.yaml"))
    assert ran.code == 2
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"{bad}:4:11: job.resources.gpus:")
    assert lines[1] == f"{good}: ok"
    assert lines[2].startswith(f"{tmp_path / 'none.yaml'}: file: No such file")
    assert crucible("validate", "-q", str(good)) == (0, "", "")


def test_validate_as_json_lists_problems_with_their_places(crucible: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("job:\n  entrypoint: train.py\n  gpus: 1\n")
    (found,) = json.loads(crucible("validate", str(bad), "-o", "json").out)["items"]
    assert not found["valid"]
    assert (found["problems"][0]["line"], found["problems"][0]["column"]) == (3, 3)


def test_the_example_and_the_schema_are_valid(crucible: Any, tmp_path: Path) -> None:
    for arguments in (["spec", "example"], ["spec", "example", "--minimal"]):
        path = tmp_path / "example.yaml"
        path.write_text(crucible(*arguments).out)
        assert crucible("validate", str(path)).code == 0
    assert json.loads(crucible("spec", "schema").out)["title"]


# --- people -------------------------------------------------------------------------------------------


def test_a_new_token_is_printed_alone_so_that_a_script_can_keep_it(crucible: Any, serve: Any) -> None:
    server = serve({"POST /v1/tokens": (201, {"id": "token-1", "name": "ci", "token": "cru_secret"})})
    ran = crucible("token", "create", "ci", "--user", "ada", "--expires", "1")
    assert ran.out == "cru_secret\n"
    sent = json.loads(server.requests[0].body)
    assert (sent["name"], sent["user"]) == ("ci", "ada")
    assert sent["expires_at"].endswith("+00:00")


def test_doctor_says_what_is_broken_and_how_to_mend_it(crucible: Any, serve: Any) -> None:
    denied = (401, {"error": "unauthenticated", "message": "the token is unknown", "details": {}})
    serve({"GET /readyz": {"status": "ready"}, "GET /v1/me": denied})
    ran = crucible("doctor")
    assert ran.code == 1
    assert "✓ server: answers in" in ran.out
    assert "✗ token: the token is unknown\n    log in with crucible login" in ran.out


def test_doctor_is_content_with_a_server_that_works(crucible: Any, serve: Any) -> None:
    from crucible import __version__

    me = {"user_id": "ada", "name": "ada", "role": "member", "token_id": "t"}
    serve({"GET /readyz": {}, "GET /v1/me": me, "GET /v1/version": {"version": __version__}})
    ran = crucible("doctor", "-o", "json")
    assert ran.code == 0
    assert {check["state"] for check in json.loads(ran.out)} == {"ok"}


def test_doctor_of_a_provider_tells_every_place_and_every_problem(crucible: Any, serve: Any) -> None:
    places = [
        {"status": "healthy", "region": "us-east-1", "zones": ["use1-az1"], "vcpu_quotas": {"P spot": 96}},
        {"status": "down", "region": "us-west-2", "problems": [{"problem": "no credentials", "fix": "aws sso login"}]},
    ]
    serve({"GET /v1/health/aws": {"provider": "aws", "status": "degraded", "places": places}})
    ran = crucible("doctor", "aws")
    assert ran.code == 1
    assert "✓ aws us-east-1: healthy; zones use1-az1, vcpu quotas P spot 96" in ran.out
    assert "✗ aws us-west-2: no credentials\n    aws sso login" in ran.out


def test_doctor_of_a_provider_that_is_not_enabled_says_how_to_enable_it(crucible: Any, serve: Any) -> None:
    serve({"GET /v1/health/aws": (404, {"error": "not_found", "message": "no provider 'aws'", "details": {}})})
    ran = crucible("doctor", "aws")
    assert ran.code == 1
    assert "✗ aws: no provider 'aws'\n    CRUCIBLE_PROVIDERS=local,aws crucible server" in ran.out


def test_the_token_is_nowhere_in_what_is_printed(crucible: Any, serve: Any) -> None:
    serve({"GET /readyz": {}})
    for arguments in (["doctor"], ["version"], ["ps"], ["ps", "-o", "json"]):
        ran = crucible(*arguments)
        assert "s3cret" not in ran.out + ran.err
