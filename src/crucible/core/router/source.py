"""Text becomes syntax trees: scripts and the code cells of notebooks, whatever their encoding marks, line ends, age or
mistakes. What cannot be read is left out and said; what is too much is left out and said. Time is bounded by how much
text is given to the parser, counted over all files."""

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from crucible.core.router.blocks import Block, closers, split
from crucible.core.router.findings import EVIDENCE_LENGTH, Site

# A file up to this size is parsed at once; a larger one statement by statement, so that data in it is passed over.
WHOLE_CHARS = 128 * 1024
# A statement of the outermost level that is larger is data, not code.
STATEMENT_CHARS = 32 * 1024
# Of all files together, some seven thousand lines: two seconds of a slow core at the very worst.
PARSED_CHARS = 256 * 1024
# Lines that are not Python 3 and are replaced by `pass`, per file.
REPAIRS = 20
PROBLEMS_TOLD = 5

_FILE = "<job code>"  # the parser's warnings about it are nobody's business
_TROUBLE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_UNREADABLE = re.compile("[\x00\f\ud800-\udfff]")
_MAGIC = re.compile(r"^(\s*)[%!?](?=\S)", re.MULTILINE)
_OLD_EXCEPT = re.compile(r"^(\s*except\s+[\w.]+),\s*(\w+)\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SourceFile:
    name: str
    text: str


@dataclass(slots=True)
class Unit:
    """One script or notebook as trees, which follow each other."""

    name: str
    lines: list[str]
    trees: list[ast.Module]
    cells: list[int] = field(default_factory=list)  # the line on which each code cell starts; empty: no notebook
    problems: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # text of statements that could not be parsed

    @property
    def module(self) -> str:
        """As others import it."""
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def site(self, line: int) -> Site:
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        text = text if len(text) <= EVIDENCE_LENGTH else text[: EVIDENCE_LENGTH - 1] + "…"
        if not self.cells:
            return Site(self.name, line, text)
        cell = bisect_right(self.cells, line) - 1
        return Site(f"{self.name} cell {cell + 1}", line - self.cells[cell] + 1, text)

    def told(self, line: int, message: str) -> None:
        is_said = any(problem.endswith(f": {message}") for problem in self.problems)
        if len(self.problems) < PROBLEMS_TOLD and not is_said:
            site = self.site(line)
            self.problems.append(f"{site.file}:{site.line}: {message}")


class Reader:
    """Reads file after file until its share of parsing is used up."""

    def __init__(self, chars: int = PARSED_CHARS) -> None:
        self._left = chars

    def read(self, file: SourceFile) -> Unit:
        text = _plain(file.text)
        cells: list[int] = []
        problem = ""
        if file.name.endswith(".ipynb"):
            text, cells, problem = _notebook(text)
        unit = Unit(file.name, text.split("\n"), [], cells)
        if problem:
            unit.problems.append(f"{file.name}: {problem}")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=re.escape(_FILE))
            unit.trees.extend(self._trees(text, unit))
        return unit

    def _trees(self, text: str, unit: Unit) -> Iterator[ast.Module]:
        if len(text) <= WHOLE_CHARS:
            tree, _ = self._parse(text)
            if tree is not None:
                yield tree
                return
        for chunk in _chunks(split(text)):
            yield from self._chunk(chunk, unit)
            if self._left <= 0:
                unit.told(chunk[-1].line, "only what stands before this line was read: there is too much code")
                return

    def _chunk(self, chunk: list[Block], unit: Unit) -> Iterator[ast.Module]:
        """Together if that works, which is quicker; else one by one."""
        first = chunk[0]
        if len(first.text) > STATEMENT_CHARS:
            unit.told(first.line, f"a statement of {len(first.text):,} characters was passed over as data")
            return
        tree, _ = self._parse("".join(block.text for block in chunk)) if len(chunk) > 1 else (None, None)
        if tree is not None:
            yield ast.increment_lineno(tree, first.line - 1)
            return
        for block in chunk:
            tree = self._mended(block, unit)
            if tree is not None:
                yield ast.increment_lineno(tree, block.line - 1)

    def _mended(self, block: Block, unit: Unit) -> ast.Module | None:
        """A line that is no Python 3 becomes `pass`, so that one slip or an old `print` costs one line."""
        lines = _OLD_EXCEPT.sub(r"\1 as \2:", block.text).split("\n")
        told: set[int] = set()
        for _ in range(REPAIRS):
            tree, error = self._parse("\n".join(lines))
            if tree is not None:
                return tree
            at = _line_of(error, len(lines))
            if at is None or self._left <= 0:
                unit.told(block.line, _too_much(error))
                break
            if at not in told:
                unit.told(block.line + at, f"not Python 3: {_said(error)}")
            _mend(lines, at, _said(error), is_first=at not in told)
            told.add(at)
        unit.unread.append(block.text)
        return None

    def _parse(self, text: str) -> tuple[ast.Module | None, Exception | None]:
        if len(text) > self._left:
            self._left = 0
            return None, None
        self._left -= len(text)
        try:
            return ast.parse(text, filename=_FILE), None
        except _TROUBLE as error:
            return None, error


def _plain(text: str) -> str:
    """Without a byte order mark, other line ends, and what no parser takes."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _UNREADABLE.sub(" ", text)


def _chunks(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """Neighbours together, up to the size of a statement; a larger statement alone."""
    chunk: list[Block] = []
    size = 0
    for block in blocks:
        if chunk and size + len(block.text) > STATEMENT_CHARS:
            yield chunk
            chunk, size = [], 0
        chunk.append(block)
        size += len(block.text)
    if chunk:
        yield chunk


def _line_of(error: Exception | None, count: int) -> int | None:
    """The line to give up, from 0. An unfinished bracket is told at its end of file by some parsers."""
    if not isinstance(error, SyntaxError) or not error.lineno:
        return None
    return min(error.lineno, count) - 1


def _mend(lines: list[str], at: int, message: str, is_first: bool) -> None:
    """What is missing is added, once; what cannot be helped is blanked, a header without its block."""
    line = lines[at]
    if is_first and message == "expected ':'":
        lines[at] = line + ":"
    elif is_first and message.endswith("was never closed"):
        last = max(i for i, one in enumerate(lines) if one.strip())
        lines[last] += closers("\n".join(lines))
    else:
        indent = line[: len(line) - len(line.lstrip())]
        is_header = line.rstrip().endswith(":") and line.strip() != "if True:"
        lines[at] = f"{indent}if True:" if is_header else f"{indent}pass"


def _said(error: Exception | None) -> str:
    return error.msg if isinstance(error, SyntaxError) else "cannot be read"


def _too_much(error: Exception | None) -> str:
    if error is None:
        return "this was not read: there is too much code"
    return f"too deeply nested to be read ({type(error).__name__})"


def _notebook(text: str) -> tuple[str, list[int], str]:
    """The code of its cells, the line on which each starts, and what is wrong with it."""
    try:
        cells = json.loads(text)["cells"]
        sources = [_source(cell) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return "", [], "not a notebook: its JSON has no list of cells"
    starts, line, parts = [], 1, []
    for source in sources:
        code = _MAGIC.sub(r"\1# ", _plain(source).rstrip("\n"))
        parts.append(code)
        starts.append(line)
        line += code.count("\n") + 1
    return "\n".join(parts), starts, "" if parts else "the notebook has no code cells"


def _source(cell: dict[str, object]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)
