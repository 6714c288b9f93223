"""The trace of a job as a tree. After a change run with CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from crucible.core.trace import MOST_SPANS, spans, trace_id, traceparent
from crucible.model.attempt import AttemptPhase, Outcome
from crucible.model.ids import AttemptId, JobId, LeaseId, NodeId, OrderId
from crucible.model.job import JobStatus
from crucible.model.span import Link, Span, Story, Told, parse_traceparent
from making import NOW, a_job, a_lease, a_task, an_attempt, an_order

FOLDER = Path(__file__).parent / "traces"
CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def told(kind: str, entity_id: str, *lines: tuple[float, str, dict[str, object]]) -> list[Told]:
    return [Told(kind, entity_id, type_, at(when), body) for when, type_, body in lines]


def lost_and_resumed() -> Story:
    """A job whose spot machine was taken after two checkpoints, and whose next one finished it."""
    job = a_job(name="train", team="vision", gpus=1, status=JobStatus.COMPLETED, created_at=NOW, finished_at=at(400))
    first = an_attempt(
        id=AttemptId("a0"), leases=(LeaseId("l0"),), created_at=at(1), started_at=at(60), ended_at=at(200),
        phase=AttemptPhase.ENDED, outcome=Outcome.LOST, reason="the machine was taken back",
    )  # fmt: skip
    second = an_attempt(
        id=AttemptId("a1"), number=1, leases=(LeaseId("l1"),), created_at=at(201), started_at=at(250),
        ended_at=at(400), phase=AttemptPhase.ENDED, outcome=Outcome.SUCCEEDED, resume_step=20,
    )  # fmt: skip
    orders = [
        an_order(id=OrderId(f"o{n}"), is_spot=n == 0, instance_type="g4dn.xlarge", created_at=at(1 + 200 * n))
        for n in range(2)
    ]
    leases = [a_lease(id=LeaseId(f"l{n}"), order_id=OrderId(f"o{n}"), node_id=NodeId(f"n{n}")) for n in range(2)]
    log = told(
        "job", "j",
        (0, "JobSubmitted", {"accepted_at": at(0.25).isoformat(), "traceparent": CLIENT}),
        (400, "JobStatusChanged", {"status": "completed"}),
    )  # fmt: skip
    for n, start in enumerate((1, 201)):
        log += told("order", f"o{n}", (start + 1, "OrderUnanswered", {}), (start + 3, "OrderFilled", {}))
        log += told("lease", f"l{n}", (start + 3, "LeaseStarted", {}), (start + 40, "NodeBound", {}))
        log += told("node", f"n{n}", (start + 40, "NodeEnrolled", {}))
    log += told(
        "attempt", "a0",
        (60, "AttemptStarted", {}),
        (100, "CheckpointCommitted", {"step": 10}),
        (150, "CheckpointCommitted", {"step": 20}),
        (160, "CheckpointCommitted", {"step": None}),
    )  # fmt: skip
    log += told("attempt", "a1", (250, "AttemptStarted", {}), (300, "CheckpointCommitted", {"step": 30}))
    return Story(job=job, tasks=[a_task()], attempts=[first, second], orders=orders, leases=leases, log=log)


def drawn(made: tuple[Span, ...]) -> str:
    below: dict[str | None, list[Span]] = {}
    for span in made:
        below.setdefault(span.parent_id, []).append(span)

    def lines(span: Span, depth: int) -> list[str]:
        pad = "  " * depth
        times = f"{(span.started_at - NOW).total_seconds():g} … {(span.ended_at - NOW).total_seconds():g} s"
        found = [f"{pad}{span.name} {span.span_id}  {times}"]
        found += [f"{pad}  · {key} = {value}" for key, value in span.attributes.items()]
        found += [f"{pad}  ! {span.error}"] if span.error else []
        found += [f"{pad}  → {link.trace_id}/{link.span_id}" for link in span.links]
        found += [
            f"{pad}  * {one.name} {dict(one.attributes)} at {(one.at - NOW).total_seconds():g} s"
            for one in span.moments
        ]
        return [*found, *(line for child in below.get(span.span_id, []) for line in lines(child, depth + 1))]

    (root,) = below[None]
    return f"trace {root.trace_id}\n" + "\n".join(lines(root, 0)) + "\n"


def test_a_job_that_lost_its_machine_and_went_on_is_one_trace() -> None:
    text, file = drawn(spans(lost_and_resumed())), FOLDER / "lost_and_resumed.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        file.write_text(text)
    assert text == file.read_text()


def test_the_same_job_has_the_same_spans_and_every_parent_is_there() -> None:
    made = spans(lost_and_resumed())
    assert made == spans(lost_and_resumed())
    names = {span.span_id for span in made}
    assert len(names) == len(made) and {span.parent_id for span in made[1:]} <= names


def test_the_program_is_told_the_span_of_its_run() -> None:
    made = {(span.name, span.span_id) for span in spans(lost_and_resumed())}
    version, trace, span, flags = traceparent(JobId("j"), AttemptId("a1")).split("-")
    assert (version, trace, flags) == ("00", trace_id(JobId("j")), "01") and ("run", span) in made


def test_a_step_is_linked_to_its_workflow() -> None:
    story = lost_and_resumed()
    root = spans(replace(story, job=replace(story.job, parent=JobId("w"))))[0]
    assert Link(trace_id(JobId("w")), spans(replace(story, job=a_job(id=JobId("w"))))[0].span_id) in root.links


def test_a_purchase_that_never_came_to_anything_is_an_error_without_a_boot() -> None:
    story = lost_and_resumed()
    kept = [line for line in story.log if line.entity_id not in ("o1", "l1", "n1")]
    made = {span.span_id: span for span in spans(replace(story, log=kept))}
    orders = [span for span in made.values() if span.name == "order"]
    assert [order.error for order in orders] == [None, "never filled"]
    assert sum(span.name == "boot" for span in made.values()) == 1


def test_a_job_of_very_many_tasks_has_a_trace_of_bounded_size_that_says_so() -> None:
    story = lost_and_resumed()
    tasks = [a_task(id=f"t{n}", index=n) for n in range(3000)]
    attempts = [an_attempt(id=AttemptId(f"x{n}"), task_id=f"t{n}", leases=()) for n in range(3000)]
    made = spans(replace(story, tasks=tasks, attempts=attempts))
    assert len(made) == MOST_SPANS and made[0].attributes["crucible.spans_left_out"] == 6001 - (MOST_SPANS - 1)


def test_what_is_no_traceparent_is_none() -> None:
    assert parse_traceparent(CLIENT) == Link("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    zero = "00-" + "0" * 32 + "-00f067aa0ba902b7-01"
    for text in (None, "", "hello", CLIENT.upper(), zero, "ff" + CLIENT[2:], CLIENT + "-more", CLIENT + "é", "0" * 600):
        assert parse_traceparent(text) is None
    assert parse_traceparent("01" + CLIENT[2:] + "-later") is not None
