"""Alerts as they look: tables of the command line at the widths people have; a mail, a chat message and a webhook's
body. To write the files anew after a change of words, run with CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views.alerts import channel_table, history, rule_table
from crucible.core.messages import compose
from crucible.core.notices import failure, lateness, leak
from crucible.model.alert import Delivery
from crucible.model.ids import AlertChannelId, AlertRuleId, DeliveryId, MachineId, OrderId
from crucible.model.job import JobStatus
from crucible.model.lease import Machine, MachineState
from crucible.model.notice import Severity
from crucible.notify import slack, webhook
from crucible.notify.mail import html, mail
from crucible.testing.specimens import a_job

HERE = Path(__file__).parent / "alerts"
NOW = datetime(2026, 1, 17, 12, 5, tzinfo=UTC)

CHANNELS: Any = [
    {"id": "channel-1", "name": "me", "user": "ann", "team": None, "kind": "email", "to": "ann@example.org"},
    {
        "id": "channel-2",
        "name": "vision-slack",
        "user": "bob",
        "team": "vision",
        "kind": "slack",
        "to": "https://hooks.slack.com",
    },
]
RULE: Any = {
    "id": "rule-1",
    "name": "failures",
    "user": "ann",
    "team": None,
    "kinds": ["failure", "deadline"],
    "least": "info",
    "scope": {"kind": "server", "name": ""},
    "price": None,
    "channels": ["channel-1", "channel-2"],
    "quiet": None,
    "window_s": 300,
    "enabled": True,
    "muted_until": None,
}
RULES: Any = [
    RULE,
    RULE
    | {
        "name": "night",
        "team": "vision",
        "kinds": [],
        "least": "warning",
        "scope": {"kind": "job", "name": "train-*"},
        "quiet": {"start": "22:00", "end": "07:00", "time_zone": "Europe/Berlin", "critical_passes": True},
        "channels": ["channel-2"],
        "muted_until": (NOW + timedelta(hours=2)).isoformat(),
    },
    RULE
    | {
        "name": "cheap",
        "kinds": ["price"],
        "price": {"gpu": "H100", "provider": "aws", "market": "spot", "below_usd": 2.0, "drop": 0.2},
        "channels": ["channel-9"],
        "enabled": False,
    },
]
NOTICE: Any = {"seq": 12, "at": NOW.isoformat(), "kind": "failure", "severity": "warning", "title": "resnet50 failed"}
NOTICES: Any = [
    NOTICE,
    NOTICE | {"seq": 11, "kind": "leak", "severity": "critical", "title": "a machine that nobody owns in aws/us-1"},
    NOTICE | {"seq": 10, "kind": "stall", "severity": "info", "title": "odd \x1b[31m name stalls"},
]
TOLD: Any = {
    12: [
        {"channel": "me", "state": "sent", "tries": 1, "error": None},
        {"channel": "vision-slack", "state": "waiting", "tries": 3, "error": "https://hooks.slack.com answered 500"},
    ],
    11: [{"channel": "me", "state": "dead", "tries": 1, "error": "the mail server refuses ann@example.org"}],
    10: [{"channel": "me", "state": "waiting", "tries": 0, "error": None}],
}

JOB = a_job(status=JobStatus.FAILED, finished_at=NOW, reason="exit code 3: <out of memory> & more", deadline_at=None)
FAILED = failure(JOB)[0]
LEAKED = leak(
    "aws",
    "us-east-1",
    Machine(id=MachineId("i-1"), order_id=OrderId("order-1"), index=0, state=MachineState.RUNNING),
    NOW,
)
MISSED = lateness(a_job(status=JobStatus.RUNNING, deadline_at=NOW - timedelta(hours=1)), None, NOW)
assert MISSED is not None
DELIVERY = Delivery(
    id=DeliveryId("channel-1.12"),
    channel_id=AlertChannelId("channel-1"),
    rule_id=AlertRuleId("rule-1"),
    subject="failure:ann:x",
    severity=Severity.CRITICAL,
    created_at=NOW,
    not_before=NOW,
)
ONE = compose(replace(DELIVERY, severity=Severity.WARNING), [FAILED])
MANY = compose(DELIVERY, [FAILED, LEAKED, MISSED, *[replace(FAILED, title=f"job {n} failed") for n in range(30)]])


def mail_lines() -> list[str]:
    made = mail(ONE, "crucible@example.org", ["ann@example.org"], "dep1")
    head = [f"{name}: {value}" for name, value in made.items() if not name.startswith(("Content", "MIME"))]
    body = made.get_body(("plain",))
    assert body is not None
    return [*head, "", *body.get_content().splitlines(), "", *html(ONE).splitlines()]


DRAWN: dict[str, Callable[[], list[str]]] = {
    "rules-80": lambda: rule_table(RULES, CHANNELS, NOW, 80),
    "rules-140": lambda: rule_table(RULES, CHANNELS, NOW, 140),
    "channels-80": lambda: channel_table(CHANNELS, 80),
    "history-80": lambda: history(NOTICES, TOLD, 80, UTC),
    "history-140": lambda: history(NOTICES, TOLD, 140, UTC),
    "mail": mail_lines,
    "slack": lambda: json.dumps(slack.payload(ONE), indent=1, ensure_ascii=False).splitlines(),
    "slack-many": lambda: [block.get("text", {}).get("text", "") for block in slack.payload(MANY)["blocks"]],
    "webhook": lambda: json.dumps(webhook.payload(ONE), indent=1, ensure_ascii=False).splitlines(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_alerts_look_as_they_did(name: str) -> None:
    lines = DRAWN[name]()
    assert not name.endswith(("-80", "-140")) or all(len(line) <= int(name.rpartition("-")[2]) for line in lines)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        HERE.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_file_belongs_to_something_that_is_drawn() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(DRAWN)
