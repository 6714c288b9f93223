"""One cell of a table: a model on a dataset. $MODEL and $EVAL_DATASET say which. Pure Python, no time at all."""

import math
import os
import random
import sys

from crucible import train


def main() -> int:
    model, dataset = MODELS[os.environ["MODEL"]], DATASETS[os.environ["EVAL_DATASET"]]
    known, asked = dataset(random.Random(1)), dataset(random.Random(2))
    said = [(model(x, y, known), label) for x, y, label in asked]
    accuracy = sum(guess == label for guess, label in said) / len(said)
    found = sum(guess and label for guess, label in said)
    f1 = 2 * found / max(1, sum(guess for guess, _ in said) + sum(label for _, label in said))
    train.log(accuracy=accuracy, f1=f1)
    print(f"{os.environ['MODEL']} on {os.environ['EVAL_DATASET']}: accuracy {accuracy:.3f}, f1 {f1:.3f}", flush=True)
    return 0


def always(x: float, y: float, known: list) -> int:
    return 1


def linear(x: float, y: float, known: list) -> int:
    """Nearer to the middle of which class."""
    middles = []
    for wanted in (0, 1):
        mine = [(a, b) for a, b, label in known if label == wanted]
        middles.append((sum(a for a, _ in mine) / len(mine), sum(b for _, b in mine) / len(mine)))
    return int(math.dist((x, y), middles[1]) < math.dist((x, y), middles[0]))


def nearest(x: float, y: float, known: list) -> int:
    return min(known, key=lambda one: math.dist((x, y), one[:2]))[2]


def rings(chance: random.Random) -> list:
    found = []
    for n in range(150):
        angle, label = chance.uniform(0, 2 * math.pi), n % 2
        radius = (1.0 if label else 0.4) + chance.gauss(0, 0.15)
        found.append((radius * math.cos(angle), radius * math.sin(angle), label))
    return found


def blobs(chance: random.Random) -> list:
    return [(chance.gauss(n % 2, 0.5), chance.gauss(n % 2, 0.5), n % 2) for n in range(150)]


MODELS = {"always": always, "linear": linear, "nearest": nearest}
DATASETS = {"rings": rings, "blobs": blobs}

if __name__ == "__main__":
    sys.exit(main())
