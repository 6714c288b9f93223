"""The tables of people: who there is, what they belong to, what opens the door for them, what they changed, and what
they should hear of."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text, UniqueConstraint

from crucible.model.account import Role, UserKind
from crucible.model.notice import NoticeKind, Severity
from crucible.store.columns import Serial, key, known, metadata, moment, partial_index, word

users = Table(
    "users",
    metadata,
    key(),
    word("name"),
    word("role"),
    moment("created_at"),
    Column("kind", Text, nullable=False, server_default="person"),
    moment("disabled_at", null=True),
    known("role", Role),
    known("kind", UserKind),
    UniqueConstraint("name"),
)

tokens = Table(
    "tokens",
    metadata,
    key(),
    word("user_id", ForeignKey("users.id")),
    word("name"),
    word("digest"),
    moment("created_at"),
    moment("expires_at", null=True),
    moment("revoked_at", null=True),
    Column("grants", Text, nullable=False, server_default="[]"),
    UniqueConstraint("digest"),
)
Index("ix_tokens_of_user", tokens.c.user_id)

# Who signs in elsewhere, and who they are here.
identities = Table(
    "identities",
    metadata,
    key("issuer"),
    key("subject"),
    word("user_id", ForeignKey("users.id")),
    moment("created_at"),
)
Index("ix_identities_of_user", identities.c.user_id)

teams = Table("teams", metadata, key("name"), moment("created_at"), word("created_by"))

memberships = Table(
    "memberships",
    metadata,
    key("team", ForeignKey("teams.name")),
    key("user_id", ForeignKey("users.id")),
    word("role"),
    moment("created_at"),
    known("role", Role),
)
Index("ix_memberships_of_user", memberships.c.user_id)

projects = Table(
    "projects",
    metadata,
    key("name"),
    word("team", ForeignKey("teams.name")),
    moment("created_at"),
    word("created_by"),
)
Index("ix_projects_of_team", projects.c.team)

# Append-only, and each line seals all before it: `digest` is sha256 of the last line's digest and of this line.
audit = Table(
    "audit",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    moment("at"),
    word("user_id"),
    word("token_id"),
    word("action"),
    word("subject"),
    word("team", null=True),
    word("details"),
    word("digest"),
)
Index("ix_audit_of_team", audit.c.team, audit.c.seq)
Index("ix_audit_of_user", audit.c.user_id, audit.c.seq)

# What people should hear of. Written twice it is one; who was told is in a table of its own.
notices = Table(
    "notices",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    word("key"),
    moment("at"),
    word("kind"),
    word("severity"),
    word("title"),
    word("text"),
    word("team", null=True),
    word("project", null=True),
    word("user_id", null=True),
    word("job_id", null=True),
    word("details"),
    moment("fanned_at", null=True),  # when it was looked up who is to be told
    known("kind", NoticeKind),
    known("severity", Severity),
    UniqueConstraint("key"),
)
Index("ix_notices_at", notices.c.at)
partial_index("ix_notices_fresh", notices.c.seq, where="fanned_at IS NULL")
Index("ix_notices_of_user", notices.c.user_id)
