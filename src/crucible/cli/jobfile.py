"""A job file as this computer has it: its text to the letter, what it says, and the folder its paths start from."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crucible import spec as specs
from crucible.model.errors import InvalidSpec
from crucible.model.spec import JobSpec

STDIN = "-"


@dataclass(frozen=True, slots=True)
class JobFile:
    name: str  # as it was given on the command line
    text: str
    spec: JobSpec
    warnings: Sequence[specs.Problem]
    root: Path | None = None  # where its paths start from, if not from its own folder

    @property
    def folder(self) -> Path:
        return self.root or folder_of(self.name)


def folder_of(file: str) -> Path:
    return Path.cwd() if file == STDIN else Path(file).absolute().parent


def read_bytes(file: str) -> bytes:
    """Raw: the reader of specs says what is wrong with an encoding."""
    return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()


def read(file: str) -> JobFile:
    return parse(file, read_bytes(file))


def parse(file: str, raw: str | bytes) -> JobFile:
    """Raises InvalidSpec whose message names the file at every problem."""
    try:
        loaded = specs.load(raw, now=datetime.now(UTC))
    except InvalidSpec as error:
        problems = error.details["problems"]
        listed = specs.format_problems(problems, file)
        raise InvalidSpec(f"{file} is not a valid job\n{listed}", problems=problems, file=file) from None
    text = raw if isinstance(raw, str) else raw.decode()
    return JobFile(file, text, loaded.spec, loaded.warnings)
