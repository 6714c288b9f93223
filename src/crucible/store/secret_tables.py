"""The tables of secrets. Nothing in them opens without a key that lies elsewhere."""

from sqlalchemy import Index, Table

from crucible.model.secret import OwnerKind
from crucible.store.columns import key, known, metadata, moment, whole, word

secrets = Table(
    "secrets",
    metadata,
    key("owner_kind"),
    key("owner"),
    key("name"),
    whole("version"),
    word("key_id"),
    word("wrapped"),
    word("sealed"),
    word("set_by"),
    moment("set_at"),
    moment("used_at", null=True),
    known("owner_kind", OwnerKind),
)
Index("ix_secrets_of_key", secrets.c.key_id)

# Which key seals: one row at most.
secret_keys = Table("secret_keys", metadata, key("what"), word("key_id"), moment("since"))
