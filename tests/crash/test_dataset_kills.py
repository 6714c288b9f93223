"""The server dies around every commit that is about datasets: nothing is half registered, and what was moved is paid
for once."""

from typing import Any

import pytest

from crash.points import DATASETS
from e2e.test_cli_journeys import Person, person
from e2e.test_datasets import a_folder, a_job, s3_person

__all__ = ["person", "s3_person"]

WHERE = "aws/us-east-1"  # from there to this computer a GB costs what AWS charges for traffic to the internet
POLICIES = {"dataset-copy": "pre-stage", "transfer": "on-demand-cache"}


def die_at(person: Person, point: str) -> None:
    assert person.run("server", "start", CRUCIBLE_FAILPOINTS=point).returncode == 0


def is_dead(person: Person) -> bool:
    return "not running" in person.run("server", "status").stdout + person.run("server", "status").stderr


@pytest.mark.parametrize("point", [point for point in DATASETS if "commit.dataset." in point])
def test_a_name_is_given_or_not(s3_person: Person, point: str) -> None:
    home, folder = s3_person, a_folder(s3_person, count=5)
    die_at(home, point)
    assert home.run("dataset", "add", "images", str(folder), "--region", WHERE).returncode != 0
    home.until("the server is dead", lambda: is_dead(home))
    assert home.run("server", "start").returncode == 0
    items: Any = home.json("dataset", "ls")["items"]
    assert len(items) == ("after" in point)
    added = home.run("dataset", "add", "images", str(folder), "--region", WHERE)
    assert added.returncode == 0 and "0 B sent" in added.stderr


@pytest.mark.parametrize("point", [point for point in DATASETS if "commit.dataset." not in point])
def test_what_was_moved_is_paid_for_once(s3_person: Person, point: str) -> None:
    home, policy = s3_person, POLICIES[point.split(".")[1]]
    assert home.run("dataset", "add", "images", str(a_folder(home)), "--region", WHERE).returncode == 0
    assert home.run("server", "stop").returncode == 0
    if policy == "on-demand-cache":
        del home.env["CRUCIBLE_REGION_STORAGE"]
    die_at(home, point)
    job = str(home.json("submit", a_job(home, policy=policy), "-y", "--detach")["id"])
    home.until("the server is dead", lambda: is_dead(home))
    assert home.run("server", "start").returncode == 0
    assert home.run("wait", job).returncode == 0, home.run("logs", job).stdout
    costs: Any = home.json("costs", job)
    paid = [one for one in costs["postings"] if one["kind"] == "transfer"]
    assert len(paid) == 1 and paid[0]["entries"][0]["amount_microusd"] == costs["so_far_microusd"] > 0
    assert "transfer" in home.run("costs", job).stdout
