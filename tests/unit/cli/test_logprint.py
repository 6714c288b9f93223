"""Log records as lines."""

import io
from datetime import UTC
from typing import Any

from crucible.cli.logprint import LogPrinter
from crucible.cli.output import Out


def printed(*records: dict[str, Any], ranks: int = 1, **options: Any) -> tuple[str, str]:
    out = Out(stdout=io.StringIO(), stderr=io.StringIO(), environ={})
    printer = LogPrinter(out, ranks=lambda: ranks, zone=UTC, **options)
    for record in records:
        printer.print({"attempt": 0, "rank": 0, "n": 0, "t": 0, "s": "out", **record})  # type: ignore[typeddict-item]
    printer.end()
    return out._stdout.getvalue(), out._stderr.getvalue()  # type: ignore[attr-defined]


def test_one_rank_needs_no_names() -> None:
    assert printed({"x": "one"}, {"x": ""}, {"x": "two"})[0] == "one\n\ntwo\n"


def test_with_several_ranks_each_line_names_its_own() -> None:
    assert printed({"x": "a"}, {"x": "b", "rank": 1}, ranks=2)[0] == "[0] a\n[1] b\n"


def test_the_pieces_of_a_long_line_are_one_line() -> None:
    assert printed({"x": "ab", "p": True}, {"x": "cd", "p": True}, {"x": "ef"}, ranks=2)[0] == "[0] abcdef\n"


def test_another_rank_between_the_pieces_begins_a_line_of_its_own() -> None:
    text, _ = printed({"x": "ab", "p": True}, {"x": "B", "rank": 1}, {"x": "cd"}, ranks=2)
    assert text == "[0] ab\n[1] B\n[0] cd\n"


def test_a_line_without_end_is_ended_when_the_log_is() -> None:
    assert printed({"x": "ab", "p": True})[0] == "ab\n"


def test_times_are_the_nodes_own() -> None:
    assert printed({"x": "a", "t": 1_768_644_000_123}, has_times=True)[0] == "2026-01-17T10:00:00.123+00:00 a\n"


def test_the_agents_words_are_told_apart() -> None:
    assert printed({"x": "unpacked the code", "s": "sys"})[0] == "crucible: unpacked the code\n"


def test_a_new_attempt_is_announced_on_stderr() -> None:
    assert printed({"x": "a"}, {"x": "b", "attempt": 1}) == ("a\nb\n", "--- attempt 1 ---\n")
