"""One trial: a network of one hidden layer learns to tell an inner disc from the ring around it, with the learning rate
and the width that it was given. Pure Python. Alone: lr=0.3 width=8 python trial.py"""

import argparse
import json
import math
import os
import random
import sys

from crucible import train

STOPPED = 143  # asked to stop before the end: not a success
POINTS = 80


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs
    rate, width = float(given("lr", "0.3")), int(given("width", "8"))
    chance = random.Random(7)
    points = [point(chance, number % 2) for number in range(POINTS)]
    inner = [[chance.gauss(0, 1.5) for _ in range(3)] for _ in range(width)]
    outer = [chance.gauss(0, 0.5) for _ in range(width + 1)]
    loss = math.inf
    for epoch in range(1, epochs + 1):
        loss = sum(learn(inner, outer, x, y, label, rate) for x, y, label in points) / POINTS
        train.log(epoch, loss=loss)
        train.progress(epoch, epochs)
        if train.should_stop():
            return STOPPED
    with open(os.path.join(os.environ.get("CRUCIBLE_OUTPUT", "."), "weights.json"), "w") as file:
        json.dump({"inner": inner, "outer": outer}, file)
    print(f"lr {rate:g} width {width}: loss {loss:.4f}", flush=True)
    return 0


def given(name: str, usual: str) -> str:
    return os.environ.get(name, usual)


def point(chance: random.Random, label: int) -> tuple:
    angle = chance.uniform(0, 2 * math.pi)
    radius = (1.0 if label else 0.4) + chance.gauss(0, 0.1)
    return radius * math.cos(angle), radius * math.sin(angle), label


def learn(inner: list, outer: list, x: float, y: float, label: int, rate: float) -> float:
    """One step down the slope; returns the loss before it."""
    hidden = [math.tanh(a * x + b * y + c) for a, b, c in inner]
    total = sum(weight * value for weight, value in zip(outer, [*hidden, 1.0]))
    out = 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))
    wrong = out - label
    for number, weights in enumerate(inner):
        back = rate * wrong * outer[number] * (1 - hidden[number] ** 2)
        for place, value in enumerate((x, y, 1.0)):
            weights[place] -= back * value
    for number, value in enumerate([*hidden, 1.0]):
        outer[number] -= rate * wrong * value
    return -math.log(max(out if label else 1 - out, 1e-12))


if __name__ == "__main__":
    sys.exit(main())
