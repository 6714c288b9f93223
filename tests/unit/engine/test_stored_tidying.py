"""What is stored is kept in order, on a virtual clock: late pieces of dead attempts, claims, trouble, and what a server
before this one has left to do."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.agent.manifests import StoredManifest as AgentsManifest
from crucible.core.checkpoint import part_keys, result_key
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.crews import Succession
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.outputs import Outputs
from crucible.engine.reports import Reports
from crucible.engine.secrets import Secrets
from crucible.engine.tidying import Tidier
from crucible.engine.trees import Trees
from crucible.engine.wakes import Wakes
from crucible.model.attempt import Attempt, AttemptEnded, Outcome
from crucible.model.errors import Forbidden, StorageFailed
from crucible.model.job import JobStatus, JobStatusChanged
from crucible.model.policy import Policy
from crucible.model.storage import parse
from crucible.model.tree import TaskTree
from crucible.ports.objects import Signed
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.specimens import Family, running, step
from crucible.testing.virtual import SeededIds, SeededRandom, run_virtually, virtual_clock
from crucible.wire import agent as wire
from stored import FILES, node_manifest, store

HOUR = timedelta(hours=1)


async def nobody(tree: TaskTree, attempt: Attempt) -> Succession:
    return Succession()


class World:
    def __init__(self, database: Store, folder: Path, name: str = "server") -> None:
        self.store = database
        self.clock = virtual_clock(asyncio.get_running_loop())
        self.storage = FakeStorage(now=self.clock.now)
        self.cloud = FakeCloud(clock=self.clock, random=random.Random(0), gpus=8)
        self.context = Context(
            store=database,
            streams=FileStreams(folder, add_segment=database.add_segment, segments=database.segments, inline=True),
            sellers={("fake", "nowhere-1"): self.cloud},
            clock=self.clock,
            ids=SeededIds(),
            random=SeededRandom(0),
            keys=Keys(b"key"),
            hub=Hub(self.clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id=name,
            url="http://here",
            checkpoint_root="file:///shared",
            storage=self.storage,
            storage_root=parse("s3://kept/root"),
            failpoint=lambda name: None,
        )
        self.checkpoints = Checkpoints(self.context)
        outputs = Outputs(self.context, Trees(self.context))
        reports = Reports(self.context, self.checkpoints, outputs, Secrets(self.context).hidden, lambda: None, nobody)
        self.tidier = Tidier(self.context, self.checkpoints, reports.record, [outputs.tidy])

    async def slot(self, family: Family, rank: int = 0) -> wire.SlotReply:
        asked = wire.SlotRequest(attempt_id=family.attempt.id, rank=rank, count=8)
        return await self.checkpoints.slot(family.nodes[rank].id, asked)

    async def save(self, family: Family, saved_step: int, *, is_torn: bool = False) -> str:
        """A whole one; or only its parts."""
        got = await self.slot(family)
        requests = dict(zip(part_keys(got.slot, 0, 8), got.parts, strict=True))
        requests[f"manifests/{got.slot}.json"] = got.manifest

        def put(key: str, body: bytes) -> None:
            if not (is_torn and key.startswith("manifests/")):
                one = requests[key]
                self.storage.send(Signed(one.method, one.url, one.headers), body)

        node = node_manifest(saved_step, job_id=family.job.id, attempt=family.attempt.number)
        store(put, got.slot, node, FILES)
        return got.slot

    async def end(self, family: Family) -> None:
        attempt, job = await self.store.attempt(family.attempt.id), await self.store.job(family.job.id)
        _, over = step(attempt, AttemptEnded(self.clock.now(), Outcome.FAILED, "it failed"))
        _, done = step(job, JobStatusChanged(self.clock.now(), JobStatus.FAILED))
        await self.store.commit([over, done], label="task.step")

    def keys(self, part: str = "") -> list[str]:
        return sorted(key for held in self.storage.kept.values() for key in held if part in key)

    async def steps(self, family: Family) -> list[int]:
        return [one.step for one in await self.store.checkpoints(family.job.lineage)]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    def play(scene: Callable[[World], Awaitable[None]]) -> None:
        async def whole() -> None:
            database = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
            await scene(World(database, tmp_path))
            await database.close()

        run_virtually(whole())

    return play


Play = Callable[[Callable[[World], Awaitable[None]]], None]


def test_a_live_attempt_keeps_what_it_uploads_and_a_dead_one_only_as_long_as_it_could_commit(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.save(family, 1)
        torn = await world.save(family, 2, is_torn=True)
        await world.tidier.tidy(family.job.id)
        assert world.keys(f"parts/{torn}")
        await world.end(family)
        again = await world.tidier.tidy(family.job.id)
        assert world.keys(f"parts/{torn}") and again is not None and again > 7200
        await world.clock.sleep(again)
        assert await world.tidier.tidy(family.job.id) is None
        assert not world.keys(f"parts/{torn}") and len(world.keys("manifests/")) == 1

    play(scene)


def test_what_was_never_reported_is_recorded_once_and_only_the_newest_are_kept(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        for saved in (1, 2, 3, 4, 5):
            await world.save(family, saved)
        await world.tidier.tidy(family.job.id)
        await world.tidier.tidy(family.job.id)
        assert await world.steps(family) == [1, 2, 3, 4, 5]
        assert len(world.keys("manifests/")) == 3
        (record, *_) = await world.store.checkpoints(family.job.lineage)
        assert record.attempt_id == family.attempt.id and record.metadata == {"loss": 0.5}

    play(scene)


def test_nothing_goes_while_the_attempt_has_saved_nothing_of_its_own(play: Play) -> None:
    async def scene(world: World) -> None:
        first = await running(world.store, "j1")
        for saved in (1, 2, 3, 4):
            await world.save(first, saved)
        await world.end(first)
        second = await running(world.store, "j2", origin=first.job.id, lineage=first.job.id)
        await world.tidier.tidy(second.job.id)
        assert len(world.keys("manifests/")) == 4
        await world.save(second, 5)
        await world.tidier.tidy(second.job.id)
        assert len(world.keys("manifests/")) == 3

    play(scene)


def test_what_an_earlier_attempt_left_unfinished_goes_as_soon_as_the_next_has_saved(play: Play) -> None:
    async def scene(world: World) -> None:
        first = await running(world.store, "j1")
        torn = await world.save(first, 1, is_torn=True)
        await world.end(first)
        second = await running(world.store, "j2", origin=first.job.id, lineage=first.job.id)
        await world.tidier.tidy(second.job.id)
        assert world.keys(f"parts/{torn}")
        await world.save(second, 2)
        await world.tidier.tidy(second.job.id)
        assert not world.keys(f"parts/{torn}")

    play(scene)


def test_last_words_go_with_the_attempt_that_left_them(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        got = (await world.slot(family)).result
        world.storage.send(Signed(got.method, got.url, got.headers), b"{}")
        assert world.keys(result_key(family.attempt.id, 0))
        await world.end(family)
        await world.clock.sleep(await world.tidier.tidy(family.job.id) or 0)
        await world.tidier.tidy(family.job.id)
        assert not world.keys("results/")

    play(scene)


def test_the_loop_tidies_up_after_servers_that_died_and_goes_on_after_trouble(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        for saved in (1, 2, 3, 4):
            await world.save(family, saved)
        await world.end(family)
        troubles = iter([StorageFailed("away"), StorageFailed("away")])

        def trouble(verb: str, key: str) -> None:
            error = next(troubles, None)
            if error is not None:
                raise error

        world.storage.trouble = trouble
        loop = asyncio.get_running_loop().create_task(world.tidier.run())
        await world.clock.sleep(300)
        assert len(world.keys("manifests/")) == 3
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)

    play(scene)


def test_two_servers_take_turns(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.save(family, 1)
        address = world.context.storage_of(family.job, 0)
        claim = await world.store.claim(f"checkpoints:{address.uri}", "another", timedelta(minutes=1))
        assert claim is not None
        assert await world.tidier.tidy(family.job.id) == 60
        assert await world.steps(family) == []
        await world.store.release(claim)
        assert await world.tidier.tidy(family.job.id) is None
        assert await world.steps(family) == [1]

    play(scene)


def test_signatures_expire_and_an_ended_attempt_gets_no_new_ones(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        got = await world.slot(family, rank=1)
        await world.clock.sleep(3601)
        with pytest.raises(Forbidden, match="expired"):
            world.storage.send(Signed(got.manifest.method, got.manifest.url, got.manifest.headers), b"late")
        await world.end(family)
        with pytest.raises(Forbidden, match="no such attempt"):
            await world.slot(family)

    play(scene)


def test_what_machines_saved_into_a_shared_folder_is_offered_file_by_file(play: Play) -> None:
    async def scene(world: World) -> None:
        first = await running(world.store, "j1")
        await world.save(first, 1)
        await world.tidier.tidy(first.job.id)
        await world.end(first)
        node = node_manifest(7, job_id="j1")
        head, place = "/shared/j1/0/step-000000007", ("file", "", "")
        for name, content in FILES.items():
            world.storage.keep(place, f"{head}/{node.root}/{name}", content)
        world.storage.keep(place, f"{head}/manifest.json", node.data)
        world.cloud.facts = replace(world.cloud.facts, shares_files=True)
        later = await running(world.store, "j2", origin=first.job.id, lineage=first.job.id)
        asked = wire.CandidateRequest(attempt_id=later.attempt.id)
        found = (await world.checkpoints.candidate(later.nodes[0].id, asked)).candidate
        assert found is not None and found.step == 7 and found.shards[0].slot == ""
        read = AgentsManifest(found.shards[0].manifest)
        assert read.node.data == node.data
        sent = [world.storage.send(Signed(one.method, one.url, one.headers)) for one in found.shards[0].objects]
        assert sent == [content for content in FILES.values() if content]
        older = wire.CandidateRequest(attempt_id=later.attempt.id, skip=1)
        carried = (await world.checkpoints.candidate(later.nodes[1].id, older)).candidate
        assert carried is not None and carried.step == 1

    play(scene)


def test_a_folder_that_no_machine_shares_is_not_looked_into(play: Play) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        node = node_manifest(7, job_id="j1")
        world.storage.keep(("file", "", ""), "/shared/j1/0/step-000000007/manifest.json", node.data)
        asked = wire.CandidateRequest(attempt_id=family.attempt.id)
        assert (await world.checkpoints.candidate(family.nodes[0].id, asked)).candidate is None

    play(scene)
