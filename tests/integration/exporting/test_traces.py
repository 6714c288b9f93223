"""Traces of real jobs, as a real collector gets them."""

import http.client
import json
import time
from collections.abc import Callable

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from crash.harness import World
from crash.stories import Story
from crucible.core.trace import span_id, trace_id
from crucible.model.ids import JobId

from .conftest import Watched

CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SPEC = """\
job:
  name: told
  command: [sh, -c, 'echo "part of $TRACEPARENT"']
"""


def eventually(is_so: Callable[[], object], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def traced(watched: Watched, job_id: str) -> list[Span]:
    trace = trace_id(JobId(job_id))
    eventually(lambda: watched.collector.spans(trace))
    return watched.collector.spans(trace)


def test_a_job_that_lost_its_machine_and_went_on_is_one_trace(watched: Watched) -> None:
    spans = traced(watched, watched.lost)
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)

    def path(span: Span) -> tuple[str, ...]:
        return (*(path(by_id[span.parent_span_id]) if span.parent_span_id else ()), span.name)

    found = sorted(path(span) for span in spans)
    attempt = ("job", "attempt")
    assert found == sorted(
        [("job",), ("job", "submit")]
        + 2 * [("job", "plan"), attempt, (*attempt, "run"), (*attempt, "order")]
        + 2 * [(*attempt, "order", "boot"), (*attempt, "order", "boot", "enrol")]
    )


def test_its_spans_tell_what_happened_when(watched: Watched) -> None:
    spans = traced(watched, watched.lost)
    (root,) = (span for span in spans if span.name == "job")
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano for span in spans)
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    first, second = sorted((span for span in spans if span.name == "attempt"), key=lambda s: s.start_time_unix_nano)
    said = {one.key: one.value.string_value for one in first.attributes}
    assert said["crucible.attempt.outcome"] == "lost" and first.status.message
    assert [link.span_id for link in second.links] == [first.span_id] and not second.status.message
    run, _ = sorted((span for span in spans if span.name == "run"), key=lambda s: s.start_time_unix_nano)
    assert "checkpoint" in {event.name for event in run.events}


def test_a_client_that_traces_is_linked_and_the_program_is_told_where_it_belongs(watched: Watched) -> None:
    job_id = submit(watched.world, SPEC, CLIENT)
    watched.world.wait(job_id, {"completed"})
    (root,) = (span for span in traced(watched, job_id) if span.name == "job")
    assert [link.trace_id.hex() for link in root.links] == [CLIENT.split("-")[1]]
    with watched.world.client() as client:
        run = span_id("run", client.attempts(job_id)[0]["id"])
        text = json.dumps(list(client.logs(job_id)), default=str)
    assert f"part of 00-{trace_id(JobId(job_id))}-{run}-01" in text
    assert run in {span.span_id.hex() for span in traced(watched, job_id)}


def test_a_collector_that_is_away_hurts_nobody_and_gets_the_trace_when_it_is_back(watched: Watched) -> None:
    collector, made = watched.collector, watched.world
    collector.answers = 400  # 503 would be tried again by the exporter itself
    try:
        asked = collector.asked
        story = made.begin(Story("unheard", ("lines:1",)))
        made.wait_for_end(story)
        eventually(lambda: collector.asked > asked)
        assert made.server.answers()
    finally:
        collector.answers = 200
    assert traced(watched, made.jobs["unheard"])


def test_a_server_that_is_killed_gives_the_same_spans_again_and_loses_none(watched: Watched) -> None:
    made = watched.world
    before = {span.span_id for span in traced(watched, watched.lost)}
    story = made.begin(Story("cut-off", ("lines:1",)))
    made.wait_for_end(story)
    made.server.kill()
    made.server.start().wait_ready()
    assert traced(watched, made.jobs["cut-off"])
    eventually(lambda: len(traced(watched, watched.lost)) == 2 * len(before))
    assert {span.span_id for span in traced(watched, watched.lost)} == before


def test_the_log_is_one_object_for_each_line(watched: Watched) -> None:
    lines = [line for line in watched.world.server.log.read_text().splitlines() if not line.startswith("---")]
    said = [json.loads(line) for line in lines]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(one) for one in said))


def submit(made: World, spec: str, traceparent: str) -> str:
    connection = http.client.HTTPConnection(made.server.url.removeprefix("http://"), timeout=30)
    token = (made.data / "admin-token").read_text()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "traceparent": traceparent}
    connection.request("POST", "/v1/jobs", json.dumps({"spec_yaml": spec}), headers)
    with connection.getresponse() as response:
        answer = json.loads(response.read())
    connection.close()
    return str(answer["id"])
