"""The JSON Schema of a spec, for editors: generated from the table that validates. It says what a schema can say; the
rules between fields and a few exact checks (does a pattern compile?) only `load` knows."""

from crucible.spec.fields import SPEC
from crucible.spec.kinds import Schema


def schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crucible:spec:v1",
        "title": "Crucible job",
        "description": "A job for Crucible: what to run, what it needs, and what it may cost.",
        **SPEC.schema(),
    }
