"""Cleans log lines and counts words. Nothing here needs a GPU."""

import collections
import csv
import pathlib
import re

WORD = re.compile(r"[a-z']+")


def main():
    counts = collections.Counter()
    for path in sorted(pathlib.Path("logs").glob("*.log")):
        for line in path.read_text(errors="replace").splitlines():
            counts.update(WORD.findall(line.lower()))
    with open("counts.csv", "w", newline="") as file:
        csv.writer(file).writerows(counts.most_common(1000))


if __name__ == "__main__":
    main()
