"""How one computer is reached over SSH: where, as whom, by whose help, and what proves that it is the right one."""

from dataclasses import dataclass
from pathlib import Path

from crucible.model.errors import InvalidRequest

# More would be a mistake, and each costs a connection.
MAX_JUMPS = 8


@dataclass(frozen=True, slots=True)
class Login:
    """None means: as ~/.ssh/config says, or as `ssh` would choose."""

    address: str  # a name, an address, or an alias of ~/.ssh/config
    port: int | None = None
    user: str | None = None
    host_key: str | None = None  # the only key that it may show: "ssh-ed25519 AAAA…"; None: what known_hosts says
    jump: str | None = None  # user@host:port, several with commas: through the first to the second …
    identity_file: str | None = None  # a private key without passphrase; None: the SSH agent and the usual keys

    @property
    def name(self) -> str:
        return self.address if self.port in (None, 22) else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class SshFiles:
    """Where a server keeps what `ssh` keeps there too."""

    known_hosts: Path
    config: Path

    @classmethod
    def of_user(cls) -> "SshFiles":
        folder = Path("~/.ssh").expanduser()
        return cls(folder / "known_hosts", folder / "config")


def parse_place(text: str) -> tuple[str | None, str, int | None]:
    """ "[user@]address[:port]", an IPv6 address with a port in brackets. Raises InvalidRequest."""
    user, _, place = text.strip().rpartition("@")
    address, port = place, ""
    if place.startswith("["):
        address, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":")
    elif place.count(":") == 1:
        address, _, port = place.partition(":")
    # A word that begins with a dash would be an option to whoever passes it on.
    if not address or address.startswith("-") or user.startswith("-") or any(c.isspace() or c in "'\"\\" for c in text):
        raise InvalidRequest(f"{text!r} is not [user@]address[:port]")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise InvalidRequest(f"{text!r}: {port!r} is not a port")
    return user or None, address, int(port) if port else None


def jumps_of(jump: str | None) -> list[Login]:
    """The computers to pass, in order. Their keys are those of known_hosts. Raises InvalidRequest."""
    words = [word for word in (jump or "").split(",") if word.strip()]
    if len(words) > MAX_JUMPS:
        raise InvalidRequest(f"{len(words)} jump hosts in a row; at most {MAX_JUMPS} are passed")
    return [Login(address, port, user) for user, address, port in map(parse_place, words)]
