"""Jobs as rows and as a page of text. Pure: what is shown is a function of what the server said and of `now`."""

from collections.abc import Callable, Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw, pairs, printable
from crucible.cli.views.accuracy import against_estimate
from crucible.cli.views.shards import items_line
from crucible.cli.views.status import marked
from crucible.client.shapes import Attempt, JobBrief, JobView

# An id begins with the millisecond it was made in: this much of it tells a person's jobs apart, and commands take it in
# place of the whole.
SHORT_ID = 13

Paint = Callable[[str], str]


def short(job_id: str) -> str:
    return job_id[:SHORT_ID]


def job_table(
    jobs: Sequence[JobBrief], now: datetime, *, width: int | None, is_wide: bool = False, paint: Paint | None = None
) -> list[str]:
    """The list of jobs. Ids are cut only where a person looks: a width means a terminal."""
    identify = str if width is None else short
    columns = [
        Column("ID"),
        Column("NAME", shrinks=True),
        Column("STATUS", paint=paint),
        Column("GPUS", is_right=True),
        Column("DONE", is_right=True),
        Column("AGE", is_right=True),
        Column("RAN", is_right=True),
        Column("COST", is_right=True),
        *([Column("HEALTH"), Column("WHERE"), Column("TYPE"), Column("USER"), Column("CREATED")] if is_wide else []),
        Column("REASON", shrinks=True),
    ]
    return draw(columns, [_row(job, now, identify, is_wide) for job in jobs], width)


def _row(job: JobBrief, now: datetime, identify: Callable[[str], str], is_wide: bool) -> Row:
    more = [
        job.get("health") or "-",
        _where(job),
        job.get("job_type") or "-",
        job.get("user_id") or "-",
        wording.clock(job.get("created_at")),
    ]
    return [
        identify(job["id"]),
        job["name"],
        marked(job["status"], job.get("health")),
        str(job.get("gpus", "-")),
        wording.percent(job.get("progress")),
        wording.age(job.get("created_at"), now),
        wording.span(job.get("started_at"), job.get("finished_at"), now),
        wording.money(job.get("cost_usd")),
        *(more if is_wide else []),
        job.get("reason") or "",
    ]


def _where(job: JobBrief) -> str:
    return "/".join(part for part in (job.get("provider"), job.get("region")) if part) or "-"


def job_page(
    job: JobView,
    attempts: Sequence[Attempt],
    now: datetime,
    paint: Paint = str,
    status: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """Everything about one job that fits on a screen."""
    times = job["timestamps"]
    rows = [
        ("Job", printable(f"{job['name']} ({job['id']})")),
        ("Status", status_line(job, paint)),
        ("Work", f"{job['job_type']}, {job['framework']}, {job['execution_mode']}, {gpus(job)}"),
        ("Where", where(job)),
        ("Progress", progress(job)),
        ("Cost", cost(job)),
        *status,
        ("Created", wording.when(times["created_at"], now)),
        ("Started", wording.when(times["started_at"], now)),
        ("Finished", wording.when(times["finished_at"], now)),
        ("Ran", wording.span(times["started_at"], times["finished_at"], now)),
        ("Estimate", against_estimate(job) or wording.NONE),
        *_owner(job),
    ]
    lines = pairs([(label, value) for label, value in rows if value != wording.NONE])
    return [*lines, "", *attempt_table(attempts, now)] if attempts else lines


def status_line(job: JobView, paint: Paint = str) -> str:
    wanted = {"hold": " (held)", "cancel": " (being cancelled)"}.get(job.get("desired", "run"), "")
    if job["status"] in ("completed", "failed", "cancelled"):
        wanted = ""
    reason = job.get("reason")
    return paint(job["status"]) + wanted + (f": {printable(reason)}" if reason else "")


def where(job: JobView) -> str:
    chosen = job["selected"]
    if not chosen or not chosen.get("provider"):
        return wording.NONE
    place = f"{chosen.get('provider')}/{chosen.get('region')}"
    kind = " spot" if chosen.get("spot") else ""
    return f"{place}, {chosen.get('count')} × {chosen.get('instance_type')}{kind} by {chosen.get('backend')}"


def gpus(job: JobView) -> str:
    return wording.plural(job.get("gpus", 0), "GPU")


def progress(job: JobView) -> str:
    counts, said = job.get("shards"), job.get("progress")
    if counts:
        return items_line(counts)
    if not said:
        return wording.NONE
    step, total = said.get("step"), said.get("total_steps")
    steps = f"step {step}" + (f" of {total}" if total else "") if step is not None else ""
    share = wording.percent(said.get("fraction")) if said.get("fraction") is not None else ""
    return ", ".join(part for part in (share, steps) if part) or wording.NONE


def cost(job: JobView) -> str:
    so_far = wording.money(job["cost"].get("running_usd"))
    estimate = job["cost"].get("estimated_usd")
    return so_far if estimate is None else f"{so_far} (estimated {wording.money(estimate)})"


def _owner(job: JobView) -> list[tuple[str, str]]:
    labels = (("User", "user_id"), ("Team", "team"), ("Project", "project"), ("Priority", "priority"))
    owner = [(label, printable(str(job.get(key)))) for label, key in labels if job.get(key)]
    links = (("Continues", "origin"), ("Works for", "parent"))
    return [*owner, *((label, str(job.get(key))) for label, key in links if job.get(key))]


def attempt_table(attempts: Sequence[Attempt], now: datetime) -> list[str]:
    names = ("ATTEMPT", "STATE", "WHERE", "STARTED", "RAN", "RANKS", "WHY")
    return draw([Column(name) for name in names], [_attempt(attempt, now) for attempt in attempts])


def where_of(attempt: Attempt) -> str:
    """Its machines: of one kind, in one place."""
    machines = attempt.get("machines") or []
    if not machines:
        return "-"
    one = machines[0]
    place = f"{one.get('provider')}/{one.get('zone') or one.get('region')}"
    market = " spot" if one.get("is_spot") else ""
    return printable(f"{place} {len(machines)} × {one.get('instance_type')}{market}")


def _attempt(attempt: Attempt, now: datetime) -> Row:
    return [
        str(attempt.get("number", "-")),
        attempt.get("outcome") or attempt.get("phase") or "-",
        where_of(attempt),
        wording.clock(attempt.get("started_at")),
        wording.span(attempt.get("started_at"), attempt.get("ended_at"), now),
        str(len(attempt.get("ranks", []))),
        attempt.get("reason") or "",
    ]
