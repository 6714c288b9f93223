"""A job's tasks, searches and evaluations over HTTP: one machine with one seat, played by the test, runs a trial after
another."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core import ledger
from crucible.model.ids import JobId, MachineId
from crucible.model.lease import Machine, MachineState
from crucible.model.ledger import PriceSince, Terms
from crucible.model.offer import Target
from crucible.model.units import micro_usd

from .conftest import SPEC, Agent, Server, eventually

SWEEP = """\
job:
  name: rings
  command: [python, trial.py]
  resources: {gpus: 1}
  execution: {parallelism: 1}
  retry: {limit: 0}
  sweep:
    parameters: {lr: [0.1, 0.2, 0.3, 0.4]}
    objective: {metric: loss}
"""
EVALUATION = """\
job:
  name: table
  command: [python, evaluate.py]
  resources: {gpus: 1}
  execution: {parallelism: 1}
  retry: {limit: 0}
  evaluation: {models: [base, tuned], datasets: [x, y], baseline: base}
"""

Loss = float | None


class Seat:
    """A machine that runs what it is given, one after another."""

    def __init__(self, server: Server, job_id: str) -> None:
        self._server = server
        self._agent: Agent = server.agent(job_id).enrol()
        self._seen = ""
        self._done: set[str] = set()

    def next(self) -> dict[str, Any]:
        """What the next trial is told; it has started."""
        while True:
            reply = self._server.call("GET", f"/agent/v1/work?seen={self._seen}&wait=10", self._agent.key)
            assert reply.status == 200, reply.text
            self._seen = reply.json["version"]
            for rank in reply.json["ranks"]:
                launch: dict[str, Any] = rank["launch"]
                if launch["attempt_id"] not in self._done:
                    self._done.add(launch["attempt_id"])
                    self._agent.launch, self._agent.lines, self._agent.points = launch, 0, 0
                    self._agent.report(state="started")
                    return launch

    def say(self, step: int | None = None, **values: Loss) -> None:
        launch, agent = self._agent.launch, self._agent
        record = {"n": agent.points, "t": 1, "step": step, "v": values}
        agent.points += 1
        batch = {"attempt_id": launch["attempt_id"], "rank": 0, "number": launch["number"], "metrics": [record]}
        agent.report(streams=[batch])

    def end(self, exit_code: int = 0) -> None:
        self._agent.report(state="exited", exit_code=exit_code)

    def run(self, trial: Callable[[Mapping[str, Any]], None], count: int) -> None:
        for _ in range(count):
            trial(self.next()["params"])


def listed(server: Server, job_id: str, query: str = "", token: str = "alice") -> Any:
    reply = server.call("GET", f"/v1/jobs/{job_id}/tasks{query}", token)
    assert reply.status == 200, reply.text
    return reply.json


def swept(server: Server, job_id: str) -> Any:
    reply = server.call("GET", f"/v1/jobs/{job_id}/sweep")
    assert reply.status == 200, reply.text
    return reply.json


def ended(server: Server, job_id: str) -> Any:
    def look() -> Any:
        job = server.call("GET", f"/v1/jobs/{job_id}").json
        return job if job["status"] in ("completed", "failed", "cancelled") else None

    return eventually(look)


@pytest.fixture(scope="module")
def finished(server: Server) -> str:
    """A search whose trials each ended in another way: 0.1 as the best, 0.2 without a value, 0.3 badly, 0.4 well."""
    job_id = server.submit(spec=SWEEP)
    seat = Seat(server, job_id)

    def trial(params: Mapping[str, Any]) -> None:
        rate = params["lr"]
        seat.say(1, loss=9.0, acc=rate)
        if rate == 0.2:
            seat.say(2, loss=None)
        elif rate != 0.3:
            seat.say(2, loss=rate)
        seat.end(7 if rate == 0.3 else 0)

    seat.run(trial, 4)
    ended(server, job_id)
    return job_id


def test_a_task_says_what_it_was_given_and_what_came_of_it(server: Server, finished: str) -> None:
    first, second, third, _ = listed(server, finished)["items"]
    assert first["params"] == {"lr": 0.1}
    assert (first["phase"], first["value"], first["metrics"]) == ("succeeded", 0.1, {"loss": 0.1, "acc": 0.1})
    assert (first["attempts"], first["verdict"], first["reason"]) == (1, None, None)
    assert first["where"]["provider"] == "fake"
    assert first["started_at"] < first["ended_at"]
    assert (second["value"], second["reason"]) == (None, "its loss was no finite number")
    assert second["metrics"] == {"acc": 0.2}
    assert (third["phase"], third["value"]) == ("failed", None)
    assert "7" in third["reason"]


def test_the_best_come_first_and_what_has_no_value_comes_last(server: Server, finished: str) -> None:
    found, cursor = [], ""
    while cursor is not None:
        page = listed(server, finished, f"?order=value&limit=1&cursor={cursor}")
        found += [one["index"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert found == [0, 3, 1, 2]


def test_tasks_are_found_by_phase(server: Server, finished: str) -> None:
    assert [one["index"] for one in listed(server, finished, "?phase=failed")["items"]] == [2]
    assert len(listed(server, finished, "?phase=failed,succeeded")["items"]) == 4


def test_the_summary_has_the_counts_the_best_and_the_costs(server: Server, finished: str) -> None:
    said = swept(server, finished)
    assert said["trials"] == {
        "total": 4, "waiting": 0, "running": 0, "completed": 3, "pruned": 0, "failed": 1, "skipped": 0,
        "cancelled": 0, "without_value": 1,
    }  # fmt: skip
    assert (said["best"]["index"], said["best"]["params"], said["best"]["value"]) == (0, {"lr": 0.1}, 0.1)
    assert said["best"]["checkpoint"] is None
    assert said["objective"] == {"metric": "loss", "goal": "minimize", "reading": "last"}
    assert (said["method"], said["parameters"], said["status"]) == ("grid", ["lr"], "completed")
    assert said["spent_usd"] >= 0 and said["note"] is None


def test_a_failed_trial_is_told_of_where_the_job_completed(server: Server, finished: str) -> None:
    job = ended(server, finished)
    assert job["status"] == "completed"
    assert job["reason"].startswith("1 of 4 tasks failed, the first: ")


def test_the_best_trial_is_an_artifact(server: Server, finished: str) -> None:
    items = server.call("GET", f"/v1/jobs/{finished}/artifacts").json["items"]
    (best,) = [one for one in items if one["type"] == "output"]
    assert best["uri"] == f"/v1/jobs/{finished}/sweep"
    assert (best["meta"]["trial"], best["meta"]["params"], best["meta"]["value"]) == (0, {"lr": 0.1}, 0.1)


def test_a_trial_that_runs_shows_what_it_is_worth_so_far(server: Server) -> None:
    job_id = server.submit(spec=SWEEP)
    seat = Seat(server, job_id)
    seat.next()
    seat.say(3, loss=0.7)
    seat.say(4, loss=0.6)
    one = eventually(lambda: next((t for t in listed(server, job_id)["items"] if t["value_so_far"] == 0.6), None))
    assert (one["phase"], one["value"], one["step"], one["metrics"]) == ("running", None, 4, {"loss": 0.6})
    said = swept(server, job_id)
    assert (said["trials"]["running"], said["trials"]["waiting"], said["best"]) == (1, 3, None)
    server.call("POST", f"/v1/jobs/{job_id}/cancel")


def test_a_metric_that_nobody_reports_is_told_of(server: Server) -> None:
    job_id = server.submit(spec=SWEEP.replace("metric: loss", "metric: lsos"))
    seat = Seat(server, job_id)

    def trial(params: Mapping[str, Any]) -> None:
        seat.say(1, loss=0.5, acc=1.0)
        seat.end()

    seat.run(trial, 4)
    assert ended(server, job_id)["status"] == "completed"
    said = swept(server, job_id)
    assert said["best"] is None
    assert said["note"] == "no trial has ended with a finite lsos; they report acc, loss"
    assert listed(server, job_id)["items"][0]["reason"] == "it reported no lsos"


def test_a_resumed_search_repeats_nothing_that_was_found(server: Server) -> None:
    job_id = server.submit(spec=SWEEP)
    seat = Seat(server, job_id)

    def trial(params: Mapping[str, Any]) -> None:
        seat.say(1, loss=params["lr"])
        seat.end()

    seat.run(trial, 2)
    eventually(lambda: swept(server, job_id)["trials"]["completed"] == 2)
    server.call("POST", f"/v1/jobs/{job_id}/cancel")
    seat.next()
    seat.end(143)
    assert ended(server, job_id)["status"] == "cancelled"
    again = server.call("POST", f"/v1/jobs/{job_id}/resume").json["id"]
    first = listed(server, again)["items"]
    assert [(one["phase"], one["verdict"], one["value"]) for one in first[:2]] == [
        ("succeeded", "reused", 0.1),
        ("succeeded", "reused", 0.2),
    ]
    other = Seat(server, again)
    given = []

    def rest(params: Mapping[str, Any]) -> None:
        given.append(params["lr"])
        other.say(1, loss=params["lr"])
        other.end()

    other.run(rest, 2)
    assert ended(server, again)["status"] == "completed"
    assert given == [0.3, 0.4]
    assert swept(server, again)["best"]["value"] == 0.1


def test_more_failures_than_are_allowed_end_the_search(server: Server) -> None:
    job_id = server.submit(spec=SWEEP + "    max_failures: 1\n")
    seat = Seat(server, job_id)
    for _ in range(2):
        seat.next()
        seat.end(1)
    seat.next()
    eventually(lambda: "max_failures" in (server.call("GET", f"/v1/jobs/{job_id}").json["reason"] or ""))
    seat.end(143)
    job = ended(server, job_id)
    assert job["status"] == "failed"
    assert job["reason"].startswith("more tasks failed than max_failures allows (1); 2 of 4 tasks failed, the first: ")
    assert [one["phase"] for one in listed(server, job_id)["items"]] == ["failed", "failed", "cancelled", "cancelled"]


def test_no_trial_begins_after_the_time_is_over(server: Server) -> None:
    job_id = server.submit(spec=SWEEP + "    max_time: 1s\n")
    seat = Seat(server, job_id)
    seat.next()
    eventually(lambda: swept(server, job_id)["drained"])
    seat.say(1, loss=0.5)
    seat.end()
    job = ended(server, job_id)
    assert (job["status"], job["reason"]) == ("completed", "no trial begins later than 0:00:01 after the first")
    assert swept(server, job_id)["trials"]["skipped"] == 3


def test_no_trial_begins_when_the_money_is_spent(server: Server) -> None:
    spec = SWEEP.replace("  retry:", "  constraints: {budget: 2, allow_spot: true}\n  retry:")
    job_id = server.submit(spec=spec)
    seat = Seat(server, job_id)
    seat.next()
    charge(server, job_id, 5.0)
    eventually(lambda: swept(server, job_id)["drained"])
    seat.say(1, loss=0.5)
    seat.end()
    job, said = ended(server, job_id), swept(server, job_id)
    assert job["status"] == "completed"
    assert job["reason"].startswith("the budget of $2.00 is used up: trials have cost $5.0")
    assert (said["trials"]["completed"], said["trials"]["skipped"]) == (1, 3)
    assert said["spent_usd"] >= 5.0 and said["budget_usd"] == 2.0


def charge(server: Server, job_id: str, dollars: float) -> None:
    """A machine elsewhere, which nobody of the server looks at, has run for an hour at that price."""
    now = datetime.now(UTC).replace(microsecond=0)

    async def work() -> None:
        store = server.deps.store
        lease = (await store.job_leases(JobId(job_id)))[0]
        order = replace((await store.order(lease.order_id))[0], target=Target("elsewhere", "here-1", "vm"))
        machine = Machine(
            id=MachineId(f"i-{job_id}"),
            order_id=order.id,
            index=0,
            state=MachineState.RUNNING,
            started_at=now - timedelta(hours=1),
            prices=(PriceSince(now - timedelta(hours=1), micro_usd(dollars)),),
        )
        await store.commit([], ledger.account((), machine, order, lease.id, Terms(), now), label="account")

    server.run(work())


def test_trials_that_do_worse_than_others_are_stopped(server: Server) -> None:
    spec = SWEEP.replace("[0.1, 0.2, 0.3, 0.4]", "[1, 2, 3, 4, 5, 6]") + "    stop_early: {rule: asha, reduction: 2}\n"
    job_id = server.submit(spec=spec)
    seat = Seat(server, job_id)
    for _ in range(6):
        rate = seat.next()["params"]["lr"]
        seat.say(1, loss=float(rate))
        if rate == 1:
            seat.end()
            continue
        index = rate - 1
        eventually(lambda index=index: listed(server, job_id)["items"][index]["verdict"] == "pruned")  # type: ignore[misc]
        seat.end(143)
    assert ended(server, job_id)["status"] == "completed"
    said = swept(server, job_id)
    assert (said["trials"]["completed"], said["trials"]["pruned"], said["best"]["value"]) == (1, 5, 1.0)
    last = listed(server, job_id)["items"][-1]
    assert (last["phase"], last["value"]) == ("succeeded", 6.0)
    assert last["reason"] == "stopped early: loss 6 at step 1 is not among the best 3 of 6 there"


# --- evaluations ----------------------------------------------------------------------------------------------------


def test_an_evaluation_is_a_table_beside_its_baseline(server: Server) -> None:
    job_id = server.submit(spec=EVALUATION)
    seat = Seat(server, job_id)
    figures = {"base": {"x": 0.5, "y": 0.25}, "tuned": {"x": 0.75, "y": 0.25}}
    for _ in range(4):
        launch = seat.next()
        assert (launch["env"]["MODEL"], launch["env"]["EVAL_DATASET"]) == tuple(launch["params"].values())
        seat.say(acc=figures[launch["params"]["model"]][launch["params"]["dataset"]])
        seat.end()
    assert ended(server, job_id)["status"] == "completed"
    said = server.call("GET", f"/v1/jobs/{job_id}/evaluation").json
    assert (said["datasets"], said["metrics"], said["baseline"]) == (["x", "y"], ["acc"], "base")
    base, tuned = said["rows"]
    assert base["cells"][0]["metrics"] == {"acc": {"value": 0.5, "delta": None, "is_better": None}}
    assert tuned["cells"][0]["metrics"] == {"acc": {"value": 0.75, "delta": 0.25, "is_better": True}}
    assert tuned["cells"][1]["metrics"] == {"acc": {"value": 0.25, "delta": 0.0, "is_better": None}}
    assert tuned["means"] == {"acc": {"value": 0.5, "delta": 0.125, "is_better": True}}
    page = server.call("GET", f"/v1/jobs/{job_id}/evaluation?limit=1&cursor=1").json
    assert page["rows"] == [tuned]
    assert server.call("GET", f"/v1/jobs/{job_id}/evaluation?limit=1").json["next_cursor"] == 1
    assert page["next_cursor"] is None


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_job_that_is_neither_says_so(server: Server) -> None:
    job_id = server.submit(spec=SPEC)
    assert "is no sweep" in server.call("GET", f"/v1/jobs/{job_id}/sweep").json["message"]
    assert "is no evaluation" in server.call("GET", f"/v1/jobs/{job_id}/evaluation").json["message"]
    assert len(listed(server, job_id)["items"]) == 1
    refused = server.call("GET", f"/v1/jobs/{job_id}/tasks?order=value")
    assert (refused.status, refused.json["error"]) == (400, "invalid_request")
    assert "no objective" in refused.json["message"]


@pytest.mark.parametrize("query", ["order=best", "phase=asleep", "limit=0", "limit=1001", "cursor=%20", "cursor=abc"])
def test_a_page_that_is_none_is_refused(server: Server, finished: str, query: str) -> None:
    assert server.call("GET", f"/v1/jobs/{finished}/tasks?{query}").status in (400, 422)


@pytest.mark.parametrize("what", ["tasks", "sweep", "evaluation"])
def test_a_foreign_job_does_not_exist(server: Server, finished: str, what: str) -> None:
    assert server.call("GET", f"/v1/jobs/{finished}/{what}", "bob").status == 404


def test_an_adaptive_search_is_refused_where_there_is_none(server: Server) -> None:
    spec = SWEEP.replace("    parameters", "    method: tpe\n    trials: 3\n    parameters")
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec})
    assert reply.status == 400
    assert "no adaptive search" in reply.json["message"]
