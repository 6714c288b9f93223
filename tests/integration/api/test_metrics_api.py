"""GET /metrics of a real server: what happened is counted, who may read it, what never becomes a label."""

import re
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from crucible.engine import metrics
from crucible.engine.people import digest_of
from crucible.model.account import Grant, Token
from crucible.model.ids import TokenId, UserId

from .conftest import Server, eventually

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(server: Server) -> Series:
    reply = server.call("GET", "/metrics", "admin")
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[f"crucible_{name}", frozenset(labels.items())]


def test_a_job_is_counted_from_its_submission_to_its_end(server: Server) -> None:
    before = scraped(server)
    agent = server.agent(server.submit()).begin()
    running = scraped(server)
    assert value(running, "jobs_submitted_total") == value(before, "jobs_submitted_total") + 1
    place = {"provider": "fake", "region": "nowhere-1"}
    assert value(running, "provider_calls_total", call="create", outcome="ok", **place) >= 1
    assert value(running, "launch_seconds_count", provider="fake") >= 1
    agent.finish()
    after = scraped(server)
    assert (
        value(after, "jobs_ended_total", state="completed") == value(before, "jobs_ended_total", state="completed") + 1
    )
    assert value(after, "placements_total") == value(before, "placements_total") + 1
    assert value(after, "attempts_ended_total", outcome="succeeded") >= 1
    assert value(after, "orders_total", provider="fake", outcome="filled") >= 1


def test_sums_over_the_database_follow_within_seconds(server: Server) -> None:
    agent = server.agent(server.submit()).begin()
    place = {"provider": "fake", "region": "nowhere-1"}
    eventually(lambda: value(scraped(server), "gpus_busy", **place) >= 1)
    series = scraped(server)
    assert value(series, "gpus_held", **place) >= value(series, "gpus_busy", **place)
    assert value(series, "jobs", state="running") >= 1
    assert value(series, "ledger_imbalance_dollars") == 0
    assert value(series, "tasks_waiting", reason="capacity") == 0
    agent.finish()


def test_requests_are_told_by_route_and_class_of_status(server: Server) -> None:
    route = {"method": "GET", "route": "/v1/jobs/{job_id}"}
    before = scraped(server)
    for job_id in ("nobody", "018f6b1e-0000-7000-8000-000000000000"):
        assert server.call("GET", f"/v1/jobs/{job_id}").status == 404
    after = scraped(server)
    counted = "http_requests_total"
    assert value(after, counted, status="4xx", **route) == value(before, counted, status="4xx", **route) + 2
    assert value(after, "http_request_seconds_count", **route) >= 2


def test_what_a_client_makes_up_is_no_label(server: Server) -> None:
    for number in range(5):
        server.call("GET", f"/made-up/{number}")
        assert server.call("PURGE", "/v1/jobs").status == 405
    text = server.call("GET", "/metrics", "admin").text
    assert "made-up" not in text and "PURGE" not in text
    assert value(scraped(server), "http_requests_total", method="other", route="unmatched", status="4xx") >= 10


def test_no_job_and_no_person_is_a_label(server: Server) -> None:
    agent = server.agent(server.submit()).begin()
    agent.finish()
    text = server.call("GET", "/metrics", "admin").text
    assert agent.launch["job_id"] not in text and agent.order.id not in text
    assert not re.search(r"alice|bob", text)


def test_every_figure_of_the_table_is_shown_and_no_other(server: Server) -> None:
    server.agent(server.submit()).begin().finish()
    text = eventually(lambda: server.call("GET", "/metrics", "admin").text)
    shown = set(re.findall(r"^# TYPE (crucible_\w+) ", text, re.M))
    assert shown == {metric.name for metric in metrics.ALL}


def test_a_token_for_metrics_opens_metrics_and_nothing_else(server: Server) -> None:
    secret = "cru_scraper"
    token = Token(
        id=TokenId("token-scraper"), user_id=UserId("admin"), name="prometheus", digest=digest_of(secret),
        created_at=datetime.now(UTC), grants=(Grant.METRICS,),
    )  # fmt: skip
    server.run(server.deps.store.add_token(token))
    assert server.call("GET", "/metrics", secret).status == 200
    assert server.call("GET", "/v1/jobs", secret).status == 403
    assert server.call("GET", "/metrics", "alice").status == 403
    assert server.call("GET", "/metrics", None).status == 401
