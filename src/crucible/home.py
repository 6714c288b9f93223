"""The data folder of a server: its key, its agent, and the word where it is to be found. What is written here is whole
or not there, and nobody else's to read."""

import contextlib
import json
import logging
import os
import secrets
from pathlib import Path
from typing import Any

from crucible import __version__
from crucible.agent import bundle
from crucible.model.errors import StorageFailed

log = logging.getLogger("crucible")


def prepare(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = data / f".writable-{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise StorageFailed(
            f"the data folder {data} cannot be written: {error.strerror}; choose another --data-dir"
        ) from error


def last_port(data: Path) -> int:
    try:
        return int((data / "port").read_text())
    except (OSError, ValueError):
        return 0


def agent_file(data: Path) -> Path:
    """The agent as one file, written anew at every start so that it fits this server."""
    path = data / "agent" / "crucible-agent.pyz"
    path.parent.mkdir(parents=True, exist_ok=True)
    bundle.build(path)
    return path


def secret_key(data: Path) -> bytes:
    """Random per install; servers that share a database share the key through CRUCIBLE_SECRET_KEY."""
    given = os.environ.get("CRUCIBLE_SECRET_KEY")
    if given:
        return given.encode()
    path = data / "secret-key"
    if not path.exists():
        write_once(path, secrets.token_hex(32))
    return path.read_text().strip().encode()


def publish(data: Path, url: str, port: int) -> None:
    """Where clients and local agents find this server, now and after its next start."""
    write_private(data / "port", str(port))
    write_private(data / "server.json", json.dumps({"url": url, "pid": os.getpid(), "version": __version__}))
    log.info("ready at %s", url)


def published(data: Path) -> dict[str, Any]:
    try:
        said = json.loads((data / "server.json").read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def unpublish(data: Path) -> None:
    """Another server that shares the folder may be named there by now."""
    if published(data).get("pid") == os.getpid():
        (data / "server.json").unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and nobody else's to read."""
    written_beside(path, text).replace(path)


def write_once(path: Path, text: str) -> None:
    """The same, and whoever comes second keeps what the first wrote."""
    part = written_beside(path, text)
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()


def written_beside(path: Path, text: str) -> Path:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return part
