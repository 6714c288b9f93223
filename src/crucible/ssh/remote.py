"""A computer behind SSH (ports.remote). One connection is kept and made anew when it breaks; commands are argv lists,
their answers bounded. A command whose end nobody saw is an error: it may have run."""

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crucible.model.errors import Unreachable
from crucible.ports.remote import Done
from crucible.ssh.connecting import Passage, connect, public_text
from crucible.ssh.login import Login, SshFiles

if TYPE_CHECKING:
    import asyncssh

# An sshd allows ten by default; somebody else may want to look.
MAX_SESSIONS = 8
# The largest answer that is kept; what comes after it is read and thrown away.
MAX_ANSWER_BYTES = 8 << 20
# "$1" is the path: nothing of it is read by the shell. A reader sees the old file or the new one.
PUT = """umask 077; new="$1.$$.new"; mkdir -p -- "$(dirname -- "$1")" || exit 1
cat > "$new" && chmod "$2" "$new" && mv -f -- "$new" "$1" || { rm -f -- "$new"; exit 1; }"""


class SshRemote:
    def __init__(self, login: Login, files: SshFiles | None = None, name: str | None = None) -> None:
        self.login = login
        self.name = name or login.name
        self._files = files or SshFiles.of_user()
        self._passage: Passage | None = None
        self._connecting = asyncio.Lock()
        self._sessions = asyncio.Semaphore(MAX_SESSIONS)
        self._exposed: dict[tuple[str, int], asyncssh.SSHListener] = {}
        self._ports: dict[tuple[str, int], int] = {}  # where each was exposed last

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        try:
            async with asyncio.timeout(timeout_s), self._sessions:
                return await self._run(await self.connected(), shlex.join(argv), stdin)
        except TimeoutError as error:
            raise Unreachable(f"{self.name} gave no answer within {timeout_s:g} s", address=self.login.name) from error

    async def put(self, path: str, data: bytes, *, mode: int = 0o600, timeout_s: float = 60.0) -> None:
        """Whole or not at all, with its folder. Raises Unreachable; OSError with what the other side said."""
        done = await self.run(["sh", "-c", PUT, "sh", path, f"{mode:o}"], stdin=data, timeout_s=timeout_s)
        if done.exit_code != 0:
            raise OSError(f"{path} cannot be written on {self.name}: {done.words}")

    async def connected(self) -> "asyncssh.SSHClientConnection":
        """The kept connection, made anew if it broke. Raises Unreachable and its children."""
        async with self._connecting:
            if self._passage is None or not self._passage.is_open:
                self._exposed.clear()
                self._passage = await connect(self.login, self._files)
            return self._passage.connection

    async def host_key(self) -> str:
        """The key that it has shown, and that was accepted."""
        key = (await self.connected()).get_server_host_key()
        assert key is not None
        return public_text(key)

    async def expose(self, host: str, port: int, prefer: int = 0) -> int:
        """The port of the other computer's 127.0.0.1 that leads to host:port here. It stays the same over connections
        where that can be had: an old one may still hold it for a while. `prefer`: the first time, if it is free."""
        import asyncssh

        connection = await self.connected()
        async with self._connecting:
            listener = self._exposed.get((host, port))
            if listener is not None:
                return listener.get_port()
            for wanted in dict.fromkeys((self._ports.get((host, port), prefer), 0)):
                try:
                    listener = await connection.forward_remote_port("127.0.0.1", wanted, host, port)
                except (asyncssh.ChannelListenError, asyncssh.Error, OSError) as error:
                    problem = error
                    continue
                self._exposed[host, port] = listener
                self._ports[host, port] = listener.get_port()
                return listener.get_port()
        raise Unreachable(f"{self.name} forwards no port to this server: {problem}", address=self.login.name)

    async def close(self) -> None:
        passage, self._passage = self._passage, None
        self._exposed.clear()
        if passage is not None:
            await passage.close()

    def abort(self) -> None:
        """Without goodbye: it does not answer anyway."""
        passage, self._passage = self._passage, None
        self._exposed.clear()
        if passage is not None:
            passage.abort()

    async def _run(self, connection: "asyncssh.SSHClientConnection", command: str, stdin: bytes) -> Done:
        import asyncssh

        try:
            process = await connection.create_process(command, encoding=None)
            try:
                _, stdout, stderr = await asyncio.gather(
                    feed(process, stdin), bounded(process.stdout), bounded(process.stderr)
                )
                await process.wait_closed()
            finally:
                process.close()
        except (asyncssh.Error, OSError) as error:
            raise Unreachable(f"the connection to {self.name} was lost: {error}", address=self.login.name) from error
        if process.returncode is None:
            raise Unreachable(f"the connection to {self.name} was lost before the answer", address=self.login.name)
        return Done(process.returncode, stdout, stderr)


async def feed(process: "asyncssh.SSHClientProcess[bytes]", data: bytes) -> None:
    """A program that ends without reading all of it has its reasons: its exit code tells."""
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.write_eof()
    except (BrokenPipeError, ConnectionResetError):
        pass


async def bounded(stream: "asyncssh.SSHReader[bytes]") -> bytes:
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: MAX_ANSWER_BYTES - len(kept)]
    return bytes(kept)
