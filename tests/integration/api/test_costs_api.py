"""What a job costs, over HTTP: the figures are the ledger's, to the micro-dollar."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core import ledger
from crucible.model.ids import JobId, MachineId
from crucible.model.lease import Lease, Machine, MachineState, Order
from crucible.model.ledger import ChargeKind, PriceSince, Rate, Terms
from crucible.model.offer import Target
from crucible.model.units import MicroUsd

from .conftest import SPEC, Server

PRICE, SPIKE = MicroUsd(3_600_000), MicroUsd(7_200_000)
DISK = Rate(ChargeKind.STORAGE, MicroUsd(730_000), 730 * 3600)
ESTIMATED = SPEC.replace("gpus: 1}", "gpus: 1, estimated_hours: 2}").replace(
    "retry:", "constraints: {budget: 100, allow_spot: true}\n  retry:"
)
MINUTE = timedelta(minutes=1)
ELSEWHERE = Target("elsewhere", "here-1", "vm")  # nobody of the server looks there


def charge(server: Server, job_id: str, *, started: timedelta) -> None:
    """A machine elsewhere, beside those that the engine bought: it began so long ago, and its price doubled halfway."""
    now = datetime.now(UTC).replace(microsecond=0)

    async def work() -> None:
        store = server.deps.store
        lease: Lease = (await store.job_leases(JobId(job_id)))[0]
        order: Order = replace((await store.order(lease.order_id))[0], target=ELSEWHERE)
        machine = Machine(
            id=MachineId(f"i-{job_id}"),
            order_id=order.id,
            index=0,
            state=MachineState.RUNNING,
            started_at=now - started,
            prices=(PriceSince(now - started, PRICE), PriceSince(now - started / 2, SPIKE)),
            extras=(DISK,),
        )
        known = await store.usages(order.target.provider, [machine.id])
        fresh = ledger.account(known.get(machine.id, ()), machine, order, lease.id, Terms(), now)
        await store.commit([], fresh, label="account")

    server.run(work())


def costs(server: Server, job_id: str) -> Any:
    reply = server.call("GET", f"/v1/jobs/{job_id}/costs")
    assert reply.status == 200, reply.text
    return reply.json


@pytest.fixture
def job_id(server: Server) -> str:
    job_id = server.submit(spec=ESTIMATED)
    server.agent(job_id).begin()
    return job_id


def test_a_job_that_has_bought_nothing_costs_nothing(server: Server) -> None:
    said = costs(server, server.submit(spec=ESTIMATED))
    assert (said["so_far_microusd"], said["per_hour_microusd"], said["intervals"]) == (0, 0, [])
    assert said["budget_microusd"] == 100_000_000 and said["budget_usd"] == 100.0


def test_a_running_job_costs_what_was_posted_and_what_runs(server: Server, job_id: str) -> None:
    charge(server, job_id, started=60 * MINUTE)
    said = costs(server, job_id)
    mine = [interval for interval in said["intervals"] if interval["machine_id"] == f"i-{job_id}"]
    closed, *running = sorted(mine, key=lambda interval: interval["to_at"] is None)
    assert closed["amount_microusd"] == 30 * 60 * 1000  # half an hour at a tenth of a cent per second
    assert {(one["kind"], one["rate_microusd"], one["per_s"]) for one in running} == {
        ("compute", SPIKE, 3600),
        ("storage", DISK.amount, DISK.per_s),
    }
    (machine,) = [one for one in said["machines"] if one["machine_id"] == f"i-{job_id}"]
    assert machine["per_hour_microusd"] == SPIKE + 1000
    assert machine["so_far_microusd"] >= 1_800_000 + 3_600_000 + 1000
    assert said["so_far_microusd"] == sum(one["amount_microusd"] for one in said["intervals"])
    assert said["posted_microusd"] == sum(one["amount_microusd"] for one in said["intervals"] if one["to_at"])
    for part in ("by_kind", "machines"):
        assert sum(one["so_far_microusd"] for one in said[part]) == said["so_far_microusd"]
        assert sum(one["per_hour_microusd"] for one in said[part]) == said["per_hour_microusd"]
    assert said["useful_microusd"] + said["idle_microusd"] == said["so_far_microusd"]
    assert sum(one["amount_microusd"] for one in said["idle_by"]) == said["idle_microusd"]
    assert {one["use"] for one in said["idle_by"]} >= {"boot"} and said["useful_microusd"] >= 0
    assert said["so_far_usd"] == pytest.approx(said["so_far_microusd"] / 1e6)


def test_postings_are_double_entries(server: Server, job_id: str) -> None:
    charge(server, job_id, started=60 * MINUTE)
    (posting,) = [one for one in costs(server, job_id)["postings"] if f"/i-{job_id}/" in one["id"]]
    assert {entry["account"]: entry["amount_microusd"] for entry in posting["entries"]} == {
        f"job:{job_id}": 1_800_000,
        "provider:elsewhere": -1_800_000,
    }


def test_the_job_and_the_list_say_the_same_as_the_ledger(server: Server, job_id: str) -> None:
    charge(server, job_id, started=60 * MINUTE)
    before = costs(server, job_id)["so_far_usd"]
    job = server.call("GET", f"/v1/jobs/{job_id}").json["cost"]["running_usd"]
    listed: Sequence[Any] = server.call("GET", "/v1/jobs?limit=200").json["items"]
    in_list = next(item["cost_usd"] for item in listed if item["id"] == job_id)
    after = costs(server, job_id)["so_far_usd"]
    assert 5.4 < before <= job <= in_list <= after


def test_the_rest_is_estimated_while_the_job_lives(server: Server, job_id: str) -> None:
    charge(server, job_id, started=60 * MINUTE)
    rest = costs(server, job_id)["remaining"]
    assert rest["basis"] == "plan" and 1.9 < rest["hours"] <= rest["hours_high"]
    assert rest["likely_microusd"] >= int(rest["hours"] * (SPIKE + 1000))


def test_a_job_that_is_over_has_no_rest_and_its_prediction_has_the_ledgers_cost(server: Server) -> None:
    job_id = server.submit(spec=ESTIMATED)
    agent = server.agent(job_id).begin()
    charge(server, job_id, started=60 * MINUTE)
    agent.finish()
    assert costs(server, job_id)["remaining"] is None
    view = server.call("GET", f"/v1/jobs/{job_id}").json
    assert 5.4 < view["prediction"]["actual_cost_usd"] <= view["cost"]["running_usd"]


def test_costs_of_another_users_job_do_not_exist(server: Server, job_id: str) -> None:
    reply = server.call("GET", f"/v1/jobs/{job_id}/costs", "bob")
    assert reply.status == 404
