"""All files of a job as one thing to ask: the script that starts, and those of its files that it imports. Names are
told with what they were imported as: `nn.Linear` is torch.nn.Linear wherever that is what it means."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from crucible.core.architectures import Architectures
from crucible.core.router.constants import Evaluator, Known
from crucible.core.router.facts import Call, ClassFact, Facts, Import, Named, Scope, collect
from crucible.core.router.findings import Site
from crucible.core.router.source import Reader, SourceFile

_NAME_DEPTH = 12
_UNKNOWN = "?"
# A file that is started rather than imported is called so.
_USUAL_STARTS = ("train", "main", "run", "finetune", "fine_tune", "pretrain", "sweep", "infer", "predict", "eval")
_NEVER_STARTED = ("setup", "conftest", "__init__")
_CODE = (".py", ".ipynb")


class Code:
    def __init__(self, facts: Sequence[Facts], notes: Sequence[str], architectures: Architectures) -> None:
        self.facts = facts  # the entry first
        self.architectures = architectures
        self.notes = tuple(notes)
        self.named: dict[str, list[Named]] = defaultdict(list)
        self.classes: dict[str, ClassFact] = {}
        for one in facts:
            for name, entries in one.named.items():
                self.named[name].extend(entries)
            for name, fact in one.classes.items():
                self.classes.setdefault(name, fact)
        self._aliases = {one.unit.name: one.aliases for one in facts}
        self._scopes = {module: one.scope for one in facts for module in _modules(one.unit.name)}
        self.constants = Evaluator(self)
        self.calls = [self._named_call(call) for one in facts for call in one.calls]
        self._by_last: dict[str, list[int]] = defaultdict(list)
        for index, call in enumerate(self.calls):
            self._by_last[call.last].append(index)
        for fact in self.classes.values():
            fact.bases = tuple(self.qualified(base, fact.scope.parent or fact.scope) for base in fact.node.bases)

    @property
    def entry(self) -> str:
        return self.facts[0].unit.name if self.facts else ""

    @property
    def imports(self) -> Iterator[tuple[Import, bool]]:
        """Every import, and whether anything is done with it."""
        for one in self.facts:
            for imported in one.imports:
                yield imported, imported.local in one.used or "." in imported.local

    @property
    def texts(self) -> Iterator[tuple[str, Site]]:
        for one in self.facts:
            for text, line in one.texts:
                yield text, one.unit.site(line)

    @property
    def attributes(self) -> Iterator[tuple[str, Site]]:
        """Names with a dot that are read: torch.bfloat16."""
        for one in self.facts:
            for node, scope in one.attributes:
                yield self.qualified(node, scope), one.unit.site(node.lineno)

    def values_called(self, name: str) -> Iterator[tuple[Known, str]]:
        """What variables, options and fields of that name are worth, and which of them it is."""
        for one in self.facts:
            for value in one.scope.bindings.get(name, ()):
                known = self.constants.value(value, one.scope)
                if known is not None:
                    yield known, f"the variable {name}"
        known = self.constants.named(name)
        if known is not None:
            yield known, f"default of the option {name}" if known.is_option else f"the field {name}"

    def calls_of(self, *names: str) -> Iterator[Call]:
        """By the whole name, or by its end if that starts with a dot: ".backward"; as they stand in the code."""
        whole = frozenset(name for name in names if not name.startswith("."))
        ends = tuple(name for name in names if name.startswith("."))
        likely = {index for name in names for index in self._by_last.get(name.rpartition(".")[2], ())}
        for index in sorted(likely):
            call = self.calls[index]
            if call.name in whole or (ends and call.name.endswith(ends)):
                yield call

    def qualified(self, node: ast.expr, scope: Scope, depth: int = 0) -> str:
        """`model.fit` of `model = keras.Sequential()` is keras.Sequential().fit; what nobody knows starts with ?."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self._meaning(node.id, scope, depth))
        elif isinstance(node, ast.Call) and depth < _NAME_DEPTH:
            parts.append(self.qualified(node.func, scope, depth + 1) + "()")
        else:
            parts.append(_UNKNOWN)
        return ".".join(reversed(parts))

    def imported_value(self, name: str, scope: Scope, depth: int) -> Known | None:
        """The constant that another file of the job calls so: `from config import BATCH`, or config.BATCH."""
        head, _, tail = name.partition(".")
        meant = self._aliases.get(scope.unit.name, {}).get(head)
        if meant is None:
            return None
        module, _, attribute = (f"{meant}.{tail}" if tail else meant).rpartition(".")
        other = self._scopes.get(module)
        if other is None or other is scope.module or attribute not in other.bindings:
            return None
        return self.constants.value(ast.Name(attribute, ast.Load()), other, None, depth)

    def _meaning(self, name: str, scope: Scope, depth: int) -> str:
        at: Scope | None = scope
        while at is not None:
            values = at.bindings.get(name)
            if values:
                return self._assigned(values, at, depth) or name
            if values is not None:
                return name  # a parameter
            at = at.parent
        return self._aliases.get(scope.unit.name, {}).get(name, name)

    def _assigned(self, values: Sequence[ast.expr | None], scope: Scope, depth: int) -> str | None:
        """What made the value of a variable, if it is always the same."""
        if depth >= _NAME_DEPTH:
            return None
        made = {
            self.qualified(value.func, scope, depth + 1) + "()" if isinstance(value, ast.Call) else None
            for value in values[:4]
        }
        return made.pop() if len(made) == 1 else None

    def _named_call(self, call: Call) -> Call:
        call.name = self.qualified(call.node.func, call.scope)
        call.last = call.name.rpartition(".")[2]
        return call


