"""The server dies at every named point while jobs run and finish, here and in the Lab. `make crash POINTS=3` does so in
more contexts."""

import random
from pathlib import Path

import pytest

from crash import stories
from crash.harness import world
from crash.lab_stories import bought
from crash.lab_world import lab_world
from crash.points import CALLED, CLOUD, HERE, TOKENLESS, WORK_HERE, both, die_at, die_at_each
from crash.verdict import judge
from postgres_engine import Postgres

GROUPS = 4
SHARES = [HERE[number::GROUPS] for number in range(GROUPS)]
PURCHASE = [*CALLED, *both("create", "commit.order.answer")]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres")
    return server.fresh_database()


@pytest.mark.parametrize("share", range(GROUPS))
def test_a_death_at_any_point_costs_nothing(tmp_path: Path, request: pytest.FixtureRequest, share: int) -> None:
    """Each point once, half of them on each database; `make crash POINTS=3` has all of them on either."""
    server: Postgres | None = request.getfixturevalue("postgres") if share % 2 else None
    url = server and server.fresh_database()
    with world(tmp_path, database=url, seed=random.randrange(10**6)) as made:
        deaths = die_at_each(made, SHARES[share], WORK_HERE)
        judge(made, deaths).assert_good()


def test_a_purchase_without_a_token_is_never_made_twice(tmp_path: Path, database: str | None) -> None:
    with world(tmp_path, database=database, program=TOKENLESS) as made:
        for point in PURCHASE:
            made.tell(stories.quick)
            die_at(made, point)
        made.server.start().wait_ready()
        made.wait_for_people()
        judge(made, len(PURCHASE)).assert_good()
        assert not (made.data / "bought-twice").exists()


def test_a_death_while_a_cloud_is_asked_or_charged_costs_nothing(tmp_path: Path) -> None:
    """Where only clouds lead; the books are exact afterwards."""
    with lab_world(tmp_path / "lab", seed=random.randrange(10**6)) as made:
        deaths = die_at_each(made, CLOUD, (bought(stories.learning),))
        judge(made, deaths).assert_good()
