"""A search of two hundred trials over spot machines of the Lab and slots of this computer, within a budget that
machines on demand would not keep. Twenty machines are taken from it at moments that a seed has drawn."""

import json
import random
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.model.errors import Conflict

from .test_jobs_on_ec2 import Deployment, deployed, until

SEED = 16
TRIALS = 200
TAKEN = TRIALS // 10
SLOTS = 4  # of this computer
BUDGET_USD = 2.5
# Of the cloud's clock: what was said of a trial, 0.03 hours, are four seconds here, of which it needs about one. A slow
# computer may take its time before the budget is spent.
SPEED = 30.0
# As far ahead as clouds say it, a quarter of that, and not at all; by the cloud's clock.
NOTICES_S = (120.0, 30.0, 0.0)
# By this share of what the plan promised to save, the books may say something else: what was taken is bought again
# elsewhere, at another price.
TOLERANCE = 0.15

# From one of these moments to the next, on a computer that has much else to do.
WITHIN_S = 120.0

# In the words of a shell, of which two hundred cost little. It witnesses for itself what it was given and has found.
TRIAL = """\
loss=$(awk "BEGIN {{ x = log($lr) + 5; print x * x + $decay }}")
echo began $CRUCIBLE_TASK_INDEX $loss >> {witness}
sleep 0.5
printf '{{"type": "metrics", "t": 0, "step": 1, "values": {{"loss": %s}}}}\\n' $loss >> $CRUCIBLE_RUN_DIR/events.jsonl
echo ended $CRUCIBLE_TASK_INDEX $loss >> {witness}
"""

SPEC = """\
job:
  name: search
  type: hpo
  command: {command}
  retry: {{limit: 0}}
  resources: {{gpus: 1, gpu_memory: 16GB, estimated_hours: 0.03}}
  execution: {{parallelism: 16}}
  constraints: {{providers: [local, aws], allow_spot: true, budget: {budget}}}
  sweep:
    method: random
    trials: {trials}
    seed: {seed}
    parameters:
      lr: {{min: 1e-5, max: 1e-1, scale: log}}
      decay: {{min: 0, max: 0.1}}
    objective: {{metric: loss}}
"""

SUCCEEDED = "SELECT count(*) FROM tasks WHERE kind = 'seated' AND phase = 'succeeded'"
OPEN_LEASES = "SELECT count(*) FROM leases WHERE phase <> 'closed'"


