"""Makes points of two classes, scales them, and leaves a part to train with and a part to test with."""

import csv
import random

from places import left

POINTS = 2000


def main() -> None:
    chance = random.Random(7)
    rows = []
    for number in range(POINTS):
        label = number % 2
        x, y = (chance.gauss(center, 1.0) for center in ((1.0, 2.0), (-1.0, -1.0))[label])
        rows.append((x, y, label))
    scale = max(abs(value) for x, y, _ in rows for value in (x, y))
    scaled = [(x / scale, y / scale, label) for x, y, label in rows]
    for name, part in (("train.csv", scaled[: POINTS * 4 // 5]), ("test.csv", scaled[POINTS * 4 // 5 :])):
        with open(left(name), "w", newline="") as file:
            csv.writer(file).writerows(part)
        print(f"{name}: {len(part)} points")


main()
