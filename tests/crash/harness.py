"""A world to be unlucky in: a server on a data folder, and people who submit jobs, ask things of them and wait, however
often the server is killed meanwhile. What became of everything is judged in `verdict`."""

import json
import random
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from crash.database import Rows, rows_of
from crash.server_process import LOG_TAIL_BYTES, SERVER, ServerProcess, until
from crash.stories import MENU, Maker, Story
from crucible.client.api import TERMINAL, Client
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ServerTimeout, ServerUnreachable
from crucible.client.transport import Transport
from crucible.model.errors import Busy
from crucible.providers.local import processes

T = TypeVar("T")
Deed = Callable[[Story, str], None]

ASK_EVERY_S = 0.1
# What a dead server had claimed in a shared database is free again after so long; shorter than usual, as are its lives.
CLAIM_TTL_S = 3
LIFE_S = 0.8  # of a server, once it is ready
# From the last kill to the last end: a deaf job has thirty seconds of grace, and its server may be busy.
STORY_WITHIN_S = 150.0
QUIET_WITHIN_S = 60.0


@dataclass(frozen=True)
class Told:
    """A story and the job that it became."""

    story: Story
    job_id: str
    status: str
    reason: str | None


class World:
    carries_checkpoints = False  # its agents do, to storage

    def __init__(
        self,
        folder: Path,
        *,
        data: Path | None = None,
        database: str | None = None,
        seed: int = 0,
        options: tuple[str, ...] = (),
        program: tuple[str, ...] = SERVER,
        environment: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.folder = folder
        self.data = data or folder / "data"
        self.notes = folder / "notes"  # where the jobs' own witness writes
        self.database = database
        self.random = random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        self.notes.mkdir()
        self.server = ServerProcess(
            self.data,
            database=database,
            options=("--claim-ttl", str(CLAIM_TTL_S), *options),
            program=program,
            port=port,
            log=folder / "server.log",
            environment=environment,
        )
        self.stories: list[Story] = []
        self.jobs: dict[str, str] = {}  # name of the story -> id of its job
        self.told: list[Told] = []
        self.broken: list[str] = []
        self._numbers = iter(range(1, 1_000_000))
        self._people = ThreadPoolExecutor(64, thread_name_prefix="person")
        self._waiting: list[Future[None]] = []
        self.is_over = threading.Event()
        self._disturbed_at = time.monotonic()

    # --- people -----------------------------------------------------------------------------------

    def client(self) -> Client:
        """To wherever the server is now: its port may have been taken while it was dead."""
        said = json.loads((self.data / "server.json").read_text())
        token = (self.data / "admin-token").read_text()
        return Client(Transport(Endpoint(said["url"], token), timeout_s=10.0))

    def insist(self, ask: Callable[[Client], T], within_s: float = STORY_WITHIN_S) -> T:
        """The answer, however often the server dies before it comes. Every question here may be repeated."""
        began = time.monotonic()
        while True:
            try:
                with self.client() as client:
                    return ask(client)
            except (ServerUnreachable, ServerTimeout, Busy, FileNotFoundError) as error:
                if self.is_over.is_set() or self._is_late(began, within_s):
                    raise
                trouble = error
            time.sleep(0.02 if isinstance(trouble, FileNotFoundError) else 0.1)

    def tell(self, make: Maker) -> Story:
        """Somebody begins a story now."""
        return self.begin(make(f"{make.__name__.replace('_', '-')}-{next(self._numbers)}", self.random))

    def begin(self, story: Story, deed: Deed | None = None) -> Story:
        """`deed` is what is done to the job between its submission and the wait for its end."""
        self.stories.append(story)
        self._waiting.append(self._people.submit(self._live_through, story, deed or self._do))
        return story

    def _live_through(self, story: Story, deed: Deed) -> None:
        try:
            spec = story.spec(self.notes)
            job_id = self.insist(lambda c: c.submit(story.name, spec, idempotency_key=story.name))["id"]
            self.jobs[story.name] = job_id
            deed(story, job_id)
            job = self.wait(job_id, TERMINAL)
            self.told.append(Told(story, job_id, job["status"], job["reason"]))
        except Exception as error:  # one person's trouble must not stop the others; the verdict counts it
            self.broken.append(f"{story.name}: {type(error).__name__}: {error}")

    def _do(self, story: Story, job_id: str) -> None:
        if story.deed is None:
            return
        if story.deed_when is not None:
            self.wait(job_id, {story.deed_when})
        if story.deed_word is not None:
            self.wait_for_witness(story, story.deed_word, within_s=STORY_WITHIN_S)
        time.sleep(story.deed_after_s)  # the moment of the wish, not a wait for something
        if story.deed == "cancel":
            self.insist(lambda c: c.cancel(job_id))
            return
        self.insist(lambda c: c.hold(job_id))
        self.wait(job_id, {"pending"})
        self.permit(story)
        self.insist(lambda c: c.release(job_id))

    def wait(self, job_id: str, statuses: set[str] | frozenset[str], within_s: float = STORY_WITHIN_S) -> dict:
        began = time.monotonic()
        while (job := self.insist(lambda c: c.job(job_id), within_s))["status"] not in statuses:
            if self._is_late(began, within_s):
                why = self.insist(lambda c: c.why(job_id))
                raise AssertionError(f"{job['name']} is {job['status']} instead of {sorted(statuses)}: {why}")
            time.sleep(ASK_EVERY_S)
        return job

    def _is_late(self, began: float, within_s: float) -> bool:
        """Time runs from the last disturbance on: how long a row of deaths takes is the machine's business."""
        return time.monotonic() > max(began, self._disturbed_at) + within_s

    def wait_for_end(self, *stories: Story, within_s: float = STORY_WITHIN_S) -> None:
        names = {story.name for story in stories}

        def is_so() -> bool:
            return names <= {told.story.name for told in self.told} or bool(self.broken)

        until(f"{', '.join(sorted(names))} come to their end", is_so, within_s)
        assert self.broken == []

    def wait_for_people(self) -> None:
        for future in self._waiting:
            future.result(STORY_WITHIN_S * 2)
        self._waiting.clear()

    @property
    def busy(self) -> int:
        self._waiting = [future for future in self._waiting if not future.done()]
        return len(self._waiting)

    def permit(self, story: Story) -> None:
        """Who waits to be told may go on."""
        (self.notes / f"{story.name}.go").touch()

    def wait_for_witness(
        self, story: Story, what: str = "start", count: int = 1, within_s: float = 60.0
    ) -> list[dict[str, Any]]:
        """Until the job's own processes have said so."""

        def said() -> list[dict[str, Any]]:
            return [fact for fact in read_witness(self.notes)[story.name] if fact["what"] == what]

        until(f"{story.name} says {what}", lambda: len(said()) >= count, within_s)
        return said()

    # --- bad luck ---------------------------------------------------------------------------------

    def kill_at_random(
        self, kills: int, people: int = 10, menu: tuple[Maker, ...] = MENU, life_s: float = LIFE_S
    ) -> None:
        """kill -9, `kills` times, while about `people` stories are under way; then everything comes to its end."""
        for _ in range(kills):
            while self.busy < people:
                self.tell(self.random.choice(menu))
            self.server.start()
            if self.random.random() < 0.1:  # some die before they are ready
                time.sleep(self.random.uniform(0.1, 1.0))
            else:
                self.server.wait_ready()
                time.sleep(self.random.uniform(0.02, life_s))
            self.mishap()
            self.server.kill()
            self.disturbed()
        self.server.start().wait_ready()
        self.wait_for_people()

    def disturbed(self) -> None:
        """People are patient from now on."""
        self._disturbed_at = time.monotonic()

    def mishap(self) -> None:
        """What else may go wrong between two deaths."""

    # --- the end ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Until nothing is leased any more; then the server is stopped properly."""
        until("every machine is given back", lambda: not self.leased(), QUIET_WITHIN_S)
        until("no process of a machine is left", lambda: not self.leaked(), QUIET_WITHIN_S)
        self.server.stop()

    def leased(self) -> list[str]:
        with rows_of(self.data, self.database) as rows:
            return [row[0] for row in rows("SELECT id FROM leases WHERE phase <> 'closed'")]

    def judge(self, found: Any, rows: Rows) -> None:
        """What else must be true of this world when all is over, told to the verdict `found`."""

    def machines(self) -> list[Path]:
        return sorted((self.data / "local" / "machines").glob("local-*"))

    def leaked(self) -> list[int]:
        """Processes that carry the name of a machine of this world."""
        found = processes.carriers([path.name for path in self.machines()])
        return sorted(pid for pids in found.values() for pid in pids)

    def describe(self) -> str:
        """For a person who must find out what went wrong: the server's last words, and those of the machines."""
        over = {told.story.name for told in self.told}
        open_jobs = [f"{name} {job_id} is not over" for name, job_id in self.jobs.items() if name not in over]
        agents = [
            f"--- {path.name}: {(path / 'boot.json').read_text()}\n{(path / 'agent.log').read_text()[-2000:]}"
            for path in self.machines()
            if (path / "boot.json").exists() and (path / "agent.log").exists()
        ]
        logs = [log.read_text(errors="replace")[-LOG_TAIL_BYTES:] for log in sorted(self.folder.glob("*.log"))]
        return "\n".join([*open_jobs, *agents, *logs])

    def close(self) -> None:
        """Leaves nothing behind, whatever happened."""
        self.is_over.set()
        self.server.kill()
        self._people.shutdown(cancel_futures=True)
        for path in self.machines():
            for _ in range(3):
                for pid in processes.carriers([path.name])[path.name]:
                    processes.signal_carrier(pid, path.name, signal.SIGKILL)


def read_witness(notes: Path) -> dict[str, list[dict[str, Any]]]:
    """What the jobs' processes said themselves, by name."""
    facts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    path = notes / "witness"
    for line in path.read_text().splitlines() if path.exists() else ():
        fact = json.loads(line)
        facts[fact["name"]].append(fact)
    return facts


@contextmanager
def world(folder: Path, **options: object) -> Iterator[World]:
    """On failure the server's last words are shown."""
    made = World(folder, **options)  # type: ignore[arg-type]
    try:
        yield made
    except BaseException:
        print(made.describe())
        raise
    finally:
        made.close()
