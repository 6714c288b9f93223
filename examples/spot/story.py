"""Five minutes with Crucible, for `make run`: a training on two spot machines of a cloud on this computer. One is
taken back after a notice, later one dies without a word; each time the training goes on elsewhere from its newest
checkpoint. At the end the books are held against the cloud's own bill. Stops what it started."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from examples.telling import crucible, is_over, printed, progress, say, submit, wait_until

from crucible.cli.table import Column, draw
from crucible.cli.views.jobs import where_of
from crucible.client.api import Client
from crucible.client.config import embedded
from crucible.client.transport import Transport
from crucible.lab.running import Control, LocalLab

SPEC = Path(__file__).resolve().with_name("job.yaml")
CALM = SPEC.with_name("calm.yaml")
REGIONS = "us-east-1,us-east-2,us-west-2,ap-northeast-2"  # of the cloud; what the plan finds best is among them
NOTICE_S = 20
TAKEN_AT, DEAD_AT = 0.3, 0.65
# Machines are given back within seconds of the end; the cloud is asked until its bill is closed.
CLOSED_WITHIN_S = 60


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="crucible-run-") as home, a_cloud(Path(home)) as (client, lab):
        code = tell(client, lab)
    say("All of it is gone again. A world that stays, to look at in a browser: make demo")
    return code


@contextmanager
def a_cloud(home: Path) -> Iterator[tuple[Client, Control]]:
    """A Lab and a server that buys there, in a folder of their own: nothing of an installed Crucible is touched."""
    cloud = LocalLab(home / "lab")
    running, _ = cloud.start(["--boot-scale", "0.1", "--hazard", "0", "--regions", REGIONS])
    ours = {"CRUCIBLE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "CRUCIBLE_LAB_HOME": str(cloud.home)}
    os.environ.update(
        running.environment(), CRUCIBLE_PROVIDERS="local,aws", CRUCIBLE_SERVER="", CRUCIBLE_TOKEN="", **ours
    )
    server = embedded(os.environ)
    try:
        server.start(["--local-gpus", "2"])
        endpoint = server.endpoint()
        assert endpoint is not None
        with Client(Transport(endpoint)) as client:
            yield client, Control(running)
    finally:
        server.stop()
        cloud.stop()


def tell(client: Client, lab: Control) -> int:
    say("A cloud runs on this computer: Amazon's protocols, types and prices, machines that are processes.")
    say(f"Watch it in a browser meanwhile, signed in: CRUCIBLE_HOME={os.environ['CRUCIBLE_HOME']} crucible dashboard")
    say(f"or at {client.endpoint.url}/ui/ with the token in admin-token there.")
    say("Where should two machines with eight A100s train, and what will it cost?")
    crucible("plan", str(SPEC))
    say("The training begins on spot machines; the same one runs here on two processes, undisturbed.")
    job, calm = submit(SPEC, "spirals"), submit(CALM, "calm")
    wait_until(client, job, lambda seen: progress(seen) >= TAKEN_AT and client.checkpoints(job) != [])
    take(
        lab,
        NOTICE_S,
        f"The cloud wants a machine back and says so {NOTICE_S} seconds ahead: save, and go on elsewhere.",
    )
    wait_for_attempt(client, job, 1)
    wait_until(client, job, lambda seen: progress(seen) >= DEAD_AT)
    take(lab, 0, "Now a machine dies without a word, in the middle of a step.")
    wait_for_attempt(client, job, 2)
    wait_until(client, job, is_over)
    wait_until(client, calm, is_over)
    say("What happened:")
    return conclude(client, lab, job, calm)


def take(lab: Control, notice_s: float, words: str) -> None:
    victim = next(one for one in lab.status()["machines"] if one["state"] == "running" and one["market"] == "spot")
    say(words)
    crucible("lab", "preempt", victim["id"], "--notice", f"{notice_s}s")


def wait_for_attempt(client: Client, job: str, number: int) -> None:
    """Until that attempt runs, or all is over before it was needed."""

    def is_so(seen: Any) -> bool:
        return is_over(seen) or any(one["number"] >= number and one["started_at"] for one in client.attempts(job))

    wait_until(client, job, is_so)


# --- the end ----------------------------------------------------------------------------------------------------


def conclude(client: Client, lab: Control, job: str, calm: str) -> int:
    costs = closed_costs(client, lab, job)
    attempts = client.attempts(job)
    print("\n".join(table(attempts, ["0", *printed(client, job, "resumed from step ")])))
    losses = [printed(client, name, "final loss ")[-1:] for name in (job, calm)]
    cost, bill = costs["posted_microusd"], lab.bill()["microusd"]
    on_demand = on_demand_cost(client, attempts, costs)
    say(f"{len(attempts)} attempts; final loss {''.join(losses[0])}, undisturbed {''.join(losses[1])}.")
    print(f"  cost       {dollars(cost)}")
    print(f"  on demand  {dollars(on_demand)}  for the same machines and seconds: {1 - cost / on_demand:.0%} saved")
    print(f"  ledger     {cost:>9,} µ$")
    print(f"  invoice    {bill:>9,} µ$  by the cloud's own meters")
    is_good = cost == bill and losses[0] == losses[1] != [] and len(attempts) >= 3
    say("The same loss, bit for bit, and the same bill, to the millionth." if is_good else "That is a bug.")
    return 0 if is_good else 1


def closed_costs(client: Client, lab: Control, job: str) -> Any:
    """What the job cost, when its last machine is gone from the cloud and entered into the ledger."""
    deadline = time.monotonic() + CLOSED_WITHIN_S
    while time.monotonic() < deadline:
        is_gone = all(one["state"] == "terminated" for one in lab.status()["machines"])
        costs = client.costs(job)
        if is_gone and all(one["to_at"] for one in costs["intervals"]):
            return costs
        time.sleep(0.5)
    raise SystemExit("the machines are not all given back")


def table(attempts: list[Any], began_at: list[str]) -> list[str]:
    columns = [Column("ATTEMPT"), Column("WHERE"), Column("FROM STEP", is_right=True), Column("RAN", is_right=True)]
    columns += [Column("ENDED"), Column("WHY", shrinks=True)]
    rows = []
    for attempt, step in zip(attempts, [*began_at, *["-"] * len(attempts)], strict=False):
        reason = attempt["reason"] or "done"
        row = [str(attempt["number"]), where_of(attempt), step, ran(attempt), attempt["outcome"], reason]
        rows.append(row)
    return draw(columns, rows, 140)


def ran(attempt: Any) -> str:
    if not attempt["started_at"] or not attempt["ended_at"]:
        return "-"
    began, ended = (datetime.fromisoformat(attempt[name]) for name in ("started_at", "ended_at"))
    return f"{(ended - began).total_seconds():.1f}s"


def on_demand_cost(client: Client, attempts: list[Any], costs: Any) -> int:
    """Of the same machines for as long, had they been bought on demand; what is charged beside them stays."""
    kinds = {one["machine_id"]: one for attempt in attempts for one in attempt["machines"]}
    total = 0.0
    for interval in costs["intervals"]:
        if interval["kind"] != "compute" or interval["machine_id"] not in kinds:
            total += interval["amount_microusd"]
            continue
        began, ended = (datetime.fromisoformat(interval[name]) for name in ("from_at", "to_at"))
        total += hourly(client, kinds[interval["machine_id"]]) * (ended - began).total_seconds() / 3600
    return round(total)


def hourly(client: Client, machine: Any) -> int:
    found = client.offers(
        provider=machine["provider"],
        region=machine["region"],
        instance_type=machine["instance_type"],
        spot=False,
        limit=1,
    )
    return round((found["items"][0]["price_per_hour_usd"] or 0.0) * 1_000_000)


def dollars(microusd: int) -> str:
    return f"${microusd / 1e6:>8.4f}"


if __name__ == "__main__":
    sys.exit(main())
