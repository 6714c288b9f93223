"""Kill a server as often as you like: `make crash N=500 DB=postgres SEED=7`. The last line is one JSON object."""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from crash.harness import world
from crash.stories import stubborn
from crash.verdict import Verdict, judge
from engines import Postgres


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crucible-crash-"))
    folder.chmod(0o755)  # a database that runs as somebody else lives below
    server = Postgres(folder) if chosen.database == "postgres" else None
    try:
        if server is not None:
            server.start()
        verdict = run(folder / "world", chosen.kills, chosen.seed, server and server.fresh_database())
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for problem in verdict.problems:
        print(problem)
    print(f"seed {chosen.seed}; again: {replay(chosen.kills, chosen.database, chosen.seed)}")
    print(verdict.json())
    return 1 if verdict.problems else 0


def run(folder: Path, kills: int, seed: int, database: str | None) -> Verdict:
    """Random kills and their verdict; on problems the server's log is shown."""
    with world(folder, database=database, seed=seed) as made:
        made.tell(stubborn)
        made.kill_at_random(kills)
        verdict = judge(made, kills)
        if verdict.problems:
            print(made.describe())
        return verdict


def replay(kills: int, database: str, seed: int) -> str:
    return f"make crash N={kills} DB={database} SEED={seed}"


if __name__ == "__main__":
    sys.exit(main())
