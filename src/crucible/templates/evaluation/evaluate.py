"""One cell of a table: the model $MODEL on the dataset $EVAL_DATASET. Pure Python; put your models and datasets into
the tables at the end. Alone: MODEL=nearest EVAL_DATASET=rings python evaluate.py"""

import argparse
import math
import os
import random

from crucible import train


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--noise", type=float, default=0.15)
    options = parser.parse_args()
    model, dataset = MODELS[os.environ["MODEL"]], DATASETS[os.environ["EVAL_DATASET"]]
    known, asked = (dataset(random.Random(seed), options.samples, options.noise) for seed in (1, 2))
    said = [(model(x, y, known), label) for x, y, label in asked]
    right = sum(guess == label for guess, label in said) / len(said)
    found = sum(guess and label for guess, label in said)
    f1 = 2 * found / max(1, sum(guess for guess, _ in said) + sum(label for _, label in said))
    train.log(accuracy=right, f1=f1)
    print(f"{os.environ['MODEL']} on {os.environ['EVAL_DATASET']}: accuracy {right:.3f}, f1 {f1:.3f}", flush=True)


def always(x: float, y: float, known: list) -> int:
    return 1


def centre(x: float, y: float, known: list) -> int:
    """The class whose middle is nearer."""
    far = []
    for wanted in (0, 1):
        mine = [(a, b) for a, b, label in known if label == wanted]
        middle = sum(a for a, _ in mine) / len(mine), sum(b for _, b in mine) / len(mine)
        far.append(math.dist((x, y), middle))
    return int(far[1] < far[0])


def nearest(x: float, y: float, known: list) -> int:
    """The class of the nearest point that is known."""
    return min(known, key=lambda one: math.dist((x, y), one[:2]))[2]


def rings(chance: random.Random, count: int, noise: float) -> list:
    found = []
    for number in range(count):
        angle, label = chance.uniform(0, 2 * math.pi), number % 2
        radius = (1.0 if label else 0.4) + chance.gauss(0, noise)
        found.append((radius * math.cos(angle), radius * math.sin(angle), label))
    return found


def clouds(chance: random.Random, count: int, noise: float) -> list:
    return [(chance.gauss(n % 2, 2 * noise), chance.gauss(n % 2, 2 * noise), n % 2) for n in range(count)]


MODELS = {"always": always, "centre": centre, "nearest": nearest}
DATASETS = {"rings": rings, "clouds": clouds}

if __name__ == "__main__":
    main()
