"""Where output is cut: nothing is lost, nothing is too long, and no character is split that need not be."""

from hypothesis import given
from hypothesis import strategies as st

from crucible.agent.cutter import FLUSH_AFTER_S, MAX_LINE_BYTES, Cutter

CHUNKS = st.lists(
    st.one_of(
        st.binary(max_size=200),
        st.sampled_from([b"\n", b"a\n\nb", b"\r", "€".encode()[:2], "€".encode()[2:], "😀".encode()]),
        st.integers(1, MAX_LINE_BYTES).map(lambda size: b"x" * size),
        st.integers(1, MAX_LINE_BYTES // 3).map(lambda size: "€".encode() * size),
    ),
    max_size=12,
)


def lines_of(payloads: list[tuple[bytes, bool]]) -> list[bytes]:
    """What a reader puts together again."""
    lines: list[bytes] = []
    is_open = False
    for payload, is_piece in payloads:
        pieces = payload.split(b"\n")[:-1] if payload.endswith(b"\n") else [payload]
        if is_open:
            lines[-1] += pieces.pop(0)
        lines += pieces
        is_open = is_piece
    return lines


@given(CHUNKS, st.data())
def test_the_pieces_give_the_lines_that_were_printed(chunks: list[bytes], data: st.DataObject) -> None:
    cutter, now, payloads = Cutter(), 0.0, []
    for chunk in chunks:
        payloads += cutter.feed(chunk, now)
        now += data.draw(st.sampled_from([0.0, 0.4, 2.0]))
        if cutter.flush_at() <= now:
            payloads += cutter.flush(now)
    payloads += cutter.end()
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    # A flushed piece at the very end has nobody to complete it; otherwise the lines are the same.
    assert lines_of(payloads) == expected
    assert all(payload for payload, _ in payloads)


@given(CHUNKS)
def test_no_record_is_longer_than_the_limit(chunks: list[bytes]) -> None:
    cutter = Cutter()
    payloads = [payload for chunk in chunks for payload in cutter.feed(chunk, 0.0)] + cutter.end()
    assert all(len(line) <= MAX_LINE_BYTES for payload, _ in payloads for line in payload.split(b"\n"))


@given(st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1, max_size=400), st.integers(1, 300))
def test_text_is_not_cut_inside_a_character(text: str, times: int) -> None:
    cutter = Cutter()
    data = (text * times + "\n").encode()
    payloads = []
    for start in range(0, len(data), MAX_LINE_BYTES):
        payloads += cutter.feed(data[start : start + MAX_LINE_BYTES], 0.0)
    assert "".join(payload.decode() for payload, _ in payloads) == text * times + "\n"


def test_an_unfinished_line_becomes_due_by_its_first_byte() -> None:
    cutter = Cutter()
    assert cutter.flush_at() == float("inf")
    cutter.feed(b"done\n50%", 10.0)
    cutter.feed(b"\r51%", 10.9)
    assert cutter.flush_at() == 10.0 + FLUSH_AFTER_S
    assert cutter.flush(11.0) == [(b"50%\r51%", True)]
    assert cutter.flush_at() == float("inf")


def test_a_flush_keeps_the_beginning_of_a_character_back() -> None:
    cutter = Cutter()
    cutter.feed(b"price: \xe2\x82", 0.0)
    assert cutter.flush(1.0) == [(b"price: ", True)]
    assert cutter.feed(b"\xac\n", 1.1) == [("€\n".encode(), False)]
