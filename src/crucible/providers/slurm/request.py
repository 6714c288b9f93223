"""An order as a job of Slurm: everything of it but the script. Pure, so that a repeated request is the same request."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Order
from crucible.model.offer import Offer
from crucible.providers.slurm.settings import ClusterSettings

NAME = "crucible-"
MACHINE_ID = re.compile(r"slurm-[0-9a-f]{20}")
_COMMENT = re.compile(r"crucible (?P<deployment>\S+) (?P<order>\S+) (?P<kind>[ag])(?P<count>\d{1,6})(?P<marks>( .*)?)")
_MARK = re.compile(r" (?P<index>\d{1,6})(?:\+(?P<started>\d{1,12})|-(?P<ended>\d{1,12})=(?P<code>-?\d{1,6}))(?= |$)")

_SUBMITTED = re.compile(r"(?:^| )--comment=(?P<comment>crucible \S+ \S+ [ag]\d{1,6})(?= |$)")


@dataclass(frozen=True, slots=True)
class Ended:
    at: int
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The comment of a job: whose it is, and what its first program says about its machines as they come and go."""

    deployment: str
    order_id: OrderId
    is_array: bool
    count: int
    started: frozenset[int] = frozenset()
    ended: dict[int, Ended]

    @property
    def living(self) -> tuple[int, ...]:
        return tuple(index for index in range(self.count) if index not in self.ended)


def batch_request(
    order: Order, offer: Offer, settings: ClusterSettings, deployment: str, folder: str
) -> dict[str, Any]:
    """`folder` is the deployment's, on the cluster."""
    return {
        "name": NAME + order.id,
        "comment": comment(deployment, order, settings.independent),
        "is_array": settings.independent,
        "count": order.count,
        "partition": offer.zone,
        "gres": gres(offer) if offer.gpus else None,
        "cpus": offer.cpus,
        "memory_mib": int(offer.memory_gib * 1024),
        "time_limit_s": int(settings.time_limit.total_seconds()) if settings.time_limit else None,
        "account": settings.account,
        "qos": settings.qos,
        "options": list(settings.options),
        "folder": folder,
        "output": f"{folder}/orders/{order.id}/job.out"
        if not settings.url
        else f"{settings.workdir}/{NAME}{order.id}.out",
    }


def comment(deployment: str, order: Order, is_array: bool) -> str:
    return f"crucible {deployment} {order.id} {'a' if is_array else 'g'}{order.count}"


def read_comment(text: str) -> Token | None:
    """None if we did not write it."""
    found = _COMMENT.fullmatch(text.strip())
    if found is None:
        return None
    marks = list(_MARK.finditer(found["marks"]))
    return Token(
        deployment=found["deployment"],
        order_id=OrderId(found["order"]),
        is_array=found["kind"] == "a",
        count=int(found["count"]),
        started=frozenset(int(mark["index"]) for mark in marks if mark["started"]),
        ended={int(mark["index"]): Ended(int(mark["ended"]), int(mark["code"])) for mark in marks if mark["ended"]},
    )


def submitted_comment(command: str) -> str | None:
    """Of the command line that submitted a job: the comment that it began with."""
    found = _SUBMITTED.search(command)
    return found["comment"] if found else None


def gres(offer: Offer) -> str:
    """`slurm/<cluster>/<partition>/<type>/<n>` says which, as Slurm spells it."""
    kind = offer.id.split("/")[-2]
    return f"gpu:{offer.gpus}" if kind == "gpu" else f"gpu:{kind}:{offer.gpus}"


def machine_id(deployment: str, order_id: OrderId, index: int) -> MachineId:
    digest = hashlib.sha256(f"{deployment}/{order_id}/{index}".encode()).hexdigest()
    return MachineId(f"slurm-{digest[:20]}")
