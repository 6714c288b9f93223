"""Which job is meant: a full id, a name (the newest job of that name), or the first characters of an id."""

import re

from crucible.client.api import Client
from crucible.client.errors import AmbiguousJob
from crucible.client.shapes import JobBrief
from crucible.model.errors import NotFound

# Prefixes are looked for among so many of the newest jobs; who means an older one gives the full id.
LOOKED_THROUGH = 2000
FULL_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
PREFIX = re.compile(r"[0-9a-f-]{1,36}", re.IGNORECASE)
# Candidates named in the message about an ambiguous prefix.
SHOWN = 5


def find_job(client: Client, text: str) -> str:
    """The id of the job that `text` names. Raises NotFound or AmbiguousJob."""
    if FULL_ID.fullmatch(text):
        return text.lower()
    named = client.jobs(name=text, steps=True, limit=1)["items"]
    if named and named[0]["name"] == text:
        return named[0]["id"]
    if not PREFIX.fullmatch(text):
        raise NotFound(f"there is no job named {text!r}")
    return choose(text, _with_prefix(client, text.lower()))


def choose(text: str, found: list[JobBrief]) -> str:
    if not found:
        raise NotFound(f"there is no job named {text!r} and none whose id begins so")
    if len(found) > 1:
        names = ", ".join(f"{job['id']} ({job['name']})" for job in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise AmbiguousJob(f"{len(found)} jobs begin with {text!r}: {names}{more}")
    return found[0]["id"]


def _with_prefix(client: Client, prefix: str) -> list[JobBrief]:
    return [job for job in client.all_jobs(steps=True, limit=LOOKED_THROUGH) if job["id"].startswith(prefix)]
