"""Datasets behind the server's double: trees in the double of storage, given out page by page."""

import hashlib
from collections.abc import Mapping

from crucible.core.datasets import manifest_key, object_key
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry, Tree
from crucible.wire import datasets as wire
from doubles.storage import StorageDouble

PAGE = 2  # objects of one answer: more than one question for all but the smallest


class TreesDouble:
    def __init__(self, storage: StorageDouble) -> None:
        self.storage = storage
        self.trees: dict[str, Tree] = {}
        self.waits = 0  # answers that say: not yet
        self.asked: list[wire.TreeRequest] = []
        self.fetched: list[wire.TreeFetched] = []

    def add(self, files: Mapping[str, bytes], links: Mapping[str, str] | None = None, programs: str = "") -> Tree:
        """As a client does it; `programs` are names of files that may be run."""
        entries = [
            Entry(name, len(body), hashlib.sha256(body).hexdigest(), name in programs.split())
            for name, body in files.items()
        ]
        entries += [Entry(name, link=target) for name, target in (links or {}).items()]
        tree, manifest = dataset_tree.tree_of(entries)
        contents = {hashlib.sha256(body).hexdigest(): body for body in files.values()}
        for one in tree.objects:
            body = [contents[piece.sha256][piece.offset : piece.offset + piece.size] for piece in one.pieces]
            self.storage.objects[object_key(one.name)] = b"".join(body)
        self.storage.objects[manifest_key(tree.digest)] = manifest
        self.trees[tree.digest] = tree
        return tree

    def tree(self, asked: wire.TreeRequest) -> tuple[int, bytes]:
        self.asked.append(asked)
        if asked.digest not in self.trees:
            return 404, b'{"error": "not_found", "message": "the dataset was removed"}'
        if self.waits > 0:
            self.waits -= 1
            return 200, wire.TreeReply(wait_s=0.05, reason="it is being copied").model_dump_json().encode()
        tree = self.trees[asked.digest]
        page = tree.objects[asked.first : asked.first + PAGE]
        reply = wire.TreeReply(
            source="aws/us-east-1",
            manifest=self.storage.sign("GET", manifest_key(tree.digest)),
            objects=[
                wire.TreeObject(
                    signed=self.storage.sign("GET", object_key(one.name)),
                    name=one.name,
                    size=one.size,
                    holds=[(piece.sha256, piece.offset, piece.size) for piece in one.pieces],
                )
                for one in page
            ],
            total=len(tree.objects),
        )
        return 200, reply.model_dump_json().encode()

    def note(self, told: wire.TreeFetched) -> bytes:
        self.fetched.append(told)
        return wire.TreeNoted().model_dump_json().encode()
