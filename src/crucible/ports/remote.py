"""A computer that runs commands for us: this one, or another that is reached over SSH. Commands are argv lists; what a
user wrote never becomes part of a shell's line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended. A command whose end nobody saw has no Done: that is an error of whoever ran it."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def words(self) -> str:
        """What it said, for a person: the end of what it wrote to stderr, else to stdout."""
        text = (self.stderr.strip() or self.stdout.strip()).decode("utf-8", "replace")
        return text[-500:]


class Remote(Protocol):
    name: str  # for messages: "this computer", "login.example"

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        """Whatever its exit code. Raises Unreachable when no connection can be had or the answer was lost: the command
        may have run."""
        ...

    async def close(self) -> None: ...
