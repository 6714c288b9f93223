"""From nothing, or an address, to a client: the configured server, else the embedded one, which is started if it must
be. Whoever asks is told; nothing is printed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crucible import __version__
from crucible.client import config
from crucible.client.api import Client
from crucible.client.embedded import Embedded, Running
from crucible.client.endpoint import Endpoint, check_url
from crucible.client.errors import ServerUnreachable
from crucible.client.transport import Transport


@dataclass(frozen=True, slots=True)
class Told:
    """What a person should hear: a server was started; the one that runs is another version."""

    started: Callable[[str], None]
    differs: Callable[[str], None]


def connect(environ: Mapping[str, str], told: Told, url: str | None = None, token: str | None = None) -> Client:
    """`url` and `token` go before what is configured."""
    configured = resolve(environ, url, token)
    if configured is not None:
        return Client(Transport(configured))
    return _connect_embedded(config.embedded({**environ, config.TOKEN: token or environ.get(config.TOKEN, "")}), told)


def resolve(environ: Mapping[str, str], url: str | None, token: str | None) -> Endpoint | None:
    """The server that is meant; None is the embedded one. A token that is configured goes to the server it was
    configured for, not to another one that is named here."""
    if url is None:
        return config.resolve({**environ, config.TOKEN: token or environ.get(config.TOKEN, "")})
    check_url(url, "endpoint")
    if token is not None:
        return Endpoint(url, token, "endpoint")
    if environ.get(config.SERVER, "").rstrip("/") == url.rstrip("/"):
        return config.resolve(environ)
    known = config.resolve({**environ, config.SERVER: url, config.TOKEN: ""})
    return Endpoint(url, known.token if known else None, "endpoint")


def _connect_embedded(local: Embedded, told: Told) -> Client:
    def started(running: Running) -> None:
        told.started(f"started a local server ({running.url}); stop it with crucible server stop")

    def relocate() -> Endpoint:
        """It may have moved to another port. One that was stopped under our eyes is not started again."""
        if not transport.has_answered:
            return local.ensure(started)
        found = local.endpoint()
        if found is None:
            raise ServerUnreachable(
                f"the local server in {local.home} was stopped; start it with crucible server start"
            )
        return found

    endpoint = local.endpoint() or local.ensure(started)
    if endpoint.version and endpoint.version != __version__:
        told.differs(
            f"note: the local server is {endpoint.version}, this is {__version__}; restart it: crucible server stop"
        )
    transport = Transport(endpoint, relocate=relocate)
    return Client(transport)
