"""Two reports of one model: they must agree, wherever they were made."""

import json

from places import given, left


def main() -> None:
    reports = {}
    for name in ("here", "there"):
        with open(given(name)) as file:
            reports[name] = json.load(file)
    for name, report in reports.items():
        print(f"{name}: accuracy {report['accuracy']:.3f}")
    with open(left("comparison.json"), "w") as file:
        json.dump(reports, file)
    if reports["here"] != reports["there"]:
        raise SystemExit("the two backends do not agree")


main()