def read(files: Iterable[SourceFile], architectures: Architectures, entry: str | None = None) -> Code:
    """The code that starts at `entry`; if nobody says where, at the file that looks most like a start."""
    given = [file for file in files if file.name.endswith(_CODE)]
    if not given:
        return Code((), ("there is no Python file or notebook to read",), architectures)
    reader = Reader()
    start = entry if entry in {file.name for file in given} else _likely_start(given)
    facts, notes = _closure(given, start, reader)
    return Code(facts, notes, architectures)


def _closure(given: Sequence[SourceFile], start: str, reader: Reader) -> tuple[list[Facts], list[str]]:
    """The start, then what it imports, then what those import."""
    by_name = {file.name: file for file in given}
    homes = {module: file.name for file in given for module in _modules(file.name)}
    waiting, seen, facts, notes = [start], {start}, [], []
    while waiting:
        unit = reader.read(by_name[waiting.pop(0)])
        facts.append(collect(unit))
        notes.extend(unit.problems)
        for name in _local_imports(facts[-1], homes):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    left = len(given) - len(seen)
    if len(given) > 1:
        notes.insert(
            0, f"starts at {start}" + (f"; files that it does not import were not read: {left}" if left else "")
        )
    return facts, notes


def _local_imports(facts: Facts, homes: dict[str, str]) -> Iterator[str]:
    for imported in facts.imports:
        for module in (imported.module, imported.module.rpartition(".")[0]):
            if module in homes:
                yield homes[module]


def _modules(name: str) -> Iterator[str]:
    """What a file may be imported as: relative imports and folders on the path leave out its first names."""
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    for start in range(len(parts)):
        yield ".".join(parts[start:])


def _likely_start(files: Sequence[SourceFile]) -> str:
    """By its name, by what it does when started, then the nearest to the top."""

    def likelihood(file: SourceFile) -> tuple[int, int, int, str]:
        stem = file.name.rpartition("/")[2].rpartition(".")[0].lower()
        usual = next((i for i, word in enumerate(_USUAL_STARTS) if word in stem), len(_USUAL_STARTS))
        is_test = stem.startswith("test_") or stem in _NEVER_STARTED or "tests/" in file.name
        starts = "__main__" in file.text
        return (2 if is_test else 0 if starts else 1, usual, file.name.count("/"), file.name)

    return min(files, key=likelihood).name
