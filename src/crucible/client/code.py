"""The code that a question is about: a script with what it imports from beside it, or a folder. Sends text, never data;
what is too much is left out and said."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crucible.client.source import files_under
from crucible.model.errors import InvalidRequest

MAX_FILES = 500
MAX_CHARS = 5_000_000
ENDINGS = (".py", ".ipynb")

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\w+)|import[ \t]+([\w.]+))", re.MULTILINE)
# Four bytes at most make one character: more need not be read.
_MOST_BYTES = 4 * MAX_CHARS


@dataclass
class Code:
    files: list[dict[str, str]] = field(default_factory=list)
    entrypoint: str | None = None
    notes: list[str] = field(default_factory=list)
    _left: int = MAX_CHARS

    def add(self, name: str, text: str) -> bool:
        """False if there is no room for another file."""
        if len(self.files) >= MAX_FILES or self._left <= 0:
            return False
        if len(text) > self._left:
            self.notes.append(f"{name}: only its first {self._left:,} characters are sent")
            text = text[: self._left]
        self._left -= len(text)
        self.files.append({"name": name, "text": text})
        return True


def of_text(text: str, name: str = "script.py") -> Code:
    code = Code(entrypoint=name)
    code.add(name, text)
    return code


def of_path(path: Path, root: Path | None = None) -> Code:
    """Names are relative to `root`, or to the folder of the script. Raises InvalidRequest."""
    if path.is_dir():
        return _of_folder(path, _relative(path, root or path))
    folder = root or path.parent
    code = Code(entrypoint=_relative(path, folder))
    _add_imports(code, path, folder)
    return code


def decoded(raw: bytes) -> tuple[str, str | None]:
    """The text, and what had to be assumed to read it."""
    try:
        return raw.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return raw.decode("latin-1"), "not UTF-8; read as Latin-1"


def _of_folder(path: Path, prefix: str) -> Code:
    code = Code()
    found = [file for file in files_under(path) if file.name.endswith(ENDINGS)]
    if not found:
        raise InvalidRequest(f"{path} has no Python file or notebook; name the script itself")
    found.sort(key=lambda file: (file.name.count("/"), file.name))  # what is started stands near the top
    for number, file in enumerate(found):
        name = file.name if prefix == "." else f"{prefix}/{file.name}"
        if not code.add(name, _text(file.path, name, code)):
            code.notes.append(f"{len(found) - number} files are left out: too much code; name the script itself")
            break
    return code


def _add_imports(code: Code, path: Path, root: Path) -> None:
    """The script, then the files beside it that it imports, then those that they import."""
    waiting, seen = [path], {path.resolve()}
    while waiting:
        here = waiting.pop(0)
        name = _relative(here, root)
        text = _text(here, name, code)
        if not code.add(name, text):
            code.notes.append(f"{name} and what it imports are left out: too much code")
            return
        for other in _imported(text, here.parent, path.parent):
            if other.resolve() not in seen:
                seen.add(other.resolve())
                waiting.append(other)


def _imported(text: str, *folders: Path) -> Iterator[Path]:
    for match in _IMPORT.finditer(text):
        module, member, plain = match.groups()
        parts = (plain or module).strip(".").split(".")
        for names in (parts, [*parts, member or ""]):
            relative = "/".join(name for name in names if name)
            for folder in folders:
                for candidate in (folder / f"{relative}.py", folder / relative / "__init__.py"):
                    if relative and candidate.is_file():
                        yield candidate


def _text(path: Path, name: str, code: Code) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from None
    text, note = decoded(raw)
    if note:
        code.notes.append(f"{name}: {note}")
    return text


def _relative(path: Path, root: Path) -> str:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise InvalidRequest(
            f"{path} is not in {root}; write the job file into the folder of the code or above it"
        ) from None
