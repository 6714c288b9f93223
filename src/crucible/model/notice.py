"""Something that people should hear of. Whoever finds it writes it down, in the transaction of whatever it is about
where there is one; who is told, where and when, follows from the rules of alerts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.ids import JobId, UserId


class NoticeKind(StrEnum):
    BUDGET = "budget"  # a share of it is spent, or all of it
    FAILURE = "failure"  # a job failed
    STALL = "stall"  # no progress, a loss that is no number, GPUs that do nothing
    DEADLINE = "deadline"  # likely to be missed
    PRICE = "price"  # something that somebody waits for became cheaper
    PROVIDER = "provider"  # one does not answer, or refuses us
    LEAK = "leak"  # a machine was found that nobody owns


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


def notice_key(subject: str, occurrence: str) -> str:
    """`core/alerts.py: subject_of` takes them apart again, so the last part has no colon, as times have."""
    return f"{subject}:{occurrence.replace(':', '-')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`key` says what it is about and which occurrence (`notice_key`): written twice, it is one notice. Team, project,
    user and job are those it concerns; None where it concerns the whole server."""

    key: str
    at: datetime
    kind: NoticeKind
    severity: Severity
    title: str  # one line
    text: str  # what happened, and what to do about it
    team: str | None = None
    project: str | None = None
    user_id: UserId | None = None
    job_id: JobId | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
