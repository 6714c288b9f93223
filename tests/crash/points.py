"""The server dies at every named point: while jobs run on this computer, while it buys in a calm Lab and in a troubled
one. A point that is never reached is a failure too: then nobody knows what dying there would do."""

import random
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from crash import stories
from crash.harness import World, world
from crash.lab_stories import bought
from crash.lab_world import LabWorld, lab_world
from crash.server_process import KILLED
from crash.stories import Story
from crash.verdict import Verdict, judge
from crucible.engine.failpoints import POINTS

REACHED_WITHIN_S = 180.0  # in a troubled Lab a job may need several machines before it gets there
TOKENLESS = (str(Path(__file__).with_name("tokenless_server.py")), "server")


def both(*points: str) -> list[str]:
    return [f"{point}.{side}" for point in points for side in ("before", "after")]


def shut_out(name: str, chance: random.Random) -> Story:
    """Wants every slot while somebody has one, until a server that knows clouds has read its catalog and said so."""
    return replace(stories.blocked(name, chance), deed_after_s=10.0)


# Only sellers without tokens are told of a call beforehand; only clouds are asked what a request must look like, cost
# money, and share no folder with the server, so that agents carry checkpoints.
CALLED = both("commit.order.called")
CLOUD = both("prepare", "commit.order.prepared", "commit.ledger", "slot", "candidate", "retention")
# Only jobs with datasets get there: test_dataset_kills.py.
DATASETS = both("commit.dataset", "commit.dataset-copy", "commit.transfer")
# Only jobs that leave something behind get there: test_output_kills.py.
OUTPUTS = both("outputs")
# Only workflows do: test_workflow_kills.py.
WORKFLOWS = both("commit.workflow.step", "commit.workflow.begin")
# Only jobs of many tasks do: test_sweep_kills.py, test_batch_kills.py.
SWEEPS = both("commit.cycle.seat", "commit.crew.give_back", "commit.job.end_waiting")
SHARDS = both("commit.shard.lease", "commit.shard.commit", "commit.shards.drain")
# Only where somebody is told: test_alerts.py in e2e.
ALERTS = both("commit.alerts.fan_out", "commit.alerts.delivery", "send")
# Only what is old, or somebody who is to be forgotten, brings a server there: test_retention_kills.py.
RETENTION = sorted(
    point for point in POINTS if point.startswith(("commit.erasure.", "commit.removal.", "stream.remove."))
)
# Only a new keyring or a new key does: test_secret_keys.py in unit.
SECRETS = both("secrets_key", "commit.seal_with", "commit.rewrap_secret")
# Only where money runs out: test_budgets.py in sim.
BUDGETS = both(*(f"commit.budget.{what}" for what in ("save", "warn", "stop", "cut", "go_on")))
ELSEWHERE = {*ALERTS, *BUDGETS, *RETENTION, *SECRETS, *CALLED, *DATASETS, *OUTPUTS, *WORKFLOWS, *SWEEPS, *SHARDS}
HERE = sorted(POINTS - ELSEWHERE - set(CLOUD))
BOUGHT = sorted(POINTS - ELSEWHERE)

# What is begun before each death, so that every point lies ahead.
WORK_HERE = (stories.saving, stories.blocked)
WORK_BESIDE = (stories.saving, shut_out)
WORK_BOUGHT = (bought(stories.saving), bought(stories.learning), bought(stories.quick), shut_out)
WORK_TOKENLESS = (stories.quick, stories.gang, stories.cancelled_running)


def die_at(made: World, point: str, within_s: float = REACHED_WITHIN_S) -> None:
    made.server.start(armed=point)
    code = made.server.wait_for_end(within_s)
    if code is None:
        made.server.kill()
    made.disturbed()
    assert code == KILLED, f"{point} was not reached within {within_s:g} s (exit {code})"


def die_at_each(made: World, points: Iterable[str], work: Iterable[stories.Maker]) -> int:
    """One after the other, each while new jobs begin and one holds a slot; then everything comes to its end."""
    made.server.stop()
    made.server.start().wait_ready()
    occupier = made.tell(stories.occupying)
    made.wait_for_witness(occupier)
    made.server.stop()
    deaths, begun = 0, []
    for point in points:
        begun += [made.tell(make) for make in work]
        die_at(made, point)
        deaths += 1
    made.server.start().wait_ready()
    made.wait_for_end(*(story for story in begun if story.deed == "cancel"))  # shut out until then
    made.permit(occupier)
    made.wait_for_people()
    return deaths


def die_everywhere(folder: Path, contexts: int, seed: int, database: str | None) -> Verdict:
    """All points, each in `contexts` contexts at least; the verdict is that of the Lab, where all but a few happen."""
    hit: Counter[str] = Counter()
    with world(folder / "tokenless", program=TOKENLESS, seed=seed) as made:
        for number in range(contexts):
            for point in CALLED:
                made.tell(WORK_TOKENLESS[number % len(WORK_TOKENLESS)])
                die_at(made, point)
                hit[point] += 1
        made.server.start().wait_ready()
        made.wait_for_people()
        judge(made, hit.total()).assert_good()
    with ExitStack() as stack:
        lab = stack.enter_context(lab_world(folder / "lab", seed=seed, database=database))
        for number in range(contexts):
            visit(lab, number, hit)
        verdict = judge(lab, hit.total())
        if verdict.problems:
            print(lab.describe())
    missed = sorted(point for point in (*BOUGHT, *CALLED) if hit[point] < contexts)
    verdict.wrong += [f"{point} was reached in {hit[point]} contexts only" for point in missed]
    least = min(hit[point] for point in (*BOUGHT, *CALLED))
    print(f"{len(hit)} points, each in {least} contexts at least: {hit.total()} deaths")
    return verdict


def visit(lab: LabWorld, number: int, hit: "Counter[str]") -> None:
    """Context 0 is this computer and the points that only buying has; then a calm Lab and a troubled one in turn."""
    if number == 0:
        hit.update(HERE)
        die_at_each(lab, HERE, WORK_BESIDE)
        hit.update(CLOUD)
        die_at_each(lab, CLOUD, (bought(stories.gang, machines=2), bought(stories.learning)))
        return
    if number % 2 == 0:
        lab.trouble()
    hit.update(BOUGHT)
    die_at_each(lab, BOUGHT, WORK_BOUGHT)
    lab.mend()
