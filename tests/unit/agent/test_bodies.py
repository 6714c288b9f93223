"""A signed PUT sends exactly the spans of its files, by the kernel or in blocks; a file that changed is named."""

import socket
import threading
from pathlib import Path

import pytest

from crucible.agent import bodies
from crucible.agent.bodies import Files, Unreadable


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in "abc"]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 1000 + b"middle" * 100_000 + b"end")
    return paths


def sent(body: Files, is_plain: bool) -> tuple[bytes, int]:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    received, moved = bytearray(), []

    def read() -> None:
        while data := theirs.recv(1 << 16):
            received.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        body.send(ours, is_plain, moved.append)
    finally:
        ours.close()
        reader.join()
        theirs.close()
    return bytes(received), sum(moved)


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("block", [1000, 1 << 20])
def test_a_span_of_a_large_file(files: list[Path], is_plain: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", block)
    monkeypatch.setattr(bodies, "_SEND_BYTES", block)
    body = Files([(str(files[0]), 500, 100_000)])
    assert sent(body, is_plain) == (files[0].read_bytes()[500:100_500], 100_000)
    assert body.size == 100_000


@pytest.mark.parametrize("is_plain", [True, False])
def test_small_files_one_after_another(files: list[Path], is_plain: bool) -> None:
    body = Files([(str(path), 0, path.stat().st_size) for path in files])
    assert sent(body, is_plain) == (b"".join(path.read_bytes() for path in files), body.size)


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_a_file_that_shrank_or_went_is_named(files: list[Path], is_plain: bool, count: int) -> None:
    spans = [(str(path), 0, path.stat().st_size) for path in files[:count]]
    files[count - 1].write_bytes(b"short")
    with pytest.raises(Unreadable, match="ends too early"):
        sent(Files(spans), is_plain)
    files[count - 1].unlink()
    with pytest.raises(Unreadable, match="No such file"):
        sent(Files(spans), is_plain)


def test_a_link_is_not_followed(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files[0])
    with pytest.raises(Unreadable):
        sent(Files([(str(tmp_path / "link"), 0, 10)]), True)
