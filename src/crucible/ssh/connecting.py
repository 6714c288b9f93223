"""Makes connections: keys are checked, never believed; what the library says becomes our errors, with what to do."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crucible.model.errors import HostKeyRefused, InvalidRequest, LoginRefused, PlatformError, Unreachable
from crucible.ssh.login import Login, SshFiles, jumps_of

if TYPE_CHECKING:
    import asyncssh

CONNECT_TIMEOUT_S = 10.0
# A computer that says nothing for so long is gone: the connection is ended.
KEEPALIVE_S = 5
KEEPALIVES = 3


def check_installed() -> None:
    """Raises InvalidRequest: the library is an extra."""
    try:
        import asyncssh  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "asyncssh":
            raise
        raise InvalidRequest("computers are reached over SSH by asyncssh: pip install 'crucible[ssh]'") from None


class Passage:
    """One connection with those that it passes through."""

    def __init__(self, connections: "list[asyncssh.SSHClientConnection]") -> None:
        self._connections = connections
        self.connection = connections[-1]

    @property
    def is_open(self) -> bool:
        return not any(connection.is_closed() for connection in self._connections)

    async def close(self) -> None:
        for connection in reversed(self._connections):
            connection.close()
            await connection.wait_closed()

    def abort(self) -> None:
        for connection in reversed(self._connections):
            connection.abort()


async def connect(login: Login, files: SshFiles) -> Passage:
    """Raises Unreachable, HostKeyRefused, LoginRefused."""
    check_installed()
    made: list[asyncssh.SSHClientConnection] = []
    try:
        for each in [*jumps_of(login.jump), login]:
            made.append(await connect_one(each, files, made[-1] if made else None))
    except BaseException:
        for connection in made:
            connection.abort()
        raise
    return Passage(made)


async def connect_one(
    login: Login, files: SshFiles, through: "asyncssh.SSHClientConnection | None"
) -> "asyncssh.SSHClientConnection":
    import asyncssh

    shown: list[asyncssh.SSHKey] = []

    class Client(asyncssh.SSHClient):
        def validate_host_public_key(self, host: str, addr: str, port: int, key: "asyncssh.SSHKey") -> bool:
            """Asked about keys that are not known: there is no other way to learn what was shown."""
            shown.append(key)
            return False

    try:
        connection, _ = await asyncssh.create_connection(Client, login.address, **options(login, files, through))
    except asyncssh.HostKeyNotVerifiable as error:
        raise refused_key(login, files, shown, str(error.reason)) from error
    except (OSError, asyncssh.Error, ValueError) as error:
        raise named(login, error) from error
    return connection


def options(login: Login, files: SshFiles, through: "asyncssh.SSHClientConnection | None") -> dict[str, Any]:
    given: dict[str, Any] = {
        "port": login.port,
        "username": login.user,
        "client_keys": [login.identity_file] if login.identity_file else None,
        "tunnel": through,
        "server_host_key_algs": kinds_of_key(trusted_keys(login, files, login.address)),
    }
    return {
        **{name: value for name, value in given.items() if value is not None},
        "config": [str(files.config)] if files.config.is_file() else None,
        "known_hosts": known_hosts(login, files),
        "connect_timeout": CONNECT_TIMEOUT_S,
        "login_timeout": CONNECT_TIMEOUT_S,
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVES,
        "password_auth": False,
        "kbdint_auth": False,
        "request_pty": False,
    }


# --- who it is --------------------------------------------------------------------------------------------


def known_hosts(login: Login, files: SshFiles) -> Any:
    """For the library: what it may show. Never None, which would mean anything."""
    import asyncssh

    if login.host_key is not None:
        return ([imported(login.host_key)], [], [])
    if not files.known_hosts.is_file():
        return ([], [], [])
    try:
        return asyncssh.import_known_hosts(files.known_hosts.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{files.known_hosts} cannot be used: {error}") from error


def imported(host_key: str) -> "asyncssh.SSHKey":
    import asyncssh

    try:
        return asyncssh.import_public_key(host_key)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise InvalidRequest(f"{host_key[:100]!r} is not a public key: ssh-ed25519 AAAA…") from error


def trusted_keys(login: Login, files: SshFiles, host: str) -> "list[asyncssh.SSHKey]":
    import asyncssh

    known = known_hosts(login, files)
    if not isinstance(known, asyncssh.SSHKnownHosts):
        return list(known[0])
    port = None if login.port in (None, 22) else login.port
    return list(known.match(host, "", port)[0])


def kinds_of_key(trusted: "list[asyncssh.SSHKey]") -> list[str] | None:
    """What is known first. A computer that has no such key any more must not fall silent: it is to show what it has, so
    that it can be refused by name."""
    from asyncssh.public_key import get_default_public_key_algs

    if not trusted:
        return None
    known = [kind.decode() for key in trusted for kind in key.sig_algorithms]
    return list(dict.fromkeys([*known, *(kind.decode() for kind in get_default_public_key_algs())]))


def refused_key(login: Login, files: SshFiles, shown: "list[asyncssh.SSHKey]", said: str) -> HostKeyRefused:
    known = [key.get_fingerprint() for key in trusted_keys(login, files, login.address)]
    expected = ", ".join(known) or None
    print_of = shown[-1].get_fingerprint() if shown else None
    host_key = public_text(shown[-1]) if shown else None
    if print_of is None:
        words = f"{login.name} shows a key that is not accepted: {said}"
    elif expected is None:
        words = f"{login.name} is not known yet: it shows the key {print_of}. Compare it on the host itself"
    else:
        words = (
            f"{login.name} shows the key {print_of}, but {expected} is expected: it was set up anew, or somebody "
            f"stands in between"
        )
    return HostKeyRefused(words, address=login.name, fingerprint=print_of, expected=expected, host_key=host_key)


def public_text(key: "asyncssh.SSHKey") -> str:
    """ "ssh-ed25519 AAAA…", without a comment."""
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def fingerprint_of(host_key: str) -> str:
    return imported(host_key).get_fingerprint()


# --- what went wrong ----------------------------------------------------------------------------------------


def named(login: Login, error: Exception) -> PlatformError:
    import asyncssh

    if isinstance(error, asyncssh.PermissionDenied):
        who = f"user {login.user}" if login.user else "the user that ssh would choose"
        key = login.identity_file or "the keys of this server's SSH agent and ~/.ssh"
        return LoginRefused(
            f"{login.name} does not let {who} in with {key}: add the public key to ~/.ssh/authorized_keys there, "
            f"or name another user or identity_file",
            address=login.name,
        )
    if isinstance(error, asyncssh.KeyEncryptionError | asyncssh.KeyImportError) or is_key_file(login, error):
        return LoginRefused(
            f"the identity_file {login.identity_file} cannot be used: {error}; a key without passphrase is needed, "
            f"or an SSH agent that holds it",
            address=login.name,
        )
    if isinstance(error, TimeoutError):
        return Unreachable(f"{login.name} gave no answer within {CONNECT_TIMEOUT_S:g} s", address=login.name)
    if isinstance(error, OSError):
        return Unreachable(f"{login.name} cannot be reached: {error.strerror or error}", address=login.name)
    return Unreachable(f"the connection to {login.name} was lost: {error}", address=login.name)


def is_key_file(login: Login, error: Exception) -> bool:
    """Its own file, as opposed to one of ~/.ssh/config."""
    name = getattr(error, "filename", None)
    return login.identity_file is not None and name is not None and Path(name) == Path(login.identity_file)
