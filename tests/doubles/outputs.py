"""Outputs behind the server's double: what agents put into the double of storage, looked at as the server does."""

from crucible.core.datasets import manifest_key, object_key
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Tree
from crucible.model.errors import InvalidRequest
from crucible.wire import outputs as wire
from doubles.storage import StorageDouble


class OutputsDouble:
    def __init__(self, storage: StorageDouble) -> None:
        self.storage = storage
        self.asked: list[wire.OutputAsked] = []
        self.confirmed: list[str] = []

    def upload(self, asked: wire.OutputAsked) -> tuple[int, bytes]:
        self.asked.append(asked)
        stored = self.storage.objects
        wanted = [
            one.name for one in asked.objects if asked.resend or len(stored.get(object_key(one.name), b"")) != one.size
        ]
        manifest = manifest_key(asked.digest)  # type: ignore[arg-type]
        reply = wire.OutputReply(
            missing=[
                wire.MissingObject(name=name, signed=self.storage.sign("PUT", object_key(name))) for name in wanted
            ],
            manifest=None if manifest in stored else self.storage.sign("PUT", manifest),
            lives_s=3600.0,
        )
        return 200, reply.model_dump_json().encode()

    def whole(self, asked: wire.OutputWhole) -> tuple[int, bytes]:
        try:
            tree = self.tree(asked.digest)
        except (KeyError, InvalidRequest):
            return 409, b'{"error": "conflict", "message": "the manifest has not arrived"}'
        if any(len(self.storage.objects.get(object_key(one.name), b"")) != one.size for one in tree.objects):
            return 409, b'{"error": "conflict", "message": "objects are missing"}'
        self.confirmed.append(asked.digest)
        found = wire.OutputFound(size_bytes=tree.size_bytes, files=len(tree.entries))
        return 200, found.model_dump_json().encode()

    def tree(self, digest: str) -> Tree:
        return dataset_tree.read(self.storage.objects[f"manifests/{digest}"], digest)

    def files(self, digest: str) -> dict[str, bytes]:
        """What is stored, file by file; a link is its target."""
        contents: dict[str, bytearray] = {}
        tree = self.tree(digest)
        for one in tree.objects:
            body, at = self.storage.objects[object_key(one.name)], 0
            for piece in one.pieces:
                held = contents.setdefault(piece.sha256, bytearray())
                assert len(held) == piece.offset
                held += body[at : at + piece.size]
                at += piece.size
            assert at == len(body)
        return {
            entry.path: entry.link.encode() if entry.link is not None else bytes(contents.get(entry.sha256, b""))
            for entry in tree.entries
        }
