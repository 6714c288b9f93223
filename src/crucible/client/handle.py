"""A job in the hands of a program: look at it, wait for it, read what it left. It keeps nothing but the id, and the job
goes on without it."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from crucible.client import cost_shapes, output_shapes, shapes, trial_shapes, workflow_shapes
from crucible.client.api import Client
from crucible.client.async_client import AsyncClient
from crucible.client.errors import JobCancelled, JobFailed
from crucible.client.following import Patience
from crucible.client.status import Status, Story, status_of
from crucible.model.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from crucible.client.talking import Copied, Executed


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a completed job left behind."""

    status: Status
    metrics: dict[str, float | None]  # the last value of each
    checkpoint: shapes.Checkpoint | None  # the newest
    artifacts: list[shapes.Artifact]


class Job:
    """The methods block, but for `monitor`; `AsyncClient` has them all for coroutines."""

    def __init__(self, job_id: str, client: Client, connect: Callable[[], Client], notes: Sequence[str] = ()) -> None:
        self.id = job_id
        self.notes = tuple(notes)  # what was decided for you at submission
        self._client = client
        self._connect = connect

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def view(self) -> shapes.JobView:
        """Everything the server says of it."""
        return self._client.job(self.id)

    def status(self) -> Status:
        return status_of(self.view(), self.notes)

    def wait(self, timeout_s: float | None = None) -> Status:
        """Its last status, however it ended. Raises JobNotOver after `timeout_s`."""
        return status_of(self._client.wait(self.id, timeout_s=timeout_s), self.notes)

    def result(self, timeout_s: float | None = None) -> Result:
        """Waits for the end. Raises JobFailed or JobCancelled unless it completed, JobNotOver after `timeout_s`."""
        status = self.wait(timeout_s)
        if status.phase != "completed":
            kind = JobCancelled if status.phase == "cancelled" else JobFailed
            raise kind(f"job {status.name} {status.phase}: {status.reason or 'no reason was given'}", id=self.id)
        latest = {name: value for point in self.metrics() for name, value in point["values"].items()}
        newest = self.checkpoints()[-1:]
        return Result(
            status=status,
            metrics=latest,
            checkpoint=newest[0] if newest else None,
            artifacts=self._client.artifacts(self.id),
        )

    def cancel(self) -> shapes.Changed:
        """Says what is wanted; the job ends soon after."""
        return self._client.cancel(self.id)

    def logs(self, *, follow: bool = False, tail: int | None = None, rank: int | None = None) -> Iterator[str]:
        """Lines without their ends; with `follow` as they come, until the job is over."""
        begun: dict[tuple[int, int], str] = {}
        for record in self._client.logs(self.id, follow=follow, tail=tail, rank=rank):
            source = record["attempt"], record["rank"]
            text = begun.pop(source, "") + record["x"]
            if record.get("p"):  # a long line comes in pieces
                begun[source] = text
            else:
                yield text
        yield from begun.values()

    def metrics(self) -> list[shapes.MetricPoint]:
        """Every point that was reported so far, in the order it came."""
        found: list[shapes.MetricPoint] = []
        offset = 0
        while True:
            page = self._client.metrics(self.id, offset=offset)
            found += page["items"]
            if not page["items"] or page.get("next_offset", offset) == offset:
                return found
            offset = page["next_offset"]

    def checkpoints(self) -> list[shapes.Checkpoint]:
        """Oldest first."""
        return self._client.checkpoints(self.id)

    def get_checkpoint(self, folder: str, step: int | None = None) -> str:
        """Fetches it, the newest if no step is given, and returns the path of the new folder below `folder`."""
        found = self.checkpoints()[-1:] if step is None else []
        if step is None and not found:
            raise NotFound(f"job {self.id} has no checkpoint yet")
        return self._client.get_checkpoint(self.id, found[0]["step"] if step is None else step, folder)

    def outputs(self) -> list[output_shapes.Output]:
        """What its tasks have left in $CRUCIBLE_OUTPUT, in their order."""
        return self._client.outputs(self.id)

    def get_output(self, folder: str, task: int | None = None) -> str:
        """Fetches what a task left, of the only one if none is given, and returns the path of the new folder below
        `folder`."""
        found = [one["task"] for one in self.outputs()] if task is None else [task]
        if not found:
            raise NotFound(f"job {self.id} has left nothing behind")
        if len(found) > 1:
            raise InvalidRequest(f"{len(found)} tasks of job {self.id} have left something; say which", field="task")
        return self._client.get_output(self.id, found[0], folder)

    def costs(self) -> cost_shapes.JobCosts:
        """What it has cost so far, what it costs per hour, and what the rest is likely to cost."""
        return self._client.costs(self.id)

    # --- many tasks ------------------------------------------------------------------------------

    def tasks(self, *, by_value: bool = False, limit: int | None = None) -> Iterator[trial_shapes.Task]:
        """What each was given and what came of it, in their order, or of a search the best first."""
        return self._client.all_tasks(self.id, by_value=by_value, limit=limit)

    def best(self) -> trial_shapes.BestTrial:
        """The best trial of a search so far. Raises NotFound while there is none."""
        said = self._client.sweep(self.id)
        if said["best"] is None:
            raise NotFound(said["note"] or f"no trial of {said['name']} has ended yet")
        return said["best"]

    def evaluation(self) -> trial_shapes.Evaluation:
        """Every model on every dataset, each beside the baseline."""
        return self._client.evaluation(self.id)

    def workflow(self) -> workflow_shapes.Workflow:
        """Of a job that has steps: what became of each of them."""
        return self._client.workflow(self.id)

    # --- beside a rank ---------------------------------------------------------------------------

    def exec(
        self, argv: Sequence[str], *, rank: int = 0, stdin: bytes = b"", timeout_s: float | None = None
    ) -> "Executed":
        """Run a program where a rank runs, in its environment and folder."""
        return self._client.exec(self.id, argv, rank=rank, stdin=stdin, timeout_s=timeout_s)

    def copy_to(self, source: str, target: str, *, rank: int = 0) -> "Copied":
        """A file or folder of this computer to the rank's folder."""
        return self._client.copy_to(self.id, source, target, rank=rank)

    def copy_from(self, source: str, target: str, *, rank: int = 0) -> "Copied":
        return self._client.copy_from(self.id, source, target, rank=rank)

    # --- staying with it -------------------------------------------------------------------------

    async def monitor(self) -> AsyncGenerator[Status, None]:
        """Its status now, then whenever something changes, each move to another backend once; the last one is over."""
        story, patience = Story(self.notes), Patience()
        async with AsyncClient(self._connect) as client:
            async for job in client.updates(self.id):
                ask = self._question(story, job)
                for status in story.tell(job, await client.insist(patience, ask) if ask else ()):
                    yield status

    def watch(self) -> Iterator[Status]:
        """The same for programs without an event loop."""
        story, patience = Story(self.notes), Patience()
        for job in self._client.updates(self.id):
            ask = self._question(story, job)
            yield from story.tell(job, patience.insist(partial(ask, self._client)) if ask else ())

    def _question(self, story: Story, job: shapes.JobView) -> Callable[[Client], list[shapes.JobEvent]] | None:
        """What to ask for the moves that the story has not told yet; nothing if there are none."""
        if not story.needs_events(job):
            return None
        return partial(Client.events, job_id=self.id, everything=True, after=story.cursor)
