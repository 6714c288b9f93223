"""What `crucible ps` shows, and how it stays up to date."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crucible.cli.output import Out
from crucible.cli.screen import whole_screen
from crucible.cli.views.jobs import job_table
from crucible.client.api import Client
from crucible.client.following import Patience
from crucible.client.shapes import JobBrief

# Fast enough to feel live, slow enough that a hundred watchers do not matter.
REFRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Listing:
    client: Client
    status: tuple[str, ...]  # empty: any
    limit: int
    with_steps: bool = False
    of: Mapping[str, str | None] = field(default_factory=dict)  # team, project, user

    def read(self) -> list[JobBrief]:
        status = ",".join(self.status) or None
        return list(self.client.all_jobs(status=status, steps=self.with_steps, limit=self.limit, **self.of))


def show(out: Out, jobs: Sequence[JobBrief], *, is_everything: bool) -> None:
    if out.quiet and not out.is_for_programs:
        for job in jobs:
            out.line(job["id"])
        return
    out.show({"items": list(jobs)}, lambda: _table(out, jobs))
    if not jobs and not out.is_for_programs:
        out.note("no jobs" if is_everything else "nothing waits or runs; crucible ps -a also shows what has ended")


def watch_screen(out: Out, listing: Listing) -> None:
    """Redraws in place."""
    patience = Patience(on_trouble=out.trouble)
    with whole_screen(sys.stdout) as draw:
        while True:
            draw(_table(out, patience.insist(listing.read)))
            time.sleep(REFRESH_S)


def watch_changes(out: Out, listing: Listing) -> None:
    """For a pipe: the rows that are new or have changed, as they come."""
    patience = Patience(on_trouble=out.trouble)
    known: dict[str, tuple[str, str | None]] = {}
    while True:
        changed = [job for job in patience.insist(listing.read) if known.get(job["id"]) != _state(job)]
        known |= {job["id"]: _state(job) for job in changed}
        _print_changes(out, changed)
        time.sleep(REFRESH_S)


def _print_changes(out: Out, jobs: Sequence[JobBrief]) -> None:
    if out.is_for_programs:
        for job in jobs:
            out.record(job)
        return
    for line in _table(out, jobs)[1:]:
        out.live(line + "\n")


def _state(job: JobBrief) -> tuple[str, str | None]:
    return job["status"], job.get("reason")


def _table(out: Out, jobs: Sequence[JobBrief]) -> list[str]:
    now = datetime.now(UTC)
    return job_table(jobs, now, width=out.width, is_wide=out.is_wide, paint=out.status) if jobs else []
