"""A server that is watched: it ran a few jobs, one of them lost its machine half way and went on."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.server_process import until
from crash.stories import Story
from crucible.providers.local import processes
from otlp_collector import Collector

HEADER = "provider,region,zone,instance_type,market,price_usd_per_hour,as_of,source\n"


@dataclass(frozen=True)
class Watched:
    world: World
    collector: Collector
    lost: str  # the job that lost its machine
    target: str
    token: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One for each module: where traces are looked at it is killed, and its counters begin anew."""
    folder = tmp_path_factory.mktemp("watched")
    prices = folder / "prices.csv"
    prices.write_text(HEADER)
    options = ("--price-file", str(prices), "--log-format", "json")
    with Collector() as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with world(folder / "world", options=options, environment=environment) as made:
            made.server.start().wait_ready()
            yield lived_through(made, collector)


def lived_through(made: World, collector: Collector) -> Watched:
    made.insist(lambda c: c.add_budget("server", "", 1000, period="month"))
    quick = made.begin(Story("quick", ("lines:3",)))
    failing = made.begin(Story("failing", ("fail-below:99",), ends="failed"))
    lost = made.begin(Story("lost", ("train:0.02",), gpus=1, starts=(2,)), partial(take_machine, made))
    made.wait_for_end(quick, failing, lost)
    assert {told.story.name: told.status for told in made.told} == {story.name: story.ends for story in made.stories}
    url = made.server.url.removeprefix("http://")
    token = Path(made.data / "admin-token").read_text()
    return Watched(made, collector, made.jobs["lost"], url, token)


def take_machine(made: World, story: Story, job_id: str) -> None:
    (start,) = made.wait_for_witness(story)
    until("a checkpoint is known", lambda: bool(made.insist(lambda c: c.checkpoints(job_id))))
    machine = processes.mark_of(start["pid"])
    assert machine is not None
    for pid in processes.carriers([machine])[machine]:
        os.kill(pid, signal.SIGKILL)
    made.wait_for_witness(story, count=2)
    made.permit(story)
