"""Fits a line between the two classes by gradient descent, and leaves it as model.json."""

import csv
import json
import math
import os

from places import given, left

EPOCHS = int(os.environ.get("EPOCHS", "40"))
RATE = 0.5


def main() -> None:
    with open(given("data"), newline="") as file:
        points = [(float(x), float(y), int(label)) for x, y, label in csv.reader(file)]
    a = b = c = 0.0
    for epoch in range(EPOCHS):
        loss = 0.0
        for x, y, label in points:
            guess = 1 / (1 + math.exp(-(a * x + b * y + c)))
            error = guess - label
            loss -= math.log(max(guess if label else 1 - guess, 1e-9))
            a, b, c = a - RATE * error * x, b - RATE * error * y, c - RATE * error
        if epoch % 10 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch} loss {loss / len(points):.4f}")
    with open(left("model.json"), "w") as file:
        json.dump({"a": a, "b": b, "c": c}, file)


main()
