"""From a script to ranked backends over the shipped catalog: what `crucible recommend` waits for, and a page that
recommends while one types. The script is one of tests/golden/router, repeated to five hundred lines."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.catalog import catalog
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.core.perf import make_book
from crucible.core.router.analysis import analyse
from crucible.core.router.preferences import Preferences
from crucible.core.router.recommend import recommend
from crucible.core.router.skeleton import skeleton
from crucible.core.router.source import SourceFile

SCRIPTS = Path(__file__).parent.parent / "tests" / "golden" / "router"
LINES = 500
RUNS = 20
BOUND_MS = 150.0
BIG_CHARS = 5_000_000


def measure() -> Iterator[Figure]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values(), architectures().values())
    wishes, now = Preferences(duration_hours=3.0), datetime(2026, 11, 1, tzinfo=UTC)

    def answer(text: str) -> None:
        found = analyse([SourceFile("train.py", text)], book.architectures)
        made = recommend(found, wishes, shipped.table, book, now, frozenset({"local"}))
        skeleton(found, made.profile, wishes, book.architectures)

    text = five_hundred_lines()
    answer(text)
    before = timing.own()
    for _ in range(RUNS):
        answer(text)
    spent = timing.own() - before
    yield Figure(
        name="recommend.500_lines_ms",
        value=spent.cpu_s / RUNS * 1000,
        unit="ms CPU",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        bound=BOUND_MS,
        context={"runs": RUNS, "lines": text.count("\n"), "offers": len(shipped.table)},
    )
    before = timing.own()
    answer(big())
    spent = timing.own() - before
    yield Figure(
        name="recommend.5_mb_ms",
        value=spent.cpu_s * 1000,
        unit="ms CPU",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"characters": BIG_CHARS},
    )


def five_hundred_lines() -> str:
    """The longest script as often as it fits, so that every line is code that is looked at."""
    lines = (SCRIPTS / "nanogpt.py").read_text().splitlines()
    return "\n".join((lines * (LINES // len(lines) + 1))[:LINES]) + "\n"


def big() -> str:
    """Code that never ends: the dearest kind of five megabytes, since none of it can be passed over as data."""
    text = (SCRIPTS / "nanogpt.py").read_text()
    return (text * (BIG_CHARS // len(text) + 1))[:BIG_CHARS]
