"""Spot machines are taken at random moments, after a long notice, a short one or none, while jobs train on them and the
server is killed now and then. Every attempt must begin at the newest checkpoint that was committed before it, or later.

    make preempt N=100 DB=postgres SEED=7"""

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash import stories
from crash.database import rows_of
from crash.harness import read_witness
from crash.lab_stories import bought
from crash.lab_world import LabWorld, lab_world
from crash.server_process import until
from crash.verdict import Verdict, judge
from postgres_engine import Postgres

# A tenth of what clouds give: two minutes, half a minute, nothing.
NOTICES_S = (12.0, 3.0, 0.0)
JOBS = 6
GANGS = 1  # of two machines each, besides
KILLED = 0.15  # how often the server dies too, at some moment after the notice
BETWEEN_S = 1.0  # at most, from one to the next
OLD_S = 12.0  # some are hardly there, some have saved a few times
RUNNING_WITHIN_S = 90.0

COMMITTED = """
SELECT j.name, a.number, c.step FROM checkpoints c
JOIN attempts a ON a.id = c.attempt_id JOIN jobs j ON j.id = c.job_id
"""


@dataclass
class Hunt:
    """What was done to a world, and what its jobs made of it."""

    taken: int = 0
    kills: int = 0
    resumed: int = 0
    too_early: list[str] = field(default_factory=list)  # attempts that began before what had been committed
    corrupt: list[str] = field(default_factory=list)


def hunt(made: LabWorld, count: int) -> Hunt:
    """Takes `count` machines; then everything comes to its end."""
    done = Hunt()
    made.server.start().wait_ready()
    told = [made.tell(bought(stories.training)) for _ in range(JOBS)]
    told += [made.tell(bought(stories.training, machines=2)) for _ in range(GANGS)]
    while done.taken < count:
        done.taken += take(made, made.random.uniform(0, OLD_S))
        made.disturbed()
        time.sleep(made.random.uniform(0.02, BETWEEN_S))  # the moment of the next, not a wait for something
        if made.random.random() < KILLED:
            made.server.kill()
            made.server.start().wait_ready()
            done.kills += 1
    for story in told:
        made.permit(story)
    made.wait_for_people()
    return done


def take(made: LabWorld, age_s: float) -> bool:
    """One that is so old, as soon as there is one; False if it went by itself meanwhile."""
    until("a spot machine runs", lambda: bool(spot(made, age_s)), RUNNING_WITHIN_S)
    victims = spot(made, age_s)
    if victims:
        made.lab.control.preempt(made.random.choice(victims), notice_s=made.random.choice(NOTICES_S))
    return bool(victims)


def spot(made: LabWorld, age_s: float) -> list[str]:
    """Those that run for so long and were not told to go yet."""
    now = made.lab.control.clock()["now"]
    return [
        one["id"]
        for one in made.alive()
        if one["state"] == "running"
        and one["market"] == "spot"
        and not one["notice_at"]
        and now - one["launched_at"] >= age_s
    ]


def judge_hunt(done: Hunt, made: LabWorld) -> Verdict:
    verdict = judge(made, done.kills)
    committed: dict[str, list[tuple[int, int]]] = defaultdict(list)
    with rows_of(made.data, made.database) as rows:
        for name, number, step in rows(COMMITTED):
            committed[name].append((number, step))
    for name, facts in read_witness(made.notes).items():
        judge_resumes(done, name, facts, committed[name])
    return verdict


def judge_resumes(done: Hunt, name: str, facts: list[dict[str, Any]], committed: list[tuple[int, int]]) -> None:
    done.corrupt += [
        f"{name}: step {fact['step']} is not what was saved" for fact in facts if fact["what"] == "corrupt"
    ]
    for fact in facts:
        if fact["what"] != "resumed":
            continue
        done.resumed += fact["step"] > 0
        newest = max((step for number, step in committed if number < fact["attempt"]), default=0)
        if fact["step"] < newest:
            done.too_early.append(f"{name}: attempt {fact['attempt']} began at {fact['step']}, {newest} was committed")


def run(folder: Path, count: int, seed: int, database: str | None) -> tuple[Hunt, Verdict]:
    with lab_world(folder, seed=seed, database=database) as made:
        done = hunt(made, count)
        return done, judge_hunt(done, made)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make preempt")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crucible-preempt-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a database that runs as somebody else lives below
        server = Postgres(folder) if chosen.database == "postgres" else None
        try:
            if server is not None:
                server.start()
            done, verdict = run(folder / "world", chosen.count, chosen.seed, server and server.fresh_database())
        finally:
            if server is not None:
                server.stop()
    problems = [*done.too_early, *done.corrupt, *verdict.problems]
    again = f"make preempt N={chosen.count} DB={chosen.database} SEED={chosen.seed}"
    print("\n".join([*problems, f"seed {chosen.seed}; again: {again}", f"{done}", verdict.json()]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
