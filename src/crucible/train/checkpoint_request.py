"""What a script asks of checkpoints, checked, and what it is told if that cannot be."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import urllib.parse
from typing import Any, Dict, Iterator, Mapping, Optional, Union

from .checkpoint_layout import MAX_STEP
from .checkpoint_manifest import MAX_METADATA_BYTES, MAX_SHARDS, Origin
from .checkpoint_parts import BadSource
from .numbers import plain

FilePath = Union[str, "os.PathLike[str]"]


class CheckpointError(Exception):
    """A checkpoint could not be saved or read; nothing was half-committed. The message says what to do."""


class CorruptCheckpoint(CheckpointError):
    """It is there, but it is not what was saved."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__("the checkpoint of step {} is not usable: {}".format(step, reason))
        self.step = step
        self.reason = reason


def store_path(location: str) -> str:
    """The folder that `location` means: a path or a file:// URI. Raises CheckpointError for other kinds of storage."""
    scheme, has_scheme, _ = location.partition("://")
    if not has_scheme:
        return os.path.abspath(location)
    address = urllib.parse.urlsplit(location)
    if scheme.lower() != "file" or address.netloc not in ("", "localhost") or not address.path.startswith("/"):
        raise CheckpointError(
            "checkpoints cannot be kept at {}: give a folder as a path or as file:///absolute/path".format(location)
        )
    return os.path.abspath(urllib.parse.unquote(address.path, errors="surrogateescape"))


def valid_step(step: Any) -> int:
    """`step` as a plain integer. Raises CheckpointError."""
    try:
        whole = int(step)
    except (TypeError, ValueError, OverflowError):
        raise CheckpointError("the step must be a whole number, not {!r}".format(step)) from None
    if whole != step or not 0 <= whole <= MAX_STEP:
        raise CheckpointError("the step must be a whole number from 0 on, not {!r}".format(step))
    return whole


def valid_metadata(metadata: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """As JSON can carry it. Raises CheckpointError."""
    try:
        facts = plain(dict(metadata or {}))
        size = len(json.dumps(facts))
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError("the metadata must be JSON values: {}".format(error)) from error
    if size > MAX_METADATA_BYTES:
        raise CheckpointError(
            "the metadata has {} bytes, more than {}: put it into a file of the checkpoint".format(
                size, MAX_METADATA_BYTES
            )
        )
    return dict(facts)


def check_place(origin: Origin) -> None:
    """Whether `origin` can save a shard. Raises CheckpointError."""
    if not 0 <= origin.rank < origin.world_size <= MAX_SHARDS:
        raise CheckpointError(
            "rank {} of {} has no shard to save: RANK counts from 0 to WORLD_SIZE - 1, at most {}".format(
                origin.rank, origin.world_size, MAX_SHARDS - 1
            )
        )


@contextlib.contextmanager
def explained(what: str, root: str) -> Iterator[None]:
    """Turns what a file system says into a CheckpointError."""
    try:
        yield
    except BadSource as error:
        raise CheckpointError("{}: {}".format(what, error)) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "no space left in {}; free some, or keep fewer checkpoints (checkpoint.keep in the job)".format(root)
            raise CheckpointError("{}: {}".format(what, hint)) from error
        raise CheckpointError("{}: {}".format(what, error)) from error
