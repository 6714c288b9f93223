"""Who this agent is: a random id made before it first speaks, and the node's key once a server has given one.

Both are on disk before they are used, so asking again after a lost reply or a restart is the same agent."""

from __future__ import annotations

import os
import time

from . import disk, protocol
from .link import Backoff, Link, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .words import Words

# No server will say anything else to the same token, except that it was busy with the same lease.
_FINAL = (401, 403, 404, 409, 410)
_ASK_AGAIN = "stale_version"
# A machine that nobody ever answers ends after this time: it may cost money.
ORPHAN_AFTER_S = 3600.0


class Refused(Exception):
    """The server does not want this agent."""


class Identity:
    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "identity.json")
        self._data: Dict[str, Any] = disk.read_json(self._path) or {}
        if "agent_id" not in self._data:
            self._update(agent_id=os.urandom(16).hex(), rendezvous_port=0)

    @property
    def is_enrolled(self) -> bool:
        return "node_key" in self._data

    @property
    def node_key(self) -> str:
        return str(self._data["node_key"])

    @property
    def rendezvous_port(self) -> int:
        return int(self._data["rendezvous_port"])

    @property
    def report_every_s(self) -> float:
        return float(self._data["report_every_s"])

    @property
    def orphan_after_s(self) -> float:
        return float(self._data.get("orphan_after_s", ORPHAN_AFTER_S))

    @property
    def servers(self) -> List[str]:
        return list(self._data.get("servers", []))

    def keep_port(self, port: int) -> None:
        if port != self.rendezvous_port:
            self._update(rendezvous_port=port)

    def keep_servers(self, servers: List[str]) -> None:
        """For the next start; a full disk only makes it begin with older ones."""
        if servers and servers != self.servers:
            try:
                self._update(servers=servers)
            except OSError:
                pass

    def message(self, boot: Dict[str, Any], boot_id: str, version: str, facts: Dict[str, Any]) -> bytes:
        return protocol.enrol(boot, self._data, boot_id, version, facts)

    def enrol(self, link: Link, message: bytes, words: Words, within_s: float = ORPHAN_AFTER_S) -> None:
        """Asks until a server answers. Raises Refused, also if none does in time."""
        backoff = Backoff()
        give_up_at = time.monotonic() + within_s
        while not self._ask(link, message, words):
            if time.monotonic() >= give_up_at:
                raise Refused("no server answered the enrolment for %g s" % within_s)
            time.sleep(backoff.next_s())

    def _ask(self, link: Link, message: bytes, words: Words) -> bool:
        try:
            answer = link.call("POST", "/agent/v1/enrol", message)
            if answer.status in _FINAL and answer.code != _ASK_AGAIN:
                raise Refused("the server refused the enrolment (%s)" % answer.complaint())
            if answer.is_ok:
                self._keep(protocol.Enrolled(answer.data))
                return True
            words.say_once("enrolment", "%s; trying again" % answer.complaint())
        except (Unanswered, protocol.Malformed) as error:
            words.say_once("enrolment", "%s; trying again" % error)
        return False

    def _keep(self, enrolled: protocol.Enrolled) -> None:
        self._update(
            node_id=enrolled.node_id,
            node_key=enrolled.node_key,
            report_every_s=enrolled.report_every_s,
            orphan_after_s=enrolled.orphan_after_s,
            servers=enrolled.servers,
        )

    def _update(self, **changes: Any) -> None:
        self._data.update(changes)
        disk.write_json(self._path, self._data, durable=True)
