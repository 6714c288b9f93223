"""One host with its kept connection: the agent is brought there and checked, its keeper is asked, and the way back to
the server is found, through the connection itself if there is no other."""

import asyncio
import hashlib
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crucible.model.errors import (
    InvalidRequest,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    PlatformError,
    ProviderError,
    RateLimited,
    Unreachable,
)
from crucible.model.host import Host
from crucible.providers.onprem.settings import OnpremSettings
from crucible.providers.onprem.stock import PROVIDER, REGION
from crucible.ssh.login import Login
from crucible.ssh.remote import SshRemote

# Facts ask the driver twice, and two container runtimes: each may take its own time.
FACTS_TIMEOUT_S = 30.0
CHANGE_TIMEOUT_S = 30.0
PUSH_TIMEOUT_S = 60.0
# What Python and the shell say about a program that is not there.
NO_FILE, NO_PYTHON = 2, (126, 127)
# Only the standard library is used, and looking for more may be half of what a start costs.
BARE = ("-I", "-S")
DIGEST = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())"
LEAST_PYTHON = (3, 8)


class KeeperRefused(PlatformError):
    """What the keeper of a host answered instead: `code` of its refusal is in `why`."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why

    def as_seller(self, host: str) -> ProviderError:
        """The same, as a seller says it."""
        kinds: dict[str, type[ProviderError]] = {
            "no_capacity": NoCapacity,
            "trouble": NoCapacity,
            "busy": RateLimited,
            "unknown": OutcomeUnknown,
        }
        kind = kinds.get(self.why, OrderRejected)
        return kind(f"host {host}: {self.message}", provider=PROVIDER, region=REGION)


@dataclass(frozen=True, slots=True)
class Program:
    """The agent, as one file."""

    path: Path

    @property
    def content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"the agent {self.path} is missing: install Crucible again") from error


class KeptHost:
    def __init__(self, host: Host, deployment: str, program: Program, url: str, settings: OnpremSettings) -> None:
        self.host = host
        self.remote = SshRemote(login_of(host), settings.files, name=f"host {host.name}")
        self._python = host.python or "python3"
        self._deployment = deployment
        self._program = program
        self._url = url
        self._settings = settings
        self._path: str | None = None  # of the agent there, once it is known to be there
        self._pushing = asyncio.Lock()
        self._route: str | None = None  # where its agents find the server
        self._is_exposed = False

    # --- its keeper -----------------------------------------------------------------------------------------

    async def ask(self, op: str, timeout_s: float = CHANGE_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Raises Unreachable and its children, KeeperRefused, InvalidRequest."""
        request = {
            "op": op,
            "deployment": self._deployment,
            "boot_time_s": self._settings.boot_limit.total_seconds(),
            "stop_grace_s": self._settings.stop_grace.total_seconds(),
            **fields,
        }
        for _ in range(2):
            path = await self._brought()
            done = await self.remote.run(
                [self._python, *BARE, path, "--keep"], stdin=json.dumps(request).encode(), timeout_s=timeout_s
            )
            if done.exit_code != NO_FILE:
                return self._read(done.exit_code, done.stdout, done.words)
            self._path = None  # somebody has tidied up there
        raise Unreachable(f"the agent does not stay on host {self.host.name}: {done.words}")

    async def facts(self) -> dict[str, Any]:
        return await self.ask("facts", FACTS_TIMEOUT_S)

    async def check_python(self) -> None:
        """Raises InvalidRequest for a host that cannot run an agent."""
        done = await self.remote.run([self._python, "-c", "import sys; print(*sys.version_info[:2])"])
        if done.exit_code != 0:
            raise InvalidRequest(
                f"host {self.host.name} has no {self._python}: install Python 3.8 or newer there, or name another with "
                f"--python ({done.words or f'exit {done.exit_code}'})"
            )
        version = tuple(int(word) for word in done.stdout.split()[:2])
        if version < LEAST_PYTHON:
            said = ".".join(map(str, version))
            raise InvalidRequest(f"host {self.host.name} has Python {said}: the agent needs 3.8 or newer (--python)")

    def _read(self, exit_code: int, stdout: bytes, words: str) -> dict[str, Any]:
        if exit_code in NO_PYTHON:
            raise KeeperRefused("rejected", f"{self._python} cannot be run: {words}")
        try:
            answer = json.loads(stdout)
            if "ok" in answer:
                found: dict[str, Any] = answer["ok"]
                return found
            raise KeeperRefused(str(answer["error"]["code"]), str(answer["error"]["message"]))
        except (ValueError, KeyError, TypeError) as error:
            said = words or f"exit {exit_code}"
            raise KeeperRefused("rejected", f"its keeper gave no answer: {said[-300:]}") from error

    # --- the agent there ------------------------------------------------------------------------------------

    async def _brought(self) -> str:
        """Where the agent lies: named by its digest, and looked at before it is used."""
        async with self._pushing:
            if self._path is None:
                content = await asyncio.to_thread(lambda: self._program.content)
                self._path = await self._bring(content, hashlib.sha256(content).hexdigest())
            return self._path

    async def _bring(self, content: bytes, digest: str) -> str:
        path = f".crucible/{self._deployment}/agent/{digest}.pyz"
        if await self._digest_of(path) != digest:
            try:
                await self.remote.put(path, content, mode=0o600, timeout_s=PUSH_TIMEOUT_S)
            except OSError as error:
                raise KeeperRefused("trouble", str(error)) from error
            if await self._digest_of(path) != digest:
                raise KeeperRefused("trouble", f"the agent did not arrive whole as {path}")
        return path

    async def _digest_of(self, path: str) -> str | None:
        done = await self.remote.run([self._python, *BARE, "-c", DIGEST, path])
        if done.exit_code in NO_PYTHON:
            raise KeeperRefused("rejected", f"{self._python} cannot be run: {done.words}")
        return done.stdout.decode().strip() if done.exit_code == 0 else None

    # --- the way back ---------------------------------------------------------------------------------------

    async def route(self, told: str | None = None) -> str:
        """Where agents of this host find the server now; they are told. `told` is what they were told last."""
        if self._route is None:
            self._is_exposed = not await self._reaches()
        url = await self._exposed(told) if self._is_exposed else self._url
        if url != self._route and url != told:
            await self.ask("tell", url=url)
        self._route = url
        return url

    async def _reaches(self) -> bool:
        """A server on its own loopback would be somebody else's."""
        if is_loopback(urlsplit(self._url).hostname or ""):
            return False
        return (await self.ask("reach", urls=[self._url]))["url"] is not None

    async def _exposed(self, told: str | None) -> str:
        parts, before = urlsplit(self._url), urlsplit(told or "")
        host = parts.hostname or "127.0.0.1"
        here = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
        own = parts.port or (443 if parts.scheme == "https" else 80)
        # As before, so that agents need not look for it; else the server's own, so that its addresses hold there too.
        prefer = before.port if before.hostname == "127.0.0.1" and before.port else own
        port = await self.remote.expose(here, own, prefer)
        return f"{parts.scheme}://127.0.0.1:{port}{parts.path}"


def login_of(host: Host) -> Login:
    return Login(host.address, host.port, host.user, host.host_key or None, host.jump, host.identity_file)


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
