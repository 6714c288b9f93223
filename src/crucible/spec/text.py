"""The raw text of a spec: how long it may be, which encoding and which characters. Refuses what editors and YAML
parsers count differently, because a position must be the same for everyone."""

import re

from crucible.spec.problems import Position, Reading

MAX_BYTES = 256 * 1024  # a spec is written by people; data goes into the shipped code
TOP = "job"  # the field that problems of the whole file are told of
START = Position(1, 1)

_BOM = "\ufeff"
_LINE_END = re.compile("\r\n|\r|\n")
# Control characters, the line separators of Unicode (YAML 1.1 counts them as line ends, editors do not), lone
# surrogates and non-characters. Tab, LF and CR stay.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def decode(raw: str | bytes, reading: Reading) -> str:
    """The text of `raw`, or a problem and Stop."""
    data = raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        reading.stop(START, TOP, f"the spec is longer than {MAX_BYTES // 1024} KiB", "move data into files of the code")
    text = raw if isinstance(raw, str) else _decoded(raw, reading)
    _check_characters(text, reading)
    return text


def position(text: str, index: int) -> Position:
    """Where the character at `index` stands; the index after the last one is the end."""
    ends = [found.end() for found in _LINE_END.finditer(text, 0, index)]
    return Position(len(ends) + 1, index - (ends[-1] if ends else 0) + 1)


def _decoded(raw: bytes, reading: Reading) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        reading.stop(START, TOP, "the text is UTF-16, not UTF-8", "save the file as UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        reading.stop(position(before, len(before)), TOP, "the text is not UTF-8", "save the file as UTF-8")


def _check_characters(text: str, reading: Reading) -> None:
    found = _REFUSED.search(text)
    if found is None:
        return
    at, character = position(text, found.start()), found.group()
    if character == _BOM and found.start() == 0:
        reading.stop(START, TOP, "the text starts with a byte order mark", "save the file as UTF-8 without BOM")
    if character == "\x00":
        reading.stop(at, TOP, "the text contains a NUL byte", "save the file as plain UTF-8 text")
    reading.stop(at, TOP, f"the character U+{ord(character):04X} is not allowed", "remove it")
