"""A log of a million lines, written as reports are, in seconds: colours, errors and lines that are too long for a
screen stand at places that are known, so that whoever reads it can say whether it is all there."""

from pathlib import Path

from crucible.model.ids import TaskId
from crucible.ports.streams import LogLine
from crucible.store import open_store
from crucible.streams.files import FileStreams

CHUNK = 20_000  # lines written at once
COLOURED, LONG = 50, 1000  # every so many lines
TRACE = "Traceback (most recent call last):"
LAST_WORDS = "RuntimeError: CUDA error: out of memory"


def line(number: int, lines: int) -> str:
    """The middle is where it goes wrong."""
    if number == lines // 2:
        return TRACE
    if number == lines // 2 + 1:
        return LAST_WORDS
    if number % LONG == 1:
        return f"line {number} is long: " + "loss " * 80
    if number % COLOURED == 0:
        return f"\x1b[1;32mstep {number}\x1b[0m loss \x1b[33m{1 / (number + 1):.6f}\x1b[0m"
    return f"line {number}: loss={1 / (number + 1):.6f} lr=0.0003 tokens/s=12345 grad_norm=0.{number % 97:02d}"


async def write(url: str, streams: Path, task: TaskId, lines: int, since_ms: int) -> None:
    """Into the database and the folder of a server that does not run."""
    store = await open_store(url)
    try:
        files = FileStreams(streams, add_segment=store.add_segment, segments=store.segments, inline=True)
        for first in range(0, lines, CHUNK):
            numbers = range(first, min(first + CHUNK, lines))
            await files.append_log(task, [_line(number, lines, since_ms) for number in numbers])
        await files.close()
    finally:
        await store.close()


def _line(number: int, lines: int, since_ms: int) -> LogLine:
    stream = "err" if lines // 2 <= number <= lines // 2 + 1 else "out"
    return LogLine(0, 0, number, since_ms + number, stream, line(number, lines))
