"""Each move to another backend is told once, with where it came from, whatever was missed between two looks."""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any, cast

import pytest

from crucible import Job, Status
from crucible.client.api import Client
from crucible.client.shapes import JobEvent, JobView
from crucible.client.status import Story, status_of
from crucible.model.backends import backend_name, provider_of
from doubles.api_server import api
from doubles.api_server import job as job_view

ID = str(job_view()["id"])
PLACES = {
    "local": ("local", "local", False),
    "ec2_spot": ("aws", "vm", True),
    "ec2_ondemand": ("aws", "vm", False),
    "gcp_spot": ("gcp", "vm", True),
    "modal": ("modal", "modal", False),
    "runpod_spot": ("runpod", "vm", True),
    "k8s": ("onprem", "k8s", False),
}


def view(place: str | None, **changes: Any) -> JobView:
    provider, backend, is_spot = PLACES[place] if place else (None, None, None)
    selected = {"provider": provider, "region": "r", "backend": backend, "spot": is_spot} if place else None
    return cast(JobView, job_view(selected=selected, **changes))


def placed(seq: int, place: str) -> JobEvent:
    provider, backend, is_spot = PLACES[place]
    body = {"provider": provider, "region": "r", "backend": backend, "instance_type": "x", "is_spot": is_spot}
    return cast(JobEvent, {"seq": seq, "kind": "job", "type": "JobAllocated", "body": body})


def moves(statuses: list[Status]) -> list[tuple[str | None, str | None]]:
    return [(status.previous_backend, status.backend) for status in statuses if status.backend_changed]


@pytest.mark.parametrize("name", PLACES)
def test_a_place_has_one_word(name: str) -> None:
    provider, backend, is_spot = PLACES[name]
    assert backend_name(provider, backend, is_spot=is_spot) == name
    assert provider_of(name) == (name if name == "k8s" else provider)


def test_the_first_place_is_not_a_move() -> None:
    story = Story()
    told = [*story.tell(view(None)), *story.tell(view("local"), [placed(1, "local")])]
    assert [(one.backend, one.backend_changed, one.previous_backend) for one in told] == [
        (None, False, None),
        ("local", False, None),
    ]


def test_a_move_is_told_once_and_remembered() -> None:
    story = Story()
    told = [
        *story.tell(view("ec2_spot"), [placed(1, "ec2_spot")]),
        *story.tell(view("ec2_ondemand"), [placed(5, "ec2_ondemand")]),
        *story.tell(view("ec2_ondemand", reason="new")),
    ]
    assert moves(told) == [("ec2_spot", "ec2_ondemand")]
    assert told[-1].previous_backend == "ec2_spot" and told[-1].reason == "new"


def test_moves_between_two_looks_are_all_told() -> None:
    story = Story()
    list(story.tell(view("ec2_spot"), [placed(1, "ec2_spot")]))
    told = list(story.tell(view("ec2_spot"), [placed(2, "gcp_spot"), placed(3, "modal"), placed(4, "ec2_spot")]))
    assert moves(told) == [("ec2_spot", "gcp_spot"), ("gcp_spot", "modal"), ("modal", "ec2_spot")]
    assert story.cursor == 4


def test_another_machine_of_the_same_backend_is_not_a_move() -> None:
    story = Story()
    told = list(story.tell(view("ec2_spot"), [placed(1, "ec2_spot"), placed(2, "ec2_spot")]))
    assert moves(told) == []


def test_a_look_that_is_older_than_the_log_does_not_move_it_back() -> None:
    story = Story()
    list(story.tell(view("local"), [placed(1, "local"), placed(2, "ec2_spot")]))
    told = list(story.tell(view("local", reason="old"), []))
    assert moves(told) == [] and told[-1].backend == "ec2_spot"


def test_nothing_new_is_nothing_told() -> None:
    story = Story()
    assert len(list(story.tell(view("local"), [placed(1, "local")]))) == 1
    assert list(story.tell(view("local"), [])) == []


def test_events_are_read_only_when_it_may_have_moved() -> None:
    story = Story()
    asked = [
        story.needs_events(view(None)),
        story.needs_events(view("local")),
        story.needs_events(view("local", status="completed")),
        story.needs_events(view("local", attempts={"started": 2, "failures": 0, "losses": 1})),
    ]
    assert asked == [False, True, False, True]


@pytest.mark.parametrize(
    ("changes", "percent"),
    [
        ({"progress": None}, 0.0),
        ({"progress": {"fraction": None}}, 0.0),
        ({"progress": {"fraction": 0.3339}}, 33.4),
        ({"progress": {"fraction": 0.3}, "status": "failed"}, 30.0),
        ({"progress": None, "status": "completed"}, 100.0),
    ],
)
def test_progress_is_percent_of_what_the_job_reported(changes: dict[str, Any], percent: float) -> None:
    assert status_of(view("local", **changes)).progress == percent


# --- at the wire --------------------------------------------------------------------------------------------


class Moving:
    """A server whose job runs on spot, loses its machine, goes on elsewhere and ends: one more step at each look."""

    LOOKS = (
        view(None, status="pending", progress=None),
        view("ec2_spot", attempts={"started": 1, "failures": 0, "losses": 0}),
        view("ec2_spot", attempts={"started": 1, "failures": 0, "losses": 0}),
        view("modal", attempts={"started": 2, "failures": 0, "losses": 1}, cost={"running_usd": 3.5}),
        view("modal", attempts={"started": 2, "failures": 0, "losses": 1}, status="completed"),
    )
    LOG = (placed(3, "ec2_spot"), placed(9, "modal"))

    def __init__(self) -> None:
        self.look = itertools.chain(self.LOOKS, itertools.repeat(self.LOOKS[-1]))
        self.known = 0  # how much of the log is written

    def job(self, request: Any) -> JobView:
        found = next(self.look)
        self.known = 2 if found.get("attempts", {}).get("started") == 2 else 1
        return found

    def events(self, request: Any) -> dict[str, Any]:
        assert request.query["all"] == "true"
        after = int(request.query["after"])
        return {"items": [e for e in self.LOG[: self.known] if e["seq"] > after], "next_after": None}


@pytest.fixture
def moving() -> Iterator[Job]:
    server = Moving()
    routes = {f"GET /v1/jobs/{ID}": server.job, f"GET /v1/jobs/{ID}/events": server.events}
    with api(routes) as double, Client(double.transport()) as client:
        yield Job(ID, client, lambda: Client(double.transport()), notes=["a note"])
        paths = [request.path.rsplit("/", 1)[-1] for request in double.requests]
        assert paths.count("events") == 2, "asked only when it may have moved"


def expected(told: list[Status]) -> None:
    assert [(one.backend, one.phase) for one in told] == [
        (None, "pending"),
        ("ec2_spot", "running"),
        ("modal", "running"),
        ("modal", "completed"),
    ]
    assert moves(told) == [("ec2_spot", "modal")]
    assert [one.cost for one in told][2] == 3.5
    assert told[-1].is_over and told[-1].progress == 100.0 and told[-1].notes == ("a note",)


def test_a_migration_is_seen_by_who_monitors(moving: Job) -> None:
    async def look() -> list[Status]:
        return [status async for status in moving.monitor()]

    expected(asyncio.run(look()))


def test_a_migration_is_seen_without_an_event_loop(moving: Job) -> None:
    expected(list(moving.watch()))
