"""kill -9 of the server at random moments while jobs run and finish: none is lost, doubled or wrongly failed."""

import random
from pathlib import Path

import pytest

from crash.__main__ import replay, run
from engines import Postgres

KILLS = 50  # `make crash N=…` for more


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_deaths_of_the_server_cost_no_job_anything(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(1_000_000)
    server: Postgres | None = request.getfixturevalue("postgres") if database == "postgres" else None
    print(f"again: {replay(KILLS, database, seed)}")
    verdict = run(tmp_path / "world", KILLS, seed, server and server.fresh_database())
    print(verdict.json())
    verdict.assert_good()
    assert verdict.jobs >= KILLS / 5, "jobs went on between the deaths"
