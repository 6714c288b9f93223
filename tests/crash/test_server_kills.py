"""kill -9 of the server at random moments while jobs run and finish: none is lost, doubled or wrongly failed; nothing
that costs money is left, and the books say what the invoice says."""

import random
from pathlib import Path

import pytest

from crash import stories
from crash.__main__ import replay, run, run_in_lab
from crash.lab_stories import bought
from crash.lab_world import lab_world
from crash.verdict import judge
from postgres_engine import Postgres

KILLS_HERE = 10
KILLS_IN_THE_LAB = 15  # `make crash N=…` for more
MISROUNDING = (str(Path(__file__).with_name("misrounding_server.py")), "server")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> tuple[str, str | None]:
    server: Postgres | None = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return request.param, server and server.fresh_database()


def test_deaths_of_the_server_cost_no_job_anything(tmp_path: Path, database: tuple[str, str | None]) -> None:
    kind, url = database
    seed = random.randrange(1_000_000)
    print(f"again: {replay(KILLS_HERE, kind, seed, 'here')}")
    verdict = run(tmp_path / "world", KILLS_HERE, seed, url)
    print(verdict.json())
    verdict.assert_good()
    assert verdict.jobs >= KILLS_HERE / 5, "jobs went on between the deaths"


def test_deaths_of_a_server_that_buys_leave_no_machine_and_exact_books(
    tmp_path: Path, database: tuple[str, str | None]
) -> None:
    kind, url = database
    seed = random.randrange(1_000_000)
    print(f"again: {replay(KILLS_IN_THE_LAB, kind, seed)}")
    verdict = run_in_lab(tmp_path / "world", KILLS_IN_THE_LAB, seed, url)
    print(verdict.json())
    verdict.assert_good()
    assert verdict.machines >= 3 and verdict.faults > 0 and verdict.billed_microusd > 0, verdict.json()


def test_a_ledger_that_rounds_down_is_found_out(tmp_path: Path) -> None:
    with lab_world(tmp_path / "lab", seed=1, program=MISROUNDING) as made:
        made.server.start().wait_ready()
        made.wait_for_end(made.tell(bought(stories.quick)))
        verdict = judge(made, 0)
    assert -10 < verdict.ledger_minus_invoice_microusd < 0
    assert len(verdict.problems) == 2, "the sum, and the machine it comes from"
