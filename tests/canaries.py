"""Canaries: values that must not get out, and a search for them that knows nothing of how Crucible hides them. It looks
for each as it is, encoded in whole or in part, quoted and escaped; into files, answers and command lines."""

import base64
import binascii
import gzip
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# A part of a value is a leak too, but a short one may stand anywhere by chance.
PART = 12


@dataclass(frozen=True)
class Hit:
    kind: str
    where: str


class Scanner:
    def __init__(self, canaries: Mapping[str, bytes]) -> None:
        self._forms = {kind: forms(value) for kind, value in canaries.items()}

    def look(self, data: bytes, where: str) -> list[Hit]:
        return [Hit(kind, where) for kind, some in self._forms.items() if any(form in data for form in some)]

    def look_into(self, folder: Path, without: Iterable[Path] = ()) -> list[Hit]:
        """Every byte of every file, also packed ones; and their names."""
        left_out, found = set(without), []
        for path in sorted(folder.rglob("*")):
            found += self.look(str(path.relative_to(folder)).encode(), f"the name of {path}")
            if path.is_file() and not path.is_symlink() and path not in left_out:
                data = path.read_bytes()
                found += self.look(data, str(path))
                if data[:2] == b"\x1f\x8b":
                    found += self.look(gzip.decompress(data), f"{path}, unpacked")
        return found


def forms(value: bytes) -> list[bytes]:
    parts = {value[at : at + PART] for at in range(0, max(1, len(value) - PART + 1), 4)}
    found = {part for part in parts if len(part) == min(PART, len(value))}
    for before in (b"", b"x", b"xy"):
        whole = base64.b64encode(before + value + b"xyz")
        # Without the first and last characters, which depend on what stands around.
        middle = whole[4:-8]
        found |= {middle, middle.replace(b"+", b"-").replace(b"/", b"_")}
    found |= {binascii.hexlify(value), value.decode("latin-1").encode("utf-16-le")}
    text = value.decode("utf-8", "surrogateescape")
    found |= {quote(value, safe="").encode(), json.dumps(text)[1:-1].encode("utf-8", "surrogateescape")}
    return [form for form in found if len(form) >= min(PART, len(value)) and form]


class CommandLines:
    """Of every process, again and again while something else happens."""

    def __init__(self, scanner: Scanner, proc: Path = Path("/proc")) -> None:
        self._scanner, self._proc = scanner, proc
        self.hits: set[Hit] = set()
        self.looks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "CommandLines":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _watch(self) -> None:
        while not self._over.is_set():
            lines = b"\n".join(self._lines())
            self.hits.update(self._scanner.look(lines, "a command line"))
            self.looks += 1
            self._over.wait(0.05)

    def _lines(self) -> Iterator[bytes]:
        for path in self._proc.glob("[0-9]*/cmdline"):
            try:
                yield path.read_bytes()
            except OSError:
                continue  # it has ended
