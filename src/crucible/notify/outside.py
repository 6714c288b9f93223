"""Where people may let this server send to. An address that somebody wrote is looked up once, every answer is checked,
and the connection goes to one of those very answers: a name that means something else a moment later changes nothing.
What the operator lists is reached wherever it is."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import SplitResult, urlsplit

from crucible.endpoints import PORTS, Origin, address_of, is_inside, is_name, is_public, origin_of
from crucible.model.errors import InvalidRequest, SendFailed, SendRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

# Where webhooks are received. Other ports may be mail servers or databases, which take a request for a command.
OPEN_PORTS = (443, 8443)
MAX_URL = 2000
_PLAIN = re.compile(r"[!-\[\]^-~]+")  # printable ASCII without a space or a backslash


# A name whose servers never answer keeps a thread for half a minute: nobody else's thread.
_LOOKUPS = ThreadPoolExecutor(8, "lookup")


async def look_up(host: str, port: int) -> Sequence[str]:
    """By the system's resolver; OSError if it knows nothing."""
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, ask)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Outside:
    def __init__(self, listed: Iterable[str] = (), resolve: Resolve = look_up) -> None:
        """Raises InvalidRequest."""
        self._listed = frozenset(origin_of(url) for url in listed)
        self._resolve = resolve

    def check(self, url: str) -> Origin:
        """What can be said without asking anybody. Raises InvalidRequest."""
        parts = split(url)
        origin = Origin(parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS[parts.scheme])
        if origin in self._listed:
            return origin
        if address_of(origin.host) is None and not is_name(origin.host):
            raise InvalidRequest(f"{origin.host} is no name of a host", field="address")
        if origin.scheme != "https":
            raise _out_of_bounds(origin, "is plain http")
        if origin.port not in OPEN_PORTS:
            raise _out_of_bounds(origin, f"is not at port {' or '.join(map(str, OPEN_PORTS))}")
        if is_inside(origin.host):
            raise _out_of_bounds(origin, "is on this machine or in a private network")
        return origin

    def lists(self, origin: Origin) -> bool:
        return origin in self._listed

    async def addresses(self, origin: Origin) -> Sequence[str]:
        """Those to connect to, all of them checked. Raises SendFailed, SendRefused."""
        try:
            found = await self._resolve(origin.host, origin.port)
        except (OSError, UnicodeError) as error:
            raise SendFailed(f"{origin.host} is not known: {error}") from error
        if not found:
            raise SendFailed(f"{origin.host} is not known")
        if origin not in self._listed:
            for text in found:
                address = address_of(text)
                if address is None or not is_public(address):
                    raise SendRefused(_out_of_bounds(origin, "leads to this machine or a private network").message)
        return found


def split(url: str) -> SplitResult:
    """Strictly: what two readers could understand in two ways is refused."""
    wrong = InvalidRequest("that is no address; write https://host/path", field="address")
    if len(url) > MAX_URL or not _PLAIN.fullmatch(url):
        raise wrong
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise wrong
    if "@" in parts.netloc or "%" in parts.netloc or parts.fragment:
        raise InvalidRequest("an address has no user, password or fragment; a secret is given apart", field="address")
    return parts


def _out_of_bounds(origin: Origin, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"{origin} {reason}; the operator may allow it: crucible server --alert-endpoint {origin}", field="address"
    )
