"""Text is cut into the statements of its outermost level without parsing it: only strings, comments and brackets are
told apart. So a file with a mistake, or with megabytes of data, is still read around it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Possessive, and a string without an end goes to the end of its line or file: linear whatever the text.
_TOKEN = re.compile(
    r"""
      \#[^\n]*+
    | \"\"\"(?:[^"\\]++|\\.|"(?!""))*+(?:\"\"\"|\Z)
    | '''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\Z)
    | "(?:[^"\\\n]++|\\.)*+"?
    | '(?:[^'\\\n]++|\\.)*+'?
    | [([{] | [)\]}] | \\\n | \n
    """,
    re.VERBOSE | re.DOTALL,
)
# These go on with the statement before them.
_GOES_ON = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]")


@dataclass(frozen=True, slots=True)
class Block:
    text: str
    line: int  # of its start, from 1


def split(text: str) -> Iterator[Block]:
    """Every line belongs to one block. A bracket that is never closed is taken as closed where a line of the outermost
    level starts with a word that only starts statements."""
    start, start_line, line, is_decorated = 0, 1, 1, False
    for at, lines in _line_starts(text):
        line += lines
        if not _starts_statement(text, at):
            continue
        if at > start and not is_decorated:
            yield Block(text[start:at], start_line)
            start, start_line = at, line
        is_decorated = text.startswith("@", at)
    if start < len(text):
        yield Block(text[start:], start_line)


def closers(text: str) -> str:
    """The brackets that are missing at the end of `text`."""
    open_brackets: list[str] = []
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in _CLOSING:
            open_brackets.append(_CLOSING[word])
        elif word in ")]}" and open_brackets:
            open_brackets.pop()
    return "".join(reversed(open_brackets))


_CLOSING = {"(": ")", "[": "]", "{": "}"}
_STATEMENT = re.compile(r"(?:def|class|import|from|if|for|while|with|try|return|async|@)\b|@")


def _line_starts(text: str) -> Iterator[tuple[int, int]]:
    """Where lines of the outermost level may start, with the number of lines since the last of them."""
    depth, lines = 0, 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word == "\n":
            lines += 1
            if depth and _STATEMENT.match(text, token.end()):
                depth = 0
            if depth == 0:
                yield token.end(), lines
                lines = 0
        elif word in "([{":
            depth += 1
        elif word in ")]}":
            depth = max(0, depth - 1)
        else:
            lines += word.count("\n")


def _starts_statement(text: str, at: int) -> bool:
    first = text[at : at + 1]
    return first not in ("", " ", "\t", "\n", "#") and not _GOES_ON.match(text, at)