def test_two_hundred_trials_end_once_each_and_save_what_was_planned_though_machines_are_taken(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    command = json.dumps(TRIAL.format(witness=witness))
    spec = SPEC.format(command=command, trials=TRIALS, seed=SEED, budget=BUDGET_USD)
    with deployed(tmp_path, "--local-gpus", str(SLOTS), boot_limit_s=60, speed=SPEED, seed=SEED) as deployment:
        plan: Any = deployment.client.plan(spec)["chosen"]
        assert plan["estimated_cost_usd"] < BUDGET_USD < plan["on_demand_cost_usd"]
        assert {part["provider"] for part in plan["parts"]} == {"aws", "local"}
        job = str(deployment.client.submit("search", spec)["id"])
        take_machines(deployment)
        ended = deployment.finished(job, WITHIN_S)
        assert (ended["status"], ended["reason"]) == ("completed", None), ended["reason"]
        check_trials(deployment, job, witness.read_text().splitlines())
        check_nothing_is_left(deployment)
        check_money(deployment, job, plan["saving"])


# --- the seller wants them back ---------------------------------------------------------------------------------------


def take_machines(deployment: Deployment) -> None:
    """Each when so many trials have ended: the same moments on a quick computer and on a slow one."""
    chance = random.Random(SEED)
    for moment in sorted(chance.sample(range(TRIALS * 3 // 4), TAKEN)):
        until(lambda moment=moment: deployment.books(SUCCEEDED) >= moment, f"{moment} trials have ended", WITHIN_S)  # type: ignore[misc]
        until(lambda: take_one(deployment, chance), "a machine is there to be taken", WITHIN_S)


def take_one(deployment: Deployment, chance: random.Random) -> bool:
    """False if there is none, or the one that was drawn goes already."""
    found = [one["id"] for one in deployment.machines() if one["state"] == "running" and not one["notice_at"]]
    if not found:
        return False
    try:
        deployment.lab.control.preempt(chance.choice(sorted(found)), notice_s=chance.choice(NOTICES_S))
    except Conflict:
        return False
    return True


# --- what became of it ------------------------------------------------------------------------------------------------


def check_trials(deployment: Deployment, job: str, witness: list[str]) -> None:
    tasks: list[Any] = list(deployment.client.all_tasks(job))
    assert [task["index"] for task in tasks] == list(range(TRIALS))
    assert {(task["phase"], task["verdict"], task["failures"]) for task in tasks} == {("succeeded", None, 0)}
    assert {task["where"]["provider"] for task in tasks} == {"aws", "local"}

    outcomes: dict[str, list[Any]] = defaultdict(list)
    for attempt in deployment.client.attempts(job):
        outcomes[attempt["task_id"]].append(attempt["outcome"])
    lost = sum(task["losses"] for task in tasks)
    assert all(sorted(outcomes[task["id"]])[-1:] == ["succeeded"] for task in tasks)
    assert all(outcomes[task["id"]].count("succeeded") == 1 for task in tasks)
    assert lost == sum(outcome == "lost" for task in tasks for outcome in outcomes[task["id"]]) > 0

    values = {int(index): float(loss) for word, index, loss in map(str.split, witness) if word == "ended"}
    assert {task["index"]: task["value"] for task in tasks} == values
    best: Any = deployment.client.sweep(job)["best"]
    assert (best["value"], best["index"]) == min((value, index) for index, value in values.items())


def check_nothing_is_left(deployment: Deployment) -> None:
    deployment.settle()
    until(lambda: deployment.books(OPEN_LEASES) == 0, "no lease is open")
    status = deployment.lab.control.status(is_everything=True)
    assert {one["state"] for one in status["machines"]} == {"terminated"} and status["disks"] == 0


def check_money(deployment: Deployment, job: str, promised: float) -> None:
    assert deployment.owed() == deployment.invoiced() == deployment.client.costs(job)["so_far_microusd"]
    assert deployment.books("SELECT sum(amount_microusd) FROM ledger") == 0
    assert 0 < deployment.owed() < BUDGET_USD * 1e6
    ran = machines_of(deployment, job)
    # One that is taken in its first hour is free, of which no plan makes a promise.
    paid = [one for one in ran if one.paid_microusd]
    assert saving(paid) == pytest.approx(promised, rel=TOLERANCE)
    assert saving(ran) >= saving(paid)


@dataclass(frozen=True)
class Ran:
    paid_microusd: int  # for the machine alone: disks and addresses cost the same in any case
    on_demand_microusd: float  # what the same seconds would have cost


def saving(machines: list[Ran]) -> float:
    return 1 - sum(one.paid_microusd for one in machines) / sum(one.on_demand_microusd for one in machines)


def machines_of(deployment: Deployment, job: str) -> list[Ran]:
    costs: Any = deployment.client.costs(job)
    orders, intervals = orders_of(deployment), defaultdict(list)
    for one in costs["intervals"]:
        if one["kind"] == "compute":
            intervals[one["machine_id"]].append(one)
    prices: dict[tuple[str, ...], float] = {}
    found = []
    for machine in costs["machines"]:
        place = orders[machine["order_id"]]
        if place not in prices:
            prices[place] = on_demand_usd(deployment, *place)
        mine = intervals[machine["machine_id"]]
        seconds = sum((moment(one["to_at"]) - moment(one["from_at"])).total_seconds() for one in mine)
        paid = sum(one["amount_microusd"] for one in mine)
        found.append(Ran(paid, prices[place] * 1e6 * seconds / 3600))
    return found


def orders_of(deployment: Deployment) -> dict[str, tuple[str, str, str]]:
    with closing(sqlite3.connect(deployment.data / "crucible.db")) as database:
        rows = database.execute("SELECT id, region, zone, instance_type FROM orders WHERE provider = 'aws'").fetchall()
    return {row[0]: row[1:] for row in rows}


def on_demand_usd(deployment: Deployment, region: str, zone: str, instance_type: str) -> float:
    """Of an hour."""
    found = deployment.client.offers(provider="aws", region=region, instance_type=instance_type, spot=False, limit=100)[
        "items"
    ]
    (price,) = {one["price_per_hour_usd"] for one in found if one["zone"] in ("", zone)}
    assert price is not None
    return price


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
