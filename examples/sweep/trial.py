"""One trial: a small network learns to tell two rings apart, with the learning rate, width and momentum it was given.
Pure Python, about a second. Alone, `lr=0.3 width=8 python trial.py` tries one setting by hand."""

import json
import math
import os
import random
import sys
import tempfile

from crucible import train

EPOCHS = int(os.environ.get("EPOCHS", "27"))
STOPPED = 143  # asked to stop before the end


def main() -> int:
    params = given()
    rate, width, momentum = float(params["lr"]), int(params["width"]), float(params["momentum"])
    points = rings(random.Random(7))
    net = Net(width, momentum, random.Random(7))
    loss = math.inf
    for epoch in range(1, EPOCHS + 1):
        loss = sum(net.learn(x, y, label, rate) for x, y, label in points) / len(points)
        right = sum((net.out(x, y) > 0.5) == bool(label) for x, y, label in points) / len(points)
        train.log(epoch, loss=loss, accuracy=right)
        train.progress(epoch, EPOCHS)
        if train.should_stop():
            return STOPPED
    save(net, loss)
    print(f"{json.dumps(params)}: loss {loss:.4f}", flush=True)
    return 0


def given() -> dict:
    """From the file that every task of a sweep has, or from variables where there is none."""
    usual = {"lr": 0.3, "width": 8, "momentum": 0.0}
    path = os.environ.get("CRUCIBLE_PARAMS")
    if path:
        with open(path, encoding="utf-8") as file:
            return {**usual, **json.load(file)}
    return {name: os.environ.get(name, value) for name, value in usual.items()}


def rings(chance: random.Random) -> list:
    found = []
    for n in range(120):
        angle, label = chance.uniform(0, 2 * math.pi), n % 2
        radius = (1.0 if label else 0.4) + chance.gauss(0, 0.08)
        found.append((radius * math.cos(angle), radius * math.sin(angle), label))
    return found


class Net:
    def __init__(self, width: int, momentum: float, chance: random.Random) -> None:
        self.inner = [[chance.gauss(0, 1.5) for _ in range(3)] for _ in range(width)]
        self.outer = [chance.gauss(0, 0.5) for _ in range(width + 1)]
        self.momentum = momentum
        self.speed = [[0.0] * 3 for _ in range(width)]
        self.outer_speed = [0.0] * (width + 1)

    def hidden(self, x: float, y: float) -> list:
        return [math.tanh(a * x + b * y + c) for a, b, c in self.inner]

    def out(self, x: float, y: float) -> float:
        return self.squash(self.hidden(x, y))

    def squash(self, hidden: list) -> float:
        total = sum(self.outer[n] * h for n, h in enumerate(hidden)) + self.outer[-1]
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))

    def learn(self, x: float, y: float, label: int, rate: float) -> float:
        hidden = self.hidden(x, y)
        out = self.squash(hidden)
        wrong = out - label
        for n, weights in enumerate(self.inner):
            speed = self.speed[n]
            back = wrong * self.outer[n] * (1 - hidden[n] ** 2)
            for i, value in enumerate((x, y, 1.0)):
                speed[i] = self.momentum * speed[i] - rate * back * value
                weights[i] += speed[i]
        for n, value in enumerate([*hidden, 1.0]):
            self.outer_speed[n] = self.momentum * self.outer_speed[n] - rate * wrong * value
            self.outer[n] += self.outer_speed[n]
        return -math.log(max(out if label else 1 - out, 1e-12))


def save(net: Net, loss: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"inner": net.inner, "outer": net.outer}, file)
        train.save_checkpoint(path, EPOCHS, {"loss": loss})


if __name__ == "__main__":
    sys.exit(main())
