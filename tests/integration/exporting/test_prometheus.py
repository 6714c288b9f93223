"""A real Prometheus scrapes a real server: every query of the dashboard has an answer, every rule is understood."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crucible.engine import metrics
from crucible.ports.meter import Kind, Source
from prometheus_engine import DEPLOY, Prometheus, tool

from .conftest import Watched

DASHBOARD = json.loads((DEPLOY.parent / "grafana" / "crucible.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = [
    rule
    for file in ("rules.yml", "alerts.yml")
    for group in yaml.safe_load((DEPLOY / file).read_text())["groups"]
    for rule in group["rules"]
]
# What Grafana puts in, for a server that has been watched for seconds.
VARIABLES = {"$__rate_interval": "10s", "$__range": "10s"}
SUFFIXES = ("_bucket", "_sum", "_count")
SEEN_WITHIN_S = 90.0


def asked(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


QUERIES = [
    pytest.param(asked(target["expr"]), id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """When it has looked at the server a few times."""
    with Prometheus(tmp_path_factory.mktemp("prometheus") / "one", watched.target, watched.token) as one:
        seen(one, 'sum_over_time(up{job="crucible"}[1m]) >= 4')
        yield one


def seen(prometheus: Prometheus, query: str) -> list[dict[str, Any]]:
    """Its answer, once there is one: a busy computer may miss a look or two, and then nothing is known for a moment."""
    deadline = time.monotonic() + SEEN_WITHIN_S
    while not (answer := prometheus.query(query)):
        assert time.monotonic() < deadline, f"{query} has no answer: {prometheus.last_look()}"
        time.sleep(0.2)
    return answer


def test_the_server_is_scraped_with_the_token_of_a_file(prometheus: Prometheus) -> None:
    assert [series["metric"]["job"] for series in seen(prometheus, "up == 1")] == ["crucible"]


@pytest.mark.parametrize("query", QUERIES)
def test_every_panel_has_an_answer(prometheus: Prometheus, query: str) -> None:
    assert seen(prometheus, query)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.get("alert") or rule.get("record")))
def test_every_rule_is_understood_and_evaluated(prometheus: Prometheus, rule: dict[str, Any]) -> None:
    prometheus.query(rule["expr"])
    deadline = time.monotonic() + SEEN_WITHIN_S
    while health_of(prometheus, rule) == "unknown":  # its turn has not come
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert health_of(prometheus, rule) == "ok"


def health_of(prometheus: Prometheus, rule: dict[str, Any]) -> str:
    known = {one["name"]: one for one in prometheus.rules()}
    return str(known[rule.get("alert") or rule["record"]]["health"])


@pytest.mark.parametrize(
    "happened",
    [
        'sum(crucible_jobs_ended_total{state="completed"}) >= 2',
        'sum(crucible_jobs_ended_total{state="failed"}) >= 1',
        'max(crucible_jobs{state="completed"}) >= 2',
        'sum(crucible_attempts_ended_total{outcome="lost"}) >= 1',
        "sum(crucible_checkpoints_total) >= 1",
        "sum(crucible_recovery_seconds_count) >= 1",
        'min(crucible_budget_left_ratio{scope="server", period="month"}) == 1',
        "max(abs(crucible_ledger_imbalance_dollars)) == 0",
    ],
)
def test_what_happened_is_seen(prometheus: Prometheus, happened: str) -> None:
    assert seen(prometheus, happened)


def test_nobody_is_alarmed(prometheus: Prometheus) -> None:
    """A look that was missed may be noted, and is forgotten with the next."""
    deadline = time.monotonic() + SEEN_WITHIN_S
    while alarms := prometheus.query("ALERTS"):
        assert time.monotonic() < deadline, alarms
        time.sleep(0.2)
    assert seen(prometheus, "up == 1")


# --- without a server ---------------------------------------------------------------------------------------


def named(expression: str) -> set[str]:
    """Metrics and recorded names that an expression asks for."""
    return set(re.findall(r"\b(?:crucible[_:][\w:]+)", re.sub(r'"[^"]*"', "", expression)))


def known_names() -> set[str]:
    plain = {metric.name for metric in metrics.ALL if metric.kind is not Kind.HISTOGRAM}
    parts = {f"{m.name}{suffix}" for m in metrics.ALL if m.kind is Kind.HISTOGRAM for suffix in SUFFIXES}
    return plain | parts | {rule["record"] for rule in RULES if "record" in rule}


def expressions() -> list[str]:
    return [rule["expr"] for rule in RULES] + [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_rules_and_dashboard_ask_only_for_what_there_is() -> None:
    assert {name for expression in expressions() for name in named(expression)} <= known_names()


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {name for expression in expressions() for name in named(expression)}
    unseen = [metric.name for metric in metrics.ALL if not any(name.startswith(metric.name) for name in shown)]
    assert unseen == []


def test_sums_over_the_database_are_never_added_up_over_servers() -> None:
    """Every one is taken by `max` or `min` over servers before anything else is done with it."""
    shared = [metric.name for metric in metrics.ALL if metric.source is Source.DATABASE]
    for expression in expressions():
        for name in shared:
            for found in re.finditer(rf"\b{name}\b(?!_)", expression):
                assert re.search(r"(max|min)( by \([\w, ]+\))? ?\((abs\(|delta\()?$", expression[: found.start()])


def test_the_dashboard_is_whole() -> None:
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "Money", "Queue and scheduling", "Providers", "Jobs and recovery", "API and engine"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)) and all(x < 24 for x, _ in cells)


def test_every_alert_says_what_to_do() -> None:
    alerts = [rule for rule in RULES if "alert" in rule]
    assert all(rule["annotations"]["summary"] and rule["annotations"]["action"] for rule in alerts)
    assert {rule["labels"]["severity"] for rule in alerts} <= {"critical", "warning", "info"}


def test_promtool_accepts_rules_and_configuration(tmp_path: Path) -> None:
    promtool("check", "rules", str(DEPLOY / "rules.yml"), str(DEPLOY / "alerts.yml"))
    configured = Prometheus(tmp_path / "p", "127.0.0.1:1", "token").config
    promtool("check", "config", str(configured))


def test_alerts_fire_when_they_should_and_only_then() -> None:
    promtool("test", "rules", str(DEPLOY / "alerts_test.yml"))


def promtool(*argv: str) -> None:
    ran = subprocess.run([tool("promtool"), *argv], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
