"""The journal and its reader: whatever is killed or lost between them and the server, every record arrives once, under
its number, or a record says what is missing."""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crucible.agent import journal
from crucible.agent.spool import Spool, shorten

SEGMENT = 120
LIMIT = 700
GAP = re.compile(r"(\d+) bytes of output were dropped here \((\d+) lines\)")


class Delivering(RuleBasedStateMachine):
    """A writer, a reader that forgets everything, and a server that takes records as the real one does."""

    @initialize()
    def start(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.place.name, "log")
        self.writer = journal.Writer(self.folder, SEGMENT, LIMIT)
        self.spool = Spool(self.folder)
        self.written: list[str] = []
        self.taken: list[dict[str, Any]] = []

    @rule(lines=st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=30), min_size=1))
    def write(self, lines: list[str]) -> None:
        self.writer.append(journal.OUT, "".join(line + "\n" for line in lines).encode(), False, 1)
        self.written += lines

    @rule(count=st.integers(5, 60))
    def flood(self, count: int) -> None:
        for _ in range(count):
            self.write([f"line {len(self.written)}"])

    @rule(limit=st.integers(1, 400))
    def send(self, limit: int) -> None:
        """The server gets a report; whether the reader hears of it is another matter."""
        records = [each for text in self.spool.batch(limit) for each in json.loads(b"[%s]" % text)]
        for record in records:
            assert record["n"] <= len(self.taken), "a gap in the numbers"
            if record["n"] == len(self.taken):
                self.taken.append(record)
            else:
                assert self.taken[record["n"]] == record, "a number changed its meaning"

    @rule()
    def hear_the_answer(self) -> None:
        self.spool.acknowledge(len(self.taken))

    @rule()
    def kill_the_reader(self) -> None:
        self.spool = Spool(self.folder)
        self.spool.acknowledge(len(self.taken))

    @precondition(lambda self: len(self.written) > 50)
    @rule()
    def deliver_everything(self) -> None:
        while not self.spool.is_empty():
            self.send(300)
            self.hear_the_answer()
        self.check()

    @invariant()
    def the_disk_is_bounded(self) -> None:
        if hasattr(self, "folder"):
            # Two segments are spared for the reader, one for the writer.
            sizes = [os.path.getsize(os.path.join(self.folder, name)) for name in journal.segments(self.folder)]
            assert sum(sizes[2:-1]) <= LIMIT

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.writer.close(1)
            while not self.spool.is_empty():
                self.send(300)
                self.hear_the_answer()
            self.check()
            self.place.cleanup()

    def check(self) -> None:
        """What was taken is what was written, with every hole declared in lines and bytes."""
        place = 0
        for record in self.taken:
            gap = GAP.match(record["x"]) if record["s"] == "sys" else None
            if gap is None:
                assert record["x"] == self.written[place]
                place += 1
                continue
            missing = self.written[place : place + int(gap[2])]
            assert sum(len(line.encode()) + 1 for line in missing) == int(gap[1])
            place += len(missing)
        assert place == len(self.written)


TestDelivering = Delivering.TestCase
TestDelivering.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def records(spool: Spool) -> list[dict[str, Any]]:
    return [each for text in spool.batch(1 << 20) for each in json.loads(b"[%s]" % text)]


def test_the_oldest_output_is_dropped_and_one_record_says_how_much(tmp_path: Path) -> None:
    writer = journal.Writer(str(tmp_path / "log"), segment_bytes=1000, limit_bytes=10_000)
    for i in range(2000):
        writer.append(journal.OUT, b"line %06d\n" % i, False, 1)
    assert sum(path.stat().st_size for path in (tmp_path / "log").iterdir()) <= 12_000
    spool, seen = Spool(str(tmp_path / "log")), []
    while not spool.is_empty():
        batch = records(spool)
        seen += [each for each in batch if each["n"] >= len(seen)]
        spool.acknowledge(len(seen))
    gaps = [each for each in seen if each["s"] == "sys"]
    lines = [each["x"] for each in seen if each["s"] == "out"]
    assert [each["n"] for each in seen] == list(range(len(seen)))
    assert len(gaps) == 1
    missing = GAP.match(gaps[0]["x"])
    assert missing is not None and int(missing[2]) == 2000 - len(lines) and int(missing[1]) == 12 * int(missing[2])
    assert lines[0] == "line 000000" and lines[-1] == "line 001999"


def test_a_server_that_lost_records_gets_new_ones_under_the_numbers_it_expects(tmp_path: Path) -> None:
    writer = journal.Writer(str(tmp_path), segment_bytes=100)
    for i in range(100):
        writer.append(journal.OUT, b"line %06d\n" % i, False, 1)
    spool = Spool(str(tmp_path))
    spool.acknowledge(90)
    spool.acknowledge(20)
    numbers = [each["n"] for each in records(spool)]
    assert numbers == list(range(20, 20 + len(numbers)))


def test_a_disk_that_refuses_costs_output_and_says_so(tmp_path: Path) -> None:
    writer = journal.Writer(str(tmp_path / "log"))
    writer.append(journal.OUT, b"before\n", False, 1)
    good, writer._file = writer._file, os.open("/dev/full", os.O_WRONLY)
    writer.append(journal.OUT, b"lost\n", False, 2)
    os.close(writer._file)
    writer._file = good
    writer.append(journal.OUT, b"after\n", False, 3)
    writer.close(4)
    assert [each["x"] for each in records(Spool(str(tmp_path / "log")))] == [
        "before",
        "5 bytes of output were lost here: the disk of the node refused them",
        "after",
    ]


def test_a_torn_last_frame_is_not_read(tmp_path: Path) -> None:
    writer = journal.Writer(str(tmp_path))
    writer.append(journal.OUT, b"whole\n", False, 1)
    writer.close(1)
    segment = tmp_path / journal.segments(str(tmp_path))[0]
    segment.write_bytes(segment.read_bytes() + journal.pack(journal.OUT, b"torn line\n", False, 2)[:-3])
    assert [each["x"] for each in records(Spool(str(tmp_path)))] == ["whole"]


def test_the_end_of_a_log_fits_a_report(tmp_path: Path) -> None:
    assert shorten(["a" * 3000, "b" * 3000, "c"], 4096) == ["a" * 1093, "b" * 3000, "c"]
    assert shorten(["a" * 5000], 4096) == ["a" * 4096]
