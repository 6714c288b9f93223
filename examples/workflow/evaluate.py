"""How often the model is right about points that it never saw."""

import csv
import json
import os

from places import given, left


def main() -> None:
    with open(os.path.join(given("model"), "model.json")) as file:
        model = json.load(file)
    with open(given("data"), newline="") as file:
        points = [(float(x), float(y), int(label)) for x, y, label in csv.reader(file)]
    right = sum((model["a"] * x + model["b"] * y + model["c"] > 0) == bool(label) for x, y, label in points)
    report = {"points": len(points), "accuracy": right / len(points)}
    with open(left("report.json"), "w") as file:
        json.dump(report, file)
    print(f"accuracy {report['accuracy']:.3f} of {report['points']} points")


main()
