"""Kill a server as often as you like, while it buys in the Lab and everything goes wrong there:

    make crash N=500 DB=postgres SEED=7       at random moments
    make crash POINTS=3 DB=sqlite             at every named point, in three contexts each
    make crash N=500 WHERE=here               with jobs on this computer alone

The last line is one JSON object; on failure the line before says how to have it again."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from crash.harness import world
from crash.lab_world import lab_world
from crash.points import die_everywhere
from crash.stories import Maker, stubborn
from crash.verdict import Verdict, judge
from postgres_engine import Postgres

RECOVERY_P99_S = 10.0
TERMINATED = 143


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--points", type=int, default=0, help="contexts in which to die at every named point")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--where", choices=("lab", "here"), default="lab")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # nothing is left behind then either
    folder = Path(tempfile.mkdtemp(prefix="crucible-crash-"))
    folder.chmod(0o755)  # a database that runs as somebody else lives below
    server = Postgres(folder) if chosen.database == "postgres" else None
    try:
        if server is not None:
            server.start()
        verdict = carry_out(chosen, folder, server and server.fresh_database())
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    problems = [*verdict.problems]
    if verdict.recovery_p99_s > RECOVERY_P99_S:
        problems.append(f"a server needed {verdict.recovery_p99_s} s to be ready again")
    print("\n".join([*problems, f"seed {chosen.seed}; again: {again(chosen)}", verdict.json()]))
    return 1 if problems else 0


def carry_out(chosen: argparse.Namespace, folder: Path, database: str | None) -> Verdict:
    if chosen.points:
        return die_everywhere(folder / "world", chosen.points, chosen.seed, database)
    if chosen.where == "lab":
        return run_in_lab(folder / "world", chosen.kills, chosen.seed, database)
    return run(folder / "world", chosen.kills, chosen.seed, database, (stubborn,))


def run(folder: Path, kills: int, seed: int, database: str | None, makers: tuple[Maker, ...] = ()) -> Verdict:
    """Random kills and their verdict; on problems the server's log is shown. `makers` begin a story each besides."""
    with world(folder, database=database, seed=seed) as made:
        for make in makers:
            made.tell(make)
        made.kill_at_random(kills)
        verdict = judge(made, kills)
        if verdict.problems:
            print(made.describe())
        return verdict


def run_in_lab(folder: Path, kills: int, seed: int, database: str | None) -> Verdict:
    """The same with machines that cost money."""
    with lab_world(folder, database=database, seed=seed) as made:
        made.kill_at_random(kills)
        verdict = judge(made, kills)
        if verdict.problems:
            print(made.describe())
        return verdict


def again(chosen: argparse.Namespace) -> str:
    if chosen.points:
        return f"make crash POINTS={chosen.points} DB={chosen.database} SEED={chosen.seed}"
    return replay(chosen.kills, chosen.database, chosen.seed, chosen.where)


def replay(kills: int, database: str, seed: int, where: str = "lab") -> str:
    return f"make crash N={kills} DB={database} SEED={seed}" + ("" if where == "lab" else f" WHERE={where}")


if __name__ == "__main__":
    sys.exit(main())
