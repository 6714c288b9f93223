"""The tables of keeping and forgetting: how long what is kept, what is being removed, what must stay, and who is being
forgotten."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Table, text

from crucible.model.retention import Kept
from crucible.store.columns import big, flag, key, known, metadata, moment, whole, word

# `horizon` is what the triggers of append-only tables ask for: only older rows of a kind can be removed at all.
retention = Table(
    "retention",
    metadata,
    key("what"),
    whole("days", null=True),
    moment("horizon", null=True),
    moment("ran_at", null=True),
    Column("removed", big("removed").type, nullable=False, server_default=text("0")),
    word("anchor", null=True),  # what the first line that is left seals
    known("what", Kept),
    CheckConstraint("days >= 0", name="days"),
)

# Decided, and not carried out to its end yet.
removals = Table(
    "removals",
    metadata,
    key("job_id", ForeignKey("jobs.id")),
    key("what"),
    moment("at"),
    known("what", Kept),
)

kept_jobs = Table("kept_jobs", metadata, key("job_id", ForeignKey("jobs.id")), word("user_id"), moment("at"))
Index("ix_kept_jobs_of_user", kept_jobs.c.user_id)

# `job_id` was given something that `source` has left.
job_sources = Table("job_sources", metadata, key("source", ForeignKey("jobs.id")), key("job_id", ForeignKey("jobs.id")))
Index("ix_job_sources_of_job", job_sources.c.job_id)

# People who are being forgotten. The history of their jobs may go, however young it is.
erasures = Table("erasures", metadata, key("user_id"), word("pseudonym"), moment("at"), flag("keeps_jobs"))
Index("ix_erasures_pseudonym", erasures.c.pseudonym)
