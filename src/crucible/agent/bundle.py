"""Builds `crucible-agent.pyz`, the agent as one file. The same sources and interpreter always give the same bytes.

Beside every source lies its bytecode for the interpreter that builds: on the same machine an agent then starts in half
the time. Any other interpreter finds a foreign magic number and compiles the source."""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import zipfile
from pathlib import Path

# Inside the archive the package stands alone, under a name that no installed package has.
PACKAGE = "crucible_agent"
_MAIN = b"import sys\n\nfrom %s.main import main\n\nsys.exit(main(sys.argv[1:]))\n" % PACKAGE.encode()
# The earliest time a zip archive can hold.
_TIME = (1980, 1, 1, 0, 0, 0)
# "Checked by hash, but do not check": the source beside it is the one it was made from.
_UNCHECKED = (1).to_bytes(4, "little")
# The last format without references, which would depend on what else this process has loaded.
_MARSHAL_VERSION = 2


def build(path: Path) -> str:
    """Writes the archive, whole or not at all; returns its sha256."""
    files = {"__main__.py": _MAIN}
    for source in Path(__file__).parent.glob("*.py"):
        if source.name != Path(__file__).name:
            name = f"{PACKAGE}/{source.name}"
            files[name] = source.read_bytes()
            files[name + "c"] = _bytecode(files[name], name)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(files):
            # Not compressed: every start of a rank would pay for the unpacking.
            archive.writestr(zipfile.ZipInfo(name, _TIME), files[name], zipfile.ZIP_STORED)
    digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    temporary.replace(path)
    return digest


def _bytecode(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source)
    return head + marshal.dumps(code, _MARSHAL_VERSION)
