"""A record is one line of text, its fields separated by tabs. Nothing here touches a file.

    log      attempt, rank, n, at_ms, o|e|s, 0|1 (partial), text
    metrics  attempt, rank, n, at_ms, step or nothing, values as JSON

Both begin with the same three fields, so that one scan finds the next number of every source."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from crucible.model.errors import InvalidRequest
from crucible.ports.streams import LogLine, MetricPoint

R = TypeVar("R", LogLine, MetricPoint)

# Attempts and ranks are small; a bound keeps the first fields within what `scan` looks at.
_MOST = 2**31 - 1
_HEAD_BYTES = 64

_LETTER = {"out": "o", "err": "e", "sys": "s"}
_WORD = {letter: word for word, letter in _LETTER.items()}


def fresh(records: Sequence[R], cursors: dict[str, int]) -> tuple[list[R], dict[str, int]]:
    """The records not stored yet, and the cursors after them. Raises InvalidRequest on a gap."""
    after = dict(cursors)
    new: list[R] = []
    for record in records:
        key = _source(record)
        expected = after.get(key, 0)
        if record.n > expected:
            raise InvalidRequest(
                f"records of attempt/rank {key} jump from {expected} to {record.n}; send again from {expected}",
                source=key,
                expected=expected,
            )
        if record.n == expected:
            new.append(record)
            after[key] = expected + 1
    return new, after


def numbered(records: Sequence[MetricPoint], cursors: dict[str, int]) -> tuple[list[MetricPoint], dict[str, int]]:
    """All of them, with the next numbers of their sources."""
    after = dict(cursors)
    new = []
    for record in records:
        key = _source(record)
        new.append(replace(record, n=after.get(key, 0)))
        after[key] = after.get(key, 0) + 1
    return new, after


def encode_log(line: LogLine) -> bytes:
    letter = _LETTER.get(line.stream)
    if letter is None:
        raise InvalidRequest(f"a log line names the stream {line.stream!r}; send out, err or sys", field="stream")
    head = f"{line.attempt}\t{line.rank}\t{line.n}\t{_int64(line.at_ms)}\t{letter}\t{line.is_partial:d}\t"
    # A lone surrogate is not text; it must not make the segment unreadable.
    return f"{head}{_escape(line.text)}\n".encode("utf-8", "replace")


def encode_metric(point: MetricPoint) -> bytes:
    step = "" if point.step is None else _int64(point.step)
    # The standard library's JSON keeps NaN and the infinities, which a diverging training really reports.
    values = json.dumps(point.values, separators=(",", ":"))
    return f"{point.attempt}\t{point.rank}\t{point.n}\t{_int64(point.at_ms)}\t{step}\t{values}\n".encode()


def decode_logs(data: bytes) -> tuple[LogLine, ...]:
    """The records in `data`, which ends with a newline. Damaged lines and repetitions are left out."""
    return _once(_lines(data), _decode_log)


def decode_metrics(data: bytes) -> tuple[MetricPoint, ...]:
    return _once(_lines(data), _decode_metric)


def scan(data: bytes, cursors: dict[str, int]) -> int:
    """Move `cursors` (source -> next number) past the records in `data`; return where the last whole record ends."""
    good = position = 0
    while (end := data.find(b"\n", position)) >= 0:
        fields = data[position : min(end, position + _HEAD_BYTES)].split(b"\t", 3)
        position = end + 1
        if len(fields) == 4 and fields[0].isdigit() and fields[1].isdigit() and fields[2].isdigit():
            key = f"{fields[0].decode()}/{fields[1].decode()}"
            cursors[key] = max(cursors.get(key, 0), int(fields[2]) + 1)
            good = position
    return good


def _source(record: LogLine | MetricPoint) -> str:
    """Whose record it is: records are numbered within their source."""
    if not (0 <= record.attempt <= _MOST and 0 <= record.rank <= _MOST and record.n >= 0):
        raise InvalidRequest("attempt, rank and n of a record must be numbers from 0 on", n=record.n)
    return f"{record.attempt}/{record.rank}"


def _int64(number: int) -> int:
    """What a job calls its step or its time is data: an absurd one must not stop the rest of its records."""
    return max(-(2**63), min(number, 2**63 - 1))


def _lines(data: bytes) -> Iterator[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    lines.pop()  # what follows the last newline
    return iter(lines)


def _once(lines: Iterator[str], decode: Callable[[str], R]) -> tuple[R, ...]:
    """Numbers of one source only grow; a record that comes again (a folder without working locks) is dropped."""
    newest: dict[tuple[int, int], int] = {}
    records: list[R] = []
    for line in lines:
        try:
            record = decode(line)
        except (ValueError, KeyError):
            continue  # damaged on disk: skipping one line beats losing all that follow
        key = (record.attempt, record.rank)
        if record.n > newest.get(key, -1):
            newest[key] = record.n
            records.append(record)
    return tuple(records)


def _decode_log(line: str) -> LogLine:
    attempt, rank, n, at_ms, letter, partial, text = line.split("\t", 6)
    if "\\" in text:
        text = _unescape(text)
    return LogLine(int(attempt), int(rank), int(n), int(at_ms), _WORD[letter], text, partial == "1")


def _decode_metric(line: str) -> MetricPoint:
    attempt, rank, n, at_ms, step, values = line.split("\t", 5)
    return MetricPoint(int(attempt), int(rank), int(n), int(at_ms), int(step) if step else None, json.loads(values))


def _escape(text: str) -> str:
    if "\\" in text or "\n" in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n")
    return text


def _unescape(text: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))
