"""The agent, which imports nothing of the rest, and everybody else make the same tree of the same files: manifest,
digest and objects."""

import hashlib
import os
import tempfile
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.agent import output_tree
from crucible.agent.output_tree import Leaf, OutputTree
from crucible.client.tree import read_tree
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry

from .test_dataset_trees import UNHURRIED, trees

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..") and len(name.encode()) <= 255
)
MOST = 1 << 40


@settings(UNHURRIED, max_examples=60)
@given(
    st.dictionaries(NAMES, st.tuples(st.binary(max_size=50), st.booleans()), min_size=1, max_size=12),
    st.lists(st.tuples(NAMES, NAMES), max_size=3),
)
def test_the_agent_reads_a_folder_as_a_client_does(
    files: dict[str, tuple[bytes, bool]], links: list[tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "deep:").mkdir()
        for number, (name, (body, is_program)) in enumerate(files.items()):
            path = root / ("deep:" if number % 2 else "") / f"f{name}"
            path.write_bytes(body)
            path.chmod(0o755 if is_program else 0o644)
        for name, target in links:
            if not os.path.lexists(root / f"l{name}"):
                (root / f"l{name}").symlink_to(f"f{target}")
        ours, theirs = OutputTree(folder, 100, MOST, threading.Event()), read_tree(root)
        assert (ours.digest, ours.manifest) == (theirs.tree.digest, theirs.manifest)
        assert ours.size == theirs.tree.size_bytes


@UNHURRIED
@given(trees())
def test_the_agent_stows_files_as_everybody_does(entries: list[Entry]) -> None:
    ordered = sorted(entries, key=lambda entry: entry.path.encode())
    leaves = []
    for entry in ordered:
        leaf = Leaf(entry.path, entry.size)
        leaf.sha256, leaf.is_program = entry.sha256, entry.is_program
        leaves.append(leaf)
    ours = [(one.name, one.size, one.pieces) for one in output_tree.stow(leaves)]
    theirs = [
        (one.name, one.size, [(piece.sha256, piece.offset, piece.size) for piece in one.pieces])
        for one in dataset_tree.stow(ordered)
    ]
    assert ours == theirs


def test_what_is_sent_is_what_was_hashed(tmp_path: Path) -> None:
    """The bytes of every object, piece by piece, from a folder with large and small files."""
    sizes = {"a": 3, "b": 0, "c": output_tree.SMALL_BYTES, "d": output_tree.OBJECT_BYTES + 5}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(os.urandom(size))
    tree = OutputTree(str(tmp_path), 100, MOST, threading.Event())
    by_digest = {leaf.sha256: (tmp_path / leaf.path).read_bytes() for leaf in tree.leaves}
    for one in tree.objects:
        sent = _Socket()
        tree.body(one).send(sent, False, lambda count: None)  # type: ignore[arg-type]
        expected = b"".join(by_digest[sha256][offset : offset + size] for sha256, offset, size in one.pieces)
        assert hashlib.sha256(sent.data).digest() == hashlib.sha256(expected).digest()


class _Socket:
    def __init__(self) -> None:
        self.data = bytearray()

    def sendall(self, block: bytes) -> None:
        self.data += block
