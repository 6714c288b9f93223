"""One save on its way to becoming a checkpoint: the parts first, the manifest last. Whatever a crash leaves of it is
not taken for a checkpoint, and goes by age."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import Callable, Tuple

from .checkpoint_layout import DRAFT, PARTS, TMP
from .checkpoint_manifest import Manifest, Part, encode
from .checkpoint_parts import Source, copy_parts, settle_parts, take_parts
from .durable import make_folder, publish, sync_folder, write_new


class Draft:
    def __init__(self, folder: str) -> None:
        nonce = secrets.token_hex(8)
        self.root_name = PARTS + nonce
        self._folder = folder
        self._tmp, self._root, self._manifest = (os.path.join(folder, kind + nonce) for kind in (TMP, PARTS, DRAFT))
        self._is_published = False

    def copy(self, source: Source) -> Tuple[Part, ...]:
        """Copied, hashed on the way, and flushed."""
        self._make_folder()
        return copy_parts(source, self._tmp)

    def take(self, source: Source) -> None:
        """Copied and no more, as quickly as the file system can: `settle` does the rest."""
        self._make_folder()
        take_parts(source, self._tmp)

    def settle(self, source: Source) -> Tuple[Part, ...]:
        """Hashed and flushed, after `take`."""
        return settle_parts(source, self._tmp)

    def publish(self, manifest: Manifest, name: str, may_replace: Callable[[], bool]) -> bool:
        """Commit under `name`. False if that is taken and may not be replaced. Should two savers replace it at once,
        the later wins, and at every moment there is a valid one."""
        os.rename(self._tmp, self._root)
        write_new(self._manifest, encode(manifest))
        sync_folder(self._folder)
        sync_folder(os.path.dirname(self._folder))
        target = os.path.join(self._folder, name)
        self._is_published = publish(self._manifest, target)
        if not self._is_published and may_replace():
            os.replace(self._manifest, target)
            self._is_published = True
        sync_folder(self._folder)
        return self._is_published

    def close(self) -> None:
        """Removes what did not become part of a checkpoint."""
        with contextlib.suppress(OSError):
            os.unlink(self._manifest)
        for leftover in (self._tmp,) if self._is_published else (self._tmp, self._root):
            shutil.rmtree(leftover, ignore_errors=True)

    def _make_folder(self) -> None:
        """Flushing its name can wait until there is something to find under it."""
        make_folder(os.path.dirname(self._folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder)
