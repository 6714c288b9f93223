"""Jobs as the accounts of a cluster have them (slurmdbd), as the jobs that slurmctld would list if it still knew them.
Pure. What has not ended in the accounts proves nothing: they lag, and may never hear of an end."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from crucible.model.ids import OrderId
from crucible.providers.slurm.door import Job, Record, StepRecord
from crucible.providers.slurm.hostlist import expand
from crucible.providers.slurm.listing import is_over
from crucible.providers.slurm.request import NAME, Token, machine_id, read_comment, submitted_comment

# What sacct prints. The last two alone are free text; a comment of ours holds no bar, and a command may.
COLUMNS = ("JobID", "JobName", "State", "ExitCode", "Start", "End", "NNodes", "NodeList", "Comment", "SubmitLine")
STEP_NAME = "slurm-"
_JOB = re.compile(r"(?P<id>\d{1,10})(?:_(?P<element>\d{1,7})|_\[(?P<elements>[\d,-]+)[^\]]*\])?(?:\.(?P<step>\S+))?")
_EXIT = re.compile(r"(\d{1,5}):(\d{1,5})")
MOST_SIGNAL = 64
REQUEUED = "REQUEUED"
NEVER = 1 << 40  # later than any start


# --- what sacct prints -----------------------------------------------------------------------------------------


def read_records(lines: Iterable[str]) -> list[Record]:
    """Steps follow their job. A line that is cut off or not understood is passed over, with its steps."""
    found: list[Record] = []
    is_known = False
    for line in lines:
        words = line.rstrip("\n").split("|", len(COLUMNS) - 1)
        place = _JOB.fullmatch(words[0])
        if place is not None and place["step"] and is_known and len(words) == len(COLUMNS):
            found[-1] = replace(found[-1], steps=(*found[-1].steps, read_step(words)))
        elif place is None or not place["step"]:
            record = read_record(words, place) if place and len(words) == len(COLUMNS) else None
            is_known = record is not None
            found += [record] if record is not None else []
    return found


def read_record(words: Sequence[str], place: re.Match[str]) -> Record | None:
    said = dict(zip(COLUMNS, words, strict=True))
    if not said["JobName"].startswith(NAME):
        return None
    code, signal = read_exit(said["ExitCode"])
    return Record(
        id=int(place["id"]),
        elements=read_elements(place),
        name=said["JobName"],
        comment=said["Comment"],
        submitted=said["SubmitLine"],
        state=said["State"].partition(" ")[0],  # "CANCELLED by 0"
        node_count=int(said["NNodes"]) if said["NNodes"].isdecimal() else 0,
        nodes="" if said["NodeList"].lower() in ("", "none assigned", "unknown") else said["NodeList"],
        started_at=read_moment(said["Start"]),
        ended_at=read_moment(said["End"]),
        exit_status=code << 8 | signal,
    )


def read_step(words: Sequence[str]) -> StepRecord:
    said = dict(zip(COLUMNS, words, strict=True))
    code, signal = read_exit(said["ExitCode"])
    return StepRecord(
        name=said["JobName"],
        started_at=read_moment(said["Start"]),
        ended_at=read_moment(said["End"]),
        exit_code=code or -signal,
    )


def read_elements(place: re.Match[str]) -> tuple[int, ...]:
    if place["element"]:
        return (int(place["element"]),)
    return tuple(int(word) for word in expand(f"[{place['elements']}]")) if place["elements"] else ()


def read_exit(text: str) -> tuple[int, int]:
    """ "3:0" is a code and a signal: one of them."""
    found = _EXIT.fullmatch(text)
    code, signal = (int(found[1]) & 0xFF, int(found[2])) if found else (0, 0)
    return code, signal if not code and signal <= MOST_SIGNAL else 0


def read_moment(text: str) -> int | None:
    """Seconds since 1970; "Unknown" and "None" are none."""
    return int(text) if text.isdecimal() and len(text) <= 12 and int(text) > 0 else None


# --- what it means ------------------------------------------------------------------------------------------------


def jobs_of(records: Iterable[Record], deployment: str) -> list[Job]:
    """One for each job of ours, ended or not."""
    lives: dict[tuple[str, int, tuple[int, ...]], list[Record]] = {}
    for record in records:
        lives.setdefault((record.name, record.id, record.elements), []).append(record)
    return [job for group in lives.values() for job in jobs_of_one(group, deployment)]


def jobs_of_one(lives: Sequence[Record], deployment: str) -> list[Job]:
    """A machine lives in the first life that was given nodes: our program runs once."""
    in_order = sorted(lives, key=lambda life: life.started_at or NEVER)
    record = next((life for life in in_order if life.nodes), lives[-1])
    comment = comment_of(record, deployment)
    if comment is None:
        return []
    job = Job(
        id=record.id,
        element=None,
        name=record.name,
        comment=comment,
        state=record.state,
        nodes=record.nodes,
        started_at=record.started_at,
        ended_at=record.ended_at,
        exit_status=record.exit_status,
        restarts=max(len(lives) - 1, int(record.state == REQUEUED)),
    )
    return [replace(job, element=element) for element in record.elements] or [job]


def is_final(job: Job) -> bool:
    """It has ended, and the accounts say when."""
    return is_over(job) and job.ended_at is not None


def comment_of(record: Record, deployment: str) -> str | None:
    """As the job had it at its end; where comments are not stored, as it would have had it. None: it is not ours."""
    token = read_comment(record.comment)
    if token is not None:
        return record.comment if token.deployment == deployment else None
    first = submitted_comment(record.submitted) or guessed_comment(record, deployment)
    token = read_comment(first or "")
    if first is None or token is None or token.deployment != deployment:
        return None
    return " ".join([first, *marks(record, token)])


def guessed_comment(record: Record, deployment: str) -> str | None:
    """Its steps are named like machines, and these like nobody else's."""
    order, steps = record.name.removeprefix(NAME), {step.name for step in record.steps}
    known = Token(deployment=deployment, order_id=OrderId(order), is_array=False, count=record.node_count, ended={})
    if record.elements or not any(name in steps for name in names_of(known)):
        return None
    return f"crucible {deployment} {order} g{record.node_count}"


def marks(record: Record, token: Token) -> list[str]:
    """What the program of the job noted about its machines; the last one ends with the job."""
    indices = record.elements if token.is_array else range(token.count)
    names = names_of(token)
    by_name = {step.name: step for step in record.steps}
    steps = [(index, by_name[names[index]]) for index in indices if index < token.count and names[index] in by_name]
    ends = [step.ended_at or record.ended_at or 0 for _, step in steps]
    last = steps[ends.index(max(ends))][0] if steps and len(steps) == len(indices) else None
    found: list[str] = []
    for index, step in steps:
        found += [f"{index}+{step.started_at}"] if step.started_at else []
        if index != last and step.ended_at and record.ended_at:
            found.append(f"{index}-{min(step.ended_at, record.ended_at)}={step.exit_code}")
    return found


def names_of(token: Token) -> list[str]:
    return [machine_id(token.deployment, token.order_id, index) for index in range(token.count)]
