"""Send as many spoiled inputs to a server as you like:

    make fuzz N=100000 SEED=7

A new server for each ten thousand, so that what good inputs leave behind does not pile up. The last line is one JSON
object; what went wrong stands before it, with its seed and number."""

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from crucible.api.app import ApiSettings
from fuzz.attack import Attacker, Report
from integration.api.conftest import NO_LIMITS, Server

BATCH = 10_000
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--inputs", type=int, default=BATCH)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    chosen = parser.parse_args()
    began, reports = time.process_time(), []
    for number in range(0, chosen.inputs, BATCH):
        reports.append(attacked(chosen.seed + number // BATCH, min(BATCH, chosen.inputs - number)))
    problems = [problem for report in reports for problem in report.problems]
    print(*problems[:SHOWN], sep="\n", end="\n" if problems else "", file=sys.stderr)
    told = {
        "name": "fuzz",
        "seed": chosen.seed,
        "inputs": sum(report.inputs for report in reports),
        "problems": len(problems),
        "longest_s": round(max(report.longest_s for report in reports), 3),
        "cpu_s": round(time.process_time() - began, 1),
        "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(told))
    return 1 if problems else 0


def attacked(seed: int, inputs: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="crucible-fuzz-") as folder:
        settings = ApiSettings(version="9.9.9", providers=("fake",), rate_limits=NO_LIMITS)
        server = Server(folder=Path(folder), settings=settings)
        server.start()
        try:
            openapi = server.call("GET", "/v1/openapi.json").json
            with Attacker(server.port, server.tokens["admin"], openapi, seed) as attacker:
                report = attacker.run(inputs)
        finally:
            server.stop()
    print(f"seed {seed}: {report}", file=sys.stderr)
    return report


if __name__ == "__main__":
    sys.exit(main())
