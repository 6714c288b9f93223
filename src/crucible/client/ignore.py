"""Ignore files with git's own meaning: nested files, negation, anchors, `**`, character classes, escapes. Works on
bytes, as git does. It decides about names only and reads no folder."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_BOM = b"\xef\xbb\xbf"
_NEVER = b"(?!)"
_SLASH = ord("/")
_STAR, _FOLDERS, _ANYTHING = b"[^/]*", b"(?:.*/)?", b".*"
_WILD = frozenset((_STAR, _FOLDERS, _ANYTHING))

_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset(b"0123456789")
_GRAPH = frozenset(range(0x21, 0x7F))
_CLASSES = {
    b"alnum": _LOWER | _UPPER | _DIGITS,
    b"alpha": _LOWER | _UPPER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGITS,
    b"graph": _GRAPH,
    b"lower": _LOWER,
    b"print": _GRAPH | {0x20},
    b"punct": _GRAPH - _LOWER - _UPPER - _DIGITS,
    b"space": frozenset(b" \t\n\r"),
    b"upper": _UPPER,
    b"xdigit": _DIGITS | frozenset(b"abcdefABCDEF"),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    pattern: re.Pattern[bytes]
    is_negated: bool
    is_for_folders: bool
    is_for_paths: bool  # compared with the path below the ignore file's folder, not with the last name alone

    def matches(self, path: bytes, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        subject = path if self.is_for_paths else path.rpartition(b"/")[2]
        return self.pattern.fullmatch(subject) is not None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules that hold in a folder: its own and those of the folders above it. Paths are relative to the topmost."""

    layers: tuple[tuple[bytes, tuple[Rule, ...]], ...] = ()

    def below(self, folder: bytes, rules: tuple[Rule, ...]) -> "Ignores":
        """With the rules of an ignore file in `folder` ("" is the topmost)."""
        return Ignores((*self.layers, (folder + b"/" if folder else b"", rules))) if rules else self

    def covers(self, path: bytes, is_folder: bool) -> bool:
        """True if `path`, whose parents are not ignored, is. The nearest file and its last line have the last word."""
        for prefix, rules in reversed(self.layers):
            inner = path[len(prefix) :]
            for rule in reversed(rules):
                if rule.matches(inner, is_folder):
                    return not rule.is_negated
        return False


def parse(data: bytes) -> tuple[Rule, ...]:
    """The rules of one ignore file. Lines that can match nothing are left out, as git leaves them."""
    lines = data.removeprefix(_BOM).split(b"\n")
    return tuple(rule for line in lines if (rule := _rule(line)) is not None)


def _rule(line: bytes) -> Rule | None:
    if line.startswith(b"#"):
        return None
    text = _trimmed(line.removesuffix(b"\r"))
    is_negated = text.startswith(b"!")
    text = text.removeprefix(b"!")
    is_for_folders = text.endswith(b"/")
    text = text.removesuffix(b"/")
    is_for_paths = b"/" in text
    text = text.removeprefix(b"/")
    if not text:
        return None
    return Rule(re.compile(_expression(text), re.DOTALL), is_negated, is_for_folders, is_for_paths)


def _trimmed(line: bytes) -> bytes:
    """Without spaces at the end, unless a backslash holds them."""
    end = len(line.rstrip(b" "))
    backslashes = end - len(line[:end].rstrip(b"\\"))
    is_held = backslashes % 2 == 1 and end < len(line)
    return line[: end + 1] if is_held else line[:end]


def _expression(glob: bytes) -> bytes:
    """The regular expression of a whole pattern. A pattern that git finds malformed matches nothing."""
    try:
        pieces = list(_pieces(glob))
    except _MalformedError:
        return _NEVER
    wild = [i for i, piece in enumerate(pieces) if piece in _WILD]
    for start, end in pairwise(wild):
        if pieces[start] == _STAR:
            # The first place where the text between two stars fits is as good as any: no need to try the others, which
            # could take for ever.
            pieces[start] = b"(?>[^/]*?"
            pieces[end - 1] += b")"
    return b"".join(pieces)


class _MalformedError(Exception):
    pass


def _pieces(glob: bytes) -> Iterator[bytes]:
    # Git compares what stands before the first special character as plain text and gives only the rest to its matcher,
    # which therefore sees a `**` there as the start of a pattern.
    literal_length = len(re.match(rb"[^*?\[\\]*", glob)[0])  # type: ignore[index]
    yield re.escape(glob[:literal_length])
    i = literal_length
    while i < len(glob):
        match glob[i : i + 1]:
            case b"*":
                piece, i = _stars(glob, i, is_start=i == literal_length)
            case b"?":
                piece, i = b"[^/]", i + 1
            case b"[":
                piece, i = _bracket(glob, i + 1)
            case b"\\":
                piece, i = re.escape(_at(glob, i + 1)), i + 2
            case plain:
                piece, i = re.escape(plain), i + 1
        yield piece


def _stars(glob: bytes, start: int, is_start: bool) -> tuple[bytes, int]:
    end = start
    while glob[end : end + 1] == b"*":
        end += 1
    starts_part = is_start or glob[start - 1 : start] == b"/"
    following = glob[end : end + 2]
    if end - start == 1 or not starts_part or not (following == b"" or following[:1] == b"/" or following == b"\\/"):
        return _STAR, end
    if following[:1] == b"/":
        return _FOLDERS, end + 1  # `**/` also stands for no folder at all
    return _ANYTHING, end


def _bracket(glob: bytes, start: int) -> tuple[bytes, int]:
    """The class that begins at `start`, after its `[`, and the index after its end."""
    is_negated = glob[start : start + 1] in (b"!", b"^")
    i = start + is_negated
    members: set[int] = set()
    previous = -1  # the last single character: what a range may start from
    is_first = True
    while is_first or _at(glob, i) != b"]":
        is_first = False
        character = _at(glob, i)
        if character == b"-" and previous > 0 and glob[i + 1 : i + 2] not in (b"", b"]"):
            last, i = _escaped(glob, i + 1)
            members.update(range(previous, last + 1))
            previous = -1
        elif character == b"[" and glob[i + 1 : i + 2] == b":":
            added, previous, i = _class(glob, i)
            members |= added
        else:
            previous, i = _escaped(glob, i)
            members.add(previous)
    chosen = set(range(256)) - members if is_negated else members
    chosen.discard(_SLASH)
    inside = b"".join(b"\\x%02x" % code for code in sorted(chosen))
    return (b"[" + inside + b"]" if inside else _NEVER), i + 1


def _class(glob: bytes, start: int) -> tuple[frozenset[int], int, int]:
    """The members of `[:name:]` at `start`, the character a range may start from, and the index after it. Without its
    `:]` the bracket is a plain character."""
    end = glob.find(b"]", start + 2)
    if end < 0:
        raise _MalformedError
    if end == start + 2 or glob[end - 1 : end] != b":":
        return frozenset(b"["), ord("["), start + 1
    name = glob[start + 2 : end - 1]
    if name not in _CLASSES:
        raise _MalformedError
    return _CLASSES[name], -1, end + 1


def _escaped(glob: bytes, i: int) -> tuple[int, int]:
    """The character at `i`, or the one after a backslash, and the index after it."""
    if _at(glob, i) == b"\\":
        i += 1
    return _at(glob, i)[0], i + 1


def _at(glob: bytes, i: int) -> bytes:
    if i >= len(glob):
        raise _MalformedError
    return glob[i : i + 1]
