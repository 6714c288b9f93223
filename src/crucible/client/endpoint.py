"""Where a server is and what opens it. The token never appears in a repr, a log or an error."""

from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from crucible.client.errors import BadConfiguration

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    token: str | None = field(default=None, repr=False)
    source: str = "given"  # what named it, for people: an environment variable, a file
    home: str | None = None  # the data folder when it is the embedded server
    version: str | None = None  # what the embedded server says it is

    @property
    def is_embedded(self) -> bool:
        return self.home is not None

    def split(self) -> SplitResult:
        return check_url(self.url, self.source)


def check_url(url: str, source: str) -> SplitResult:
    """The parts of a usable server address; raises with what is wrong with it otherwise."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfiguration(
            f"{source}: {url!r} is not a server address; write it like http://127.0.0.1:8750 or https://crucible.example"
        )
    if parts.username is not None:
        raise BadConfiguration(f"{source}: put the token into CRUCIBLE_TOKEN or `crucible login`, not into the address")
    try:
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError:
        raise BadConfiguration(f"{source}: {url!r} has an impossible port") from None
    return parts


def is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK
