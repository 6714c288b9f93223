"""The server dies at every named point while jobs run and finish, on both databases. A point that is never reached is
a failure too: then nobody knows what dying there would do."""

import random
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.server_process import KILLED
from crash.stories import blocked, occupying, quick, saving
from crash.verdict import judge
from crucible.engine.failpoints import POINTS
from engines import Postgres

REACHED_WITHIN_S = 40.0
TOKENLESS = (str(Path(__file__).with_name("tokenless_server.py")), "server")

# Only sellers without tokens are told of a call beforehand.
CALLED = [f"commit.order.called.{side}" for side in ("before", "after")]
ANSWERED = [f"{point}.{side}" for point in ("create", "commit.order.answer") for side in ("before", "after")]
PURCHASE = [*CALLED, *ANSWERED]
GROUPS = 4
SHARES = [sorted(POINTS - set(CALLED))[number::GROUPS] for number in range(GROUPS)]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres")
    return server.fresh_database()


@pytest.mark.parametrize("share", range(GROUPS))
def test_a_death_at_any_point_costs_nothing(tmp_path: Path, database: str | None, share: int) -> None:
    with world(tmp_path, database=database, seed=random.randrange(10**6)) as made:
        made.server.start().wait_ready()
        occupier = made.tell(occupying)
        made.wait_for_witness(occupier)
        made.server.stop()
        for point in SHARES[share]:
            made.tell(saving)
            made.tell(blocked)
            die_at(made, point)
        made.server.start().wait_ready()
        made.permit(occupier)
        made.wait_for_people()
        verdict = judge(made, len(SHARES[share]))
        verdict.assert_good()


def test_a_purchase_without_a_token_is_never_made_twice(tmp_path: Path, database: str | None) -> None:
    with world(tmp_path, database=database, program=TOKENLESS) as made:
        for point in PURCHASE:
            made.tell(quick)
            die_at(made, point)
        made.server.start().wait_ready()
        made.wait_for_people()
        verdict = judge(made, len(PURCHASE))
        verdict.assert_good()
        assert not (made.data / "bought-twice").exists()


def die_at(made: World, point: str) -> None:
    made.server.start(armed=point)
    code = made.server.wait_for_end(REACHED_WITHIN_S)
    if code is None:
        made.server.kill()
    assert code == KILLED, f"{point} was not reached within {REACHED_WITHIN_S:g} s (exit {code})"
