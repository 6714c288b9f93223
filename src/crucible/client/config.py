"""Which server to talk to: the environment, else what `crucible login` wrote, else the embedded server.

A token goes only to the server it was given for. Nothing here asks a question or prints."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crucible.client.embedded import Embedded
from crucible.client.endpoint import Endpoint, check_url
from crucible.client.errors import BadConfiguration

SERVER = "CRUCIBLE_SERVER"
TOKEN = "CRUCIBLE_TOKEN"  # noqa: S105  (the variable's name, not a token)
HOME = "CRUCIBLE_HOME"


def resolve(environ: Mapping[str, str]) -> Endpoint | None:
    """The configured server; None means the embedded one."""
    saved = load(config_path(environ))
    token = environ.get(TOKEN) or None
    if url := environ.get(SERVER):
        check_url(url, SERVER)
        return Endpoint(url, token or (saved.token if saved and _same(saved.url, url) else None), SERVER)
    if saved is None:
        return None
    return Endpoint(saved.url, token or saved.token, saved.source)


def embedded(environ: Mapping[str, str]) -> Embedded:
    """The server that lives in this computer's data folder, running or not."""
    home = Path(environ.get(HOME) or Path(_user_home(environ)) / ".crucible")
    return Embedded(home.expanduser().absolute(), token=environ.get(TOKEN) or None)


def config_path(environ: Mapping[str, str]) -> Path:
    folder = environ.get("XDG_CONFIG_HOME") or Path(_user_home(environ)) / ".config"
    return Path(folder) / "crucible" / "config.json"


def load(path: Path) -> Endpoint | None:
    try:
        data: Any = json.loads(path.read_text())
        url, token = str(data["url"]), data.get("token")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadConfiguration(f"{path} cannot be read ({error}); log in again: crucible login URL") from error
    check_url(url, str(path))
    return Endpoint(url, str(token) if token else None, str(path))


def save(path: Path, endpoint: Endpoint) -> None:
    """Readable by the owner alone from its first byte on; the old file stays until the new one is whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"url": endpoint.url, "token": endpoint.token}, file)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def forget(path: Path) -> bool:
    """Whether there was anything to forget."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def _user_home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or str(Path.home())
