"""Places in the network that people may name and this server then asks, from inside its own network and in its own
name. Here is what a place is and which are out of bounds; who may list exceptions, and what for, is decided by those
who ask."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from crucible.model.errors import InvalidRequest

PORTS = {"http": 80, "https": 443}

# Names as the DNS has them. The last label is no number: what looks like one would be read as an address by some.
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\.?")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Of IPv6 only this much is given out; and what is inside of it carries an IPv4 address to somewhere else.
_GIVEN_OUT = ipaddress.ip_network("2000::/3")
_CARRIERS = tuple(map(ipaddress.ip_network, ("2001::/23", "2002::/16", "3fff::/20", "64:ff9b::/96", "64:ff9b:1::/48")))
# Of protocols, and metadata of a cloud; once relays of 6to4.
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24")))


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{name}" if self.port == PORTS[self.scheme] else f"{self.scheme}://{name}:{self.port}"


def origin_of(url: str) -> Origin:
    """Raises InvalidRequest."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidRequest(f"{url} is no endpoint; write https://host:port") from None
    if parts.scheme not in PORTS or not parts.hostname or _has_more(parts):
        raise InvalidRequest(f"{parts.scheme}://{parts.hostname} is no endpoint; write https://host:port")
    return Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme])


def _has_more(parts: SplitResult) -> bool:
    """Names, passwords and queries do not belong into an endpoint; Azure's emulator has its account in the path."""
    return bool(parts.username or parts.password or parts.query or parts.fragment)


def is_inside(host: str) -> bool:
    """This machine, a private network, or nothing that a host is properly called by."""
    address = address_of(host)
    if address is not None:
        return not is_public(address)
    return not is_name(host) or is_local_name(host)


def is_name(host: str) -> bool:
    return _NAME.fullmatch(host) is not None


def is_local_name(host: str) -> bool:
    """What else a name leads to is known when it has been looked up."""
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def address_of(host: str) -> Address | None:
    """As addresses are properly written, and no other way: 127.1, 0x7f000001 and 017700000001 are none."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Given out to somebody on the internet, and to one of them."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in one for one in _SPECIAL)
    return address in _GIVEN_OUT and address.scope_id is None and not any(address in one for one in _CARRIERS)
