"""Which network interface carries the traffic of a gang: the one with the node's address, else the one that leads to
the master. Never a name that somebody assumed."""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional

_SIOCGIFADDR = 0x8915
_ANY_PORT = 9


def variables(address: str, master: Optional[str]) -> Dict[str, str]:
    """For gloo, NCCL and TensorPipe; nothing where no interface can be told."""
    name = interface_of(address) or (interface_towards(master) if master else None)
    if name is None:
        return {}
    # NCCL takes a name for the beginning of one: eth1 would mean eth10 too.
    return {"GLOO_SOCKET_IFNAME": name, "TP_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": "=" + name}


def interface_of(address: str) -> Optional[str]:
    """The interface that has this address, as a number or a name."""
    try:
        wanted = socket.gethostbyname(address)
        names = [name for _, name in socket.if_nameindex()]
    except OSError:
        return None
    if wanted.startswith("127."):
        # All of that net is here, whichever of its addresses was given.
        wanted = "127.0.0.1"
    return next((name for name in names if _address_of(name) == wanted), None)


def interface_towards(master: str) -> Optional[str]:
    """The interface that packets to `master` leave by. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((master, _ANY_PORT))
            own: str = probe.getsockname()[0]
    except OSError:
        return None
    return interface_of(own)


def _address_of(name: str) -> Optional[str]:
    """Its IPv4 address; None where it has none, and where nobody can say (not Linux)."""
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)[20:24])
    except (ImportError, OSError):
        return None
