"""What is wrong with a spec, and where. Everything that reads a spec adds to one `Reading`, so that a user sees all
problems at once; nothing here decides what is right."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, NoReturn

from crucible.model.errors import InvalidSpec

MOST_PROBLEMS = 100  # more would hide the first ones, and take long to make
SHOWN_LENGTH = 40  # of a value that a message repeats: enough to recognise it


class Position(NamedTuple):
    """1-based, in characters, as editors count. Line 0: not known, as in checks made after the text was read."""

    line: int
    column: int


NOWHERE = Position(0, 0)
_IN_STEP = re.compile(r"^job\.steps\[[0-9]+\]\.")  # a step has the fields of a job


@dataclass(frozen=True, slots=True)
class Problem:
    line: int
    column: int
    field: str
    message: str
    hint: str = ""


class Stop(Exception):
    """Reading cannot go on; the reason is already among the problems."""


@dataclass(slots=True)
class Reading:
    """What was found on the way through one spec: problems, warnings, which fields were given and which of them
    could not be read. `homes` says where each known name belongs, `samples` how each known field may look: hints come
    from them."""

    homes: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    given: dict[str, Position] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    is_partial: bool = False  # what is missing may still come, from a template

    def add(self, at: Position, path: str, message: str, hint: str = "") -> None:
        """One slip is told once, however many steps take it over."""
        field = _IN_STEP.sub("job.", path)
        if at != NOWHERE and any(_is_same(one, at, field, message) for one in self.problems):
            return
        self.problems.append(Problem(*at, path, message, hint or self._sample(path)))
        if len(self.problems) >= MOST_PROBLEMS:
            raise Stop

    def stop(self, at: Position, path: str, message: str, hint: str = "") -> NoReturn:
        self.add(at, path, message, hint)
        raise Stop

    def warn(self, at: Position, path: str, message: str, hint: str = "") -> None:
        self.warnings.append(Problem(*at, path, message, hint))

    def is_sound(self, *paths: str) -> bool:
        """True if none of the fields was given in a form that could not be read."""
        return self.unreadable.isdisjoint(paths)

    def _sample(self, path: str) -> str:
        """A sample of the field at `path`, or of the innermost known field that it is a part of."""
        path = _IN_STEP.sub("job.", path)
        while path and path not in self.samples:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"for example `{self.samples[path]}`" if path else ""


def _is_same(one: Problem, at: Position, field: str, message: str) -> bool:
    return (one.line, one.column, one.message) == (*at, message) and _IN_STEP.sub("job.", one.field) == field


def invalid_spec(problems: Iterable[Problem], what: str = "the job spec") -> InvalidSpec:
    """The error that carries all of `problems`, in order of position."""
    ordered = sorted(problems, key=lambda p: (p.line, p.column))
    return InvalidSpec(f"{what} is not valid{_summary(ordered)}", problems=[asdict(p) for p in ordered])


def format_problems(problems: Iterable[Problem | Mapping[str, Any]], filename: str) -> str:
    """One line per problem, `file:line:column: field: message (hint)`, as compilers print them."""
    return "\n".join(f"{filename}:{_line(_problem(p))}" for p in problems)


def shown(text: str) -> str:
    """`text` in quotes, on one line and short, to be repeated in a message."""
    cut = text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "'"


def below(path: str, name: str) -> str:
    """The path of field `name` of the mapping at `path`."""
    is_simple = len(name) <= SHOWN_LENGTH and name.replace("-", "_").isidentifier()
    if not is_simple:
        return f"{path}[{shown(name)}]"
    return f"{path}.{name}" if path else name


def _problem(given: Problem | Mapping[str, Any]) -> Problem:
    return given if isinstance(given, Problem) else Problem(**given)


def _line(problem: Problem) -> str:
    place = f"{problem.line}:{problem.column}: " if problem.line else " "
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{place}{problem.field}: {problem.message}{hint}"


def _summary(problems: list[Problem]) -> str:
    if len(problems) == 1:
        return ": " + _line(problems[0]).strip()
    count = f"{len(problems)}" if len(problems) < MOST_PROBLEMS else f"at least {MOST_PROBLEMS}"
    lines = (f"\n  {_line(p).strip()}" for p in problems)
    return f", {count} problems:" + "".join(lines)
