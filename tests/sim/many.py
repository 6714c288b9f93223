"""Many simulated lives, each world with faults of its own, every kind between 1 and 10 %:

    PYTHONPATH=tests python tests/sim/many.py --lives 10000 --seed 1

The last line is one JSON object; a world that breaks something says its seed."""

import argparse
import json
import logging
import random
import sys
import time
from dataclasses import fields

from simulation import Outcome, World

from crucible.testing.fake_cloud import Faults

JOBS = 100  # in one world
SERVER_LIVES_S = 400.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lives", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first world; the next ones follow")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)  # what goes wrong on purpose
    began, outcomes, broken = time.monotonic(), [], 0
    for seed in range(chosen.seed, chosen.seed + -(-chosen.lives // JOBS)):
        outcome = world_of(seed).run()
        outcomes.append(outcome)
        broken += len(outcome.broken)
        for what in outcome.broken:
            print(f"seed {seed}: {what}")
    print(json.dumps({**summed(outcomes), "broken": broken, "took_s": round(time.monotonic() - began)}))
    return 1 if broken else 0


def world_of(seed: int) -> World:
    """Every other one buys by a catalog, spot machines among it; every third has a clock that is wrong at times."""
    chance = random.Random(f"faults of {seed}")
    faults = Faults(**{field.name: chance.uniform(0.01, 0.1) for field in fields(Faults)})
    return World(
        seed=seed,
        jobs=JOBS,
        faults=faults,
        restart_every_s=SERVER_LIVES_S,
        clock_steps=seed % 3 == 0,
        is_bought=seed % 2 == 1,
    )


def summed(outcomes: list[Outcome]) -> dict[str, int]:
    return {
        "worlds": len(outcomes),
        "lives": sum(sum(outcome.statuses.values()) for outcome in outcomes),
        "machines": sum(outcome.machines for outcome in outcomes),
        "restarts": sum(outcome.restarts for outcome in outcomes),
        "virtual_hours": round(sum(outcome.virtual_s for outcome in outcomes) / 3600),
        "billed_microusd": sum(outcome.billed_microusd for outcome in outcomes),
    }


if __name__ == "__main__":
    sys.exit(main())
