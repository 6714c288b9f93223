"""The tables of how jobs and providers are."""

from sqlalchemy import ForeignKey, Index, PrimaryKeyConstraint, Table

from crucible.model.health import FindingCode, Health
from crucible.model.notice import Severity
from crucible.store.columns import big, key, known, metadata, moment, partial_index, whole, word

# One row of a job that has run; not part of its state. `memory` is what the next look must know.
job_health = Table(
    "job_health",
    metadata,
    key("job_id", ForeignKey("jobs.id")),
    word("status"),
    moment("looked_at"),
    word("why", null=True),
    word("memory"),
    known("status", Health),
)

# Of each code at most one is open.
findings = Table(
    "findings",
    metadata,
    word("job_id", ForeignKey("jobs.id")),
    word("code"),
    moment("opened_at"),
    word("severity"),
    word("words"),
    word("advice"),
    moment("closed_at", null=True),
    word("details"),
    known("code", FindingCode),
    known("severity", Severity),
    PrimaryKeyConstraint("job_id", "code", "opened_at"),
)
partial_index("ix_findings_open", findings.c.job_id, findings.c.code, where="closed_at IS NULL", unique=True)
Index("ix_findings_opened", findings.c.opened_at)

place_health = Table(
    "place_health",
    metadata,
    key("provider"),
    key("region"),
    moment("looked_at"),
    moment("last_good_at", null=True),
    moment("failing_since", null=True),
    word("error", null=True),
    big("latency_ms", null=True),
    whole("machines"),
    big("removed"),
    moment("noticed_at", null=True),
)
