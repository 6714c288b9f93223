"""The secrets of a rank: asked for just before it starts, kept in memory until its supervisor has them, and never
written where they would outlive the rank."""

from __future__ import annotations

import json
import os

from . import private, protocol
from .container import Unusable
from .fetch import Cancelled
from .link import Backoff, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any, Dict, List, Optional

    from .link import Link

# The variable that names the folder with the files.
FOLDER = "CRUCIBLE_SECRETS"


class Secrets:
    """`env` are variables; `public` name places of files and hold no secret; `values` must not be in any log."""

    def __init__(self) -> None:
        self.env: Dict[str, str] = {}
        self.public: Dict[str, str] = {}
        self.values: List[bytes] = []
        self.folder: Optional[str] = None

    def handed(self) -> bytes:
        """For the supervisor; nothing, if there is nothing."""
        if not self.values:
            return b""
        return json.dumps({"env": self.env, "values": [value.decode("latin-1") for value in self.values]}).encode()


def bring(rank: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> Secrets:
    """Asks until somebody answers. Raises Unusable, Cancelled, OSError."""
    found = Secrets()
    if not launch["secrets"]:
        return found
    values = _fetch(launch, link, cancelled)
    files: Dict[str, bytes] = {}
    for use in launch["secrets"]:
        name = use["name"]
        if name not in values:
            raise Unusable("the server gave no secret %s" % name)
        if use["env"] is not None and use["env"] in launch["env"]:
            raise Unusable("the secret %s cannot be the variable %s, which Crucible sets" % (name, use["env"]))
        found.values.append(values[name])
        if use["file"] is not None:
            files[use["file"]] = values[name]
        elif use["env"] is not None:
            found.env[use["env"]] = values[name].decode("utf-8", "surrogateescape")
    found.values.append(_token(rank))
    if files:
        private.remove(rank)  # of an agent that died here
        found.folder = found.public[FOLDER] = private.make(rank, files)
    for use in launch["secrets"]:
        if use["file"] is not None and use["env"] is not None and found.folder is not None:
            found.public[use["env"]] = os.path.join(found.folder, use["file"])
    return found


def _token(rank: str) -> bytes:
    """Of the attempt: a program that has secrets to print may print it too."""
    with open(os.path.join(rank, "token"), "rb") as file:
        return file.read().strip()


def _fetch(launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> Dict[str, bytes]:
    backoff = Backoff()
    while True:
        if cancelled.is_set():
            raise Cancelled
        try:
            answer = link.call("POST", "/agent/v1/secrets", protocol.secrets_request(launch))
        except Unanswered:
            cancelled.wait(backoff.next_s())
            continue
        if answer.is_ok:
            return protocol.secrets_from(answer.data)
        if answer.status not in (401, 429):
            raise Unusable("the secrets of the job cannot be had: %s" % answer.complaint())
        cancelled.wait(backoff.next_s())
