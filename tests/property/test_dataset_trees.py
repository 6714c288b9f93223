"""A tree is its content: neither the order of listing nor a locale has a say, and any single change is another tree."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.model import dataset_tree
from crucible.model.dataset_tree import OBJECT_BYTES, Entry

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and len(name.encode()) <= 255
)
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
SIZES = st.one_of(st.integers(0, 3000), st.integers(0, 3 * OBJECT_BYTES))
UNHURRIED = settings(deadline=None)  # machines may be busy


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """Content has one size: two files with one digest are the same."""
    names = draw(st.lists(NAMES, min_size=1, max_size=30, unique=True))
    contents = draw(st.lists(st.tuples(DIGESTS, SIZES), min_size=1, max_size=30, unique_by=lambda one: one[0]))
    folders = draw(st.lists(st.sampled_from(["", "d:/", "d:/e:/"]), min_size=len(names), max_size=len(names)))
    picked = [draw(st.sampled_from(contents)) for _ in names]
    return [
        Entry(f"{folder}n{name}", size, sha256, draw(st.booleans()))
        for folder, name, (sha256, size) in zip(folders, names, picked, strict=True)
    ]


@UNHURRIED
@given(trees(), st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order(entries: list[Entry], dice: random.Random) -> None:
    shuffled = list(entries)
    dice.shuffle(shuffled)
    one, manifest = dataset_tree.tree_of(entries)
    assert dataset_tree.tree_of(shuffled) == (one, manifest)
    assert dataset_tree.read(manifest, one.digest) == one


@UNHURRIED
@given(trees(), st.data())
def test_any_single_change_is_another_digest(entries: list[Entry], data: st.DataObject) -> None:
    before = dataset_tree.tree_of(entries)[0].digest
    at = data.draw(st.integers(0, len(entries) - 1))
    old = entries[at]
    changes = [
        replace(old, path=old.path + "x"),
        replace(old, size=old.size + 1),
        replace(old, sha256=("0" if old.sha256[0] != "0" else "1") + old.sha256[1:]),
        replace(old, is_program=not old.is_program),
        Entry(old.path, link="somewhere"),
        None,
    ]
    new = data.draw(st.sampled_from(changes))
    rest = [*entries[:at], *entries[at + 1 :]]
    others = rest if new is None else [*rest, new]
    if others and (new is None or new.path not in {one.path for one in rest}):
        assert dataset_tree.tree_of(others)[0].digest != before


@UNHURRIED
@given(trees())
def test_every_byte_of_every_file_is_in_one_object(entries: list[Entry]) -> None:
    found: dict[str, list[tuple[int, int]]] = {}
    for one in dataset_tree.stow(entries):
        assert 0 < one.size <= OBJECT_BYTES and one.size == sum(piece.size for piece in one.pieces)
        for piece in one.pieces:
            found.setdefault(piece.sha256, []).append((piece.offset, piece.size))
    for entry in entries:
        at = 0
        for offset, size in sorted(found.get(entry.sha256, [])):
            assert offset == at
            at += size
        assert at == entry.size


@UNHURRIED
@given(trees())
def test_objects_have_names_of_their_own_and_the_same_ones_again(entries: list[Entry]) -> None:
    objects = list(dataset_tree.stow(entries))
    assert len({one.name for one in objects}) == len(objects)
    assert list(dataset_tree.stow(entries)) == objects
