"""Builds `crucible-agent.pyz`, the agent as one file. The same sources always give the same bytes.

For this computer, bytecode of the interpreter that builds lies beside every source: an agent then starts in half the
time. For machines elsewhere only the sources go along, so that every server of one version hands out the same file."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import zipfile
from functools import lru_cache
from pathlib import Path

# Inside the archive the package stands alone, under a name that no installed package has.
PACKAGE = "crucible_agent"
# A folder inside the archive for PYTHONPATH; `agent.prepare` names it too.
LIBRARY = "library"
_MAIN = b"import sys\n\nfrom %s.main import main\n\nsys.exit(main(sys.argv[1:]))\n" % PACKAGE.encode()
# The earliest time a zip archive can hold.
_TIME = (1980, 1, 1, 0, 0, 0)
# "Checked by hash, but do not check": the source beside it is the one it was made from.
_UNCHECKED = (1).to_bytes(4, "little")
# The last format without references, which would depend on what else this process has loaded.
_MARSHAL_VERSION = 2


def build(path: Path) -> str:
    """Writes the archive for this computer, whole or not at all; returns its sha256."""
    content = compiled()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=None)
def compiled() -> bytes:
    """The archive for this computer. What is running is what it is made from, however long that runs."""
    sources = _sources()
    bytecode = {name + "c": _bytecode(source, name) for name, source in sources.items()}
    return _archive({**sources, **bytecode, **_library()})


def portable() -> bytes:
    """The archive for machines elsewhere."""
    return _archive({**_sources(), **_library()})


def _sources() -> dict[str, bytes]:
    folder = Path(__file__).parent
    found = [path for path in folder.rglob("*.py") if path.name != Path(__file__).name]
    return {f"{PACKAGE}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in found}


def _library() -> dict[str, bytes]:
    """What training scripts import, for a Python that has nothing of Crucible. One that has it all is not robbed of it:
    the rest is looked for where it is installed."""
    folder = Path(__file__).parent.parent
    first = b"from pkgutil import extend_path\n\n__path__ = extend_path(__path__, __name__)\n"
    found = {f"{LIBRARY}/crucible/train/{path.name}": path.read_bytes() for path in (folder / "train").glob("*.py")}
    return {**found, f"{LIBRARY}/crucible/__init__.py": first + (folder / "__init__.py").read_bytes()}


def launcher_sources() -> dict[str, str]:
    """What `--launch` needs, as a folder that Python can run: for people who start a job by hand."""
    main = b"import sys\n\nfrom %s.launchers import main\n\nsys.exit(main(sys.argv[2:]))\n" % PACKAGE.encode()
    own = {name: data for name, data in _sources().items() if name.startswith(f"{PACKAGE}/launchers/")}
    files = {"__main__.py": main, f"{PACKAGE}/__init__.py": b"", **own}
    return {name: data.decode() for name, data in files.items()}


def _archive(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted({"__main__.py": _MAIN, **files}.items()):
            # Not compressed: every start of a rank would pay for the unpacking.
            archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_STORED)
    return content.getvalue()


def _bytecode(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source)
    return head + marshal.dumps(code, _MARSHAL_VERSION)
