"""What the steps of a workflow wrote: one step's log after the other's, in the order in which they began."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from crucible.cli.output import Out
from crucible.client.api import TERMINAL, Client
from crucible.client.following import Patience
from crucible.client.shapes import LogRecord
from crucible.client.workflow_shapes import Step
from crucible.model.errors import NotFound

# Often enough that a step is not missed for long, seldom enough that nobody minds.
LOOK_S = 0.5

Print = Callable[[str, Iterator[LogRecord]], None]  # what the job of that id wrote


@dataclass(frozen=True, slots=True)
class StepLogs:
    out: Out
    client: Client
    job_id: str

    def job_of(self, name: str) -> str:
        """The job that works for a step. Raises NotFound."""
        steps = self.client.workflow(self.job_id)["steps"]
        found = next((step for step in steps if step["name"] == name), None)
        if found is None:
            names = ", ".join(step["name"] for step in steps)
            raise NotFound(f"there is no step {name!r}; the steps are {names}")
        if found["job_id"] is None:
            raise NotFound(f"the step {name} has not begun: it is {found.get('verdict') or found['phase']}")
        return found["job_id"]

    def print(self, show: Print, *, is_followed: bool) -> None:
        """All steps that have begun; with `is_followed`, also those that will. A result that was taken over is not
        printed again."""
        patience, printed = Patience(on_trouble=self.out.trouble), set[int]()
        while True:
            workflow = patience.insist(lambda: self.client.workflow(self.job_id))
            begun = [step for step in workflow["steps"] if is_begun(step) and step["index"] not in printed]
            for step in sorted(begun, key=lambda one: one["started_at"] or "")[:1]:
                printed.add(step["index"])
                self._print_one(step, show, is_followed)
            if not begun and (not is_followed or workflow["status"] in TERMINAL):
                return
            if not begun:
                time.sleep(LOOK_S)

    def _print_one(self, step: Step, show: Print, is_followed: bool) -> None:
        job_id = step["job_id"]
        assert job_id is not None  # it has begun
        self.out.note(f"--- {step['name']} ({job_id}) ---")
        show(job_id, self.client.logs(job_id, follow=is_followed, on_trouble=self.out.trouble))


def is_begun(step: Step) -> bool:
    return step["job_id"] is not None and step.get("verdict") != "reused" and step["started_at"] is not None
