"""Horovod with a fixed number of workers: this node's, and on the first node the rendezvous of all."""

from __future__ import annotations

import os
import socket
import threading
import time

from .children import Children, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from . import Options

# Nodes prepare apart: the first one may unpack an image for minutes.
JOIN_S = 1800.0
_TRY_EVERY_S = 0.2
# Workers elsewhere say goodbye to the rendezvous a moment after ours have ended.
_LINGER_S = 2.0


def run(options: Options) -> int:
    master, node, slots = options.address("master"), options.number("node"), options.numbers("slots")
    children = Children()
    if node == 0:
        _serve(master[1], slots)
    elif not _is_reached(master, children):
        say("no rendezvous at %s:%d within %d s" % (master[0], master[1], JOIN_S))
        return 1
    for local_rank in range(slots[node]):
        place = slot(slots, node, local_rank)
        if not children.is_stopping:
            children.start(place["HOROVOD_RANK"], options.program, dict(place, **meeting(master)))
    code = children.wait_for_all()
    if node == 0 and code == 0:
        time.sleep(_LINGER_S)
    return code


def slot(slots: List[int], node: int, local_rank: int) -> Dict[str, str]:
    """Which worker this is, in Horovod's words and in everybody's. Across: the workers with this local rank."""
    across = [each for each, count in enumerate(slots) if count > local_rank]
    rank, size = sum(slots[:node]) + local_rank, sum(slots)
    return worker(
        {
            "HOROVOD_HOSTNAME": "node-%d" % node,
            "HOROVOD_RANK": str(rank),
            "HOROVOD_SIZE": str(size),
            "HOROVOD_LOCAL_RANK": str(local_rank),
            "HOROVOD_LOCAL_SIZE": str(slots[node]),
            "HOROVOD_CROSS_RANK": str(across.index(node)),
            "HOROVOD_CROSS_SIZE": str(len(across)),
        }
    )


def worker(place: Dict[str, str]) -> Dict[str, str]:
    """Its place with the names that other programs read."""
    names = {
        "RANK": "HOROVOD_RANK",
        "WORLD_SIZE": "HOROVOD_SIZE",
        "LOCAL_RANK": "HOROVOD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "HOROVOD_LOCAL_SIZE",
    }
    return dict(place, **{name: place[given] for name, given in names.items() if given in place})


def meeting(master: Tuple[str, int]) -> Dict[str, str]:
    """Where workers find each other, and over which network."""
    env = {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": master[0],
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(master[1]),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    interface = os.environ.get("HOROVOD_GLOO_IFACE") or os.environ.get("GLOO_SOCKET_IFNAME")
    return dict(env, HOROVOD_GLOO_IFACE=interface) if interface else env


def connect(master: Tuple[str, int], children: Children) -> Optional[socket.socket]:
    """As soon as anybody listens there; None if nobody does in time."""
    give_up_at = time.monotonic() + JOIN_S
    while time.monotonic() < give_up_at and not children.is_stopping:
        try:
            return socket.create_connection(master, timeout=5.0)
        except OSError:
            time.sleep(_TRY_EVERY_S)
    return None


def _is_reached(master: Tuple[str, int], children: Children) -> bool:
    """Waits for the rendezvous: Horovod itself would give up after a second."""
    sock = connect(master, children)
    if sock is not None:
        sock.close()
    return sock is not None


def _serve(port: int, slots: List[int]) -> Any:
    from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer(("", port), RendezvousHandler, 0)
    hosts = [HostInfo("node-%d" % node, count) for node, count in enumerate(slots)]
    server.init(get_host_assignments(hosts, sum(slots)))
    threading.Thread(target=server.serve_forever, daemon=True, name="rendezvous").start()
    return server
