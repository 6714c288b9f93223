"""Packs the code of a job: one tar.gz of regular files with relative names, the same bytes for the same files. It ships
what is there and changes nothing; what cannot be shipped is an error that names it, never left out in silence."""

import gzip
import hashlib
import os
import posixpath
import stat
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import IO, Self

from crucible.client.source import MAX_BYTES, SourceFile, files_under, too_large, unreadable
from crucible.model.errors import InvalidSpec
from crucible.model.ids import Digest
from crucible.model.spec import JobSpec
from crucible.spec.problems import NOWHERE, Problem, invalid_spec, shown

_LEVEL = 6  # gzip's usual: level 9 takes three times as long for two percent
_COMPARED = 2_000  # names looked through for what an entrypoint may have meant


@dataclass(frozen=True, slots=True)
class Package:
    """`path` is a temporary file that the holder removes; as a context manager it goes with the block."""

    digest: Digest
    path: Path
    file_count: int
    size: int  # of the archive, in bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.path.unlink(missing_ok=True)


def what_to_pack(spec_dir: Path, spec: JobSpec) -> Path | None:
    """The folder or file that the job ships: its `code`, else a local entrypoint, else nothing. Paths are relative to
    the folder of the spec."""
    if spec.code is not None:
        return _existing(spec_dir / spec.code, "job.code", spec.code)
    if spec.entrypoint is None or not is_local(spec.entrypoint):
        return None
    path = _existing(spec_dir / spec.entrypoint, "job.entrypoint", spec.entrypoint)
    if path.is_dir():
        message = f"{shown(spec.entrypoint)} is a folder"
        raise _problem(
            "job.entrypoint", message, f"set code to {shown(spec.entrypoint)} and entrypoint to a file in it"
        )
    return path


def pack(root: Path, entrypoint: str | None = None) -> Package:
    """The folder or file `root` as a package. A local `entrypoint` must be in it; a file that is packed alone gets the
    entrypoint's path, so that it starts by the same name as in a folder."""
    local = posixpath.normpath(entrypoint) if entrypoint is not None and is_local(entrypoint) else None
    files = files_under(root) if root.is_dir() else _alone(root, local)
    return _packed(root, files, [] if local is None else [(local, "job.entrypoint")])


def pack_workflow(root: Path, spec: JobSpec, file: Path) -> Package:
    """The code that all steps share. The workflow's own `file` stays behind: a change in it is a change of the steps
    that it changes, not of what they run."""
    found = files_under(root) if root.is_dir() else _alone(root, None)
    files = [one for one in found if one.path.resolve() != file.resolve()]
    starts = [
        (posixpath.normpath(step.job.entrypoint), f"job.steps[{number}].entrypoint")
        for number, step in enumerate(spec.steps)
        if step.job.entrypoint is not None and is_local(step.job.entrypoint)
    ]
    return _packed(root, files, starts)


def _packed(root: Path, files: Sequence[SourceFile], starts: Sequence[tuple[str, str]]) -> Package:
    """`starts` are files that must be there, with the fields that name them."""
    if not files:
        raise _problem("job.code", f"there is nothing to ship in {shown(str(root))}", "are all files ignored?")
    for entrypoint, field in starts:
        _check_entrypoint(root, entrypoint, files, field)
    return write(root, files)


def write(root: Path, files: Sequence[SourceFile]) -> Package:
    """The package of `files`, in that order."""
    handle, name = tempfile.mkstemp(prefix="crucible-", suffix=".tar.gz")
    try:
        with os.fdopen(handle, "w+b") as target:
            _archive(root, files, target)
            size = target.tell()
            target.seek(0)
            digest = hashlib.file_digest(target, "sha256").hexdigest()
    except BaseException:
        Path(name).unlink()
        raise
    return Package(Digest(digest), Path(name), len(files), size)


def is_local(entrypoint: str) -> bool:
    return "://" not in entrypoint


def _existing(path: Path, field: str, written: str) -> Path:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        hint = f"looked for {path}; paths are relative to the spec"
        raise _problem(field, f"{shown(written)} does not exist", hint) from None
    except OSError as error:
        raise _problem(field, f"{shown(written)} cannot be read: {error.strerror}", f"looked for {path}") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise _problem(field, f"{shown(written)} is neither a file nor a folder", "only those can be shipped")
    return path


def _alone(path: Path, entrypoint: str | None) -> list[SourceFile]:
    name = path.name
    if entrypoint is not None and _ends_with(path, PurePosixPath(entrypoint)):
        name = entrypoint
    try:
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(str(path), error) from None
    file = SourceFile(name, path, size)
    if size > MAX_BYTES:
        raise too_large(path, [file])
    return [file]


def _ends_with(path: Path, tail: PurePosixPath) -> bool:
    """True if `tail` is a name for the end of `path` that may stand in a package: relative and inside it."""
    if tail.is_absolute() or ".." in tail.parts:
        return False
    return path.parts[-len(tail.parts) :] == tail.parts


def _check_entrypoint(root: Path, entrypoint: str, files: Sequence[SourceFile], field: str) -> None:
    names = [file.name for file in files]
    if entrypoint in names or any(name.startswith(f"{entrypoint}/") for name in names):
        return
    if (root / entrypoint).exists():
        hint = "an ignore file names it: add `!` and its path to .crucibleignore"
    else:
        near = get_close_matches(entrypoint, names[:_COMPARED], n=1)
        hint = f"did you mean {shown(near[0])}?" if near else "the path is relative to code"
    raise _problem(field, f"{shown(entrypoint)} is not in the shipped code", hint)


def _archive(root: Path, files: Sequence[SourceFile], target: IO[bytes]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=target, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        total = 0
        for file in files:
            total += _add(file, archive)
            if total > MAX_BYTES:  # files may have grown since they were listed
                raise too_large(root, list(files))


def _add(file: SourceFile, archive: tarfile.TarFile) -> int:
    try:
        with file.path.open("rb") as content:
            status = os.fstat(content.fileno())
            member = tarfile.TarInfo(file.name)  # owner, group and time stay at zero
            member.size = status.st_size
            member.mode = 0o755 if status.st_mode & 0o100 else 0o644
            archive.addfile(member, content)
            return member.size
    except OSError as error:
        raise unreadable(file.name, error) from None


def _problem(field: str, message: str, hint: str) -> InvalidSpec:
    return invalid_spec([Problem(*NOWHERE, field, message, hint)])
