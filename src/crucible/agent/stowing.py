"""How the pieces of a checkpoint become objects: what storage has already is referred to, small files share an object,
large ones get their own. Pure."""

from __future__ import annotations

from collections import Counter

from .manifests import Stowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Tuple

    from .manifests import NodeManifest, StoredManifest

    Piece = Tuple[int, int]

# A signed request carries at most this much; whoever signs counts on it.
OBJECT_BYTES = 64 << 20
# A request costs about as much as a megabyte: smaller files share one, so large that a changed file resends little.
_SMALL_BYTES = 1 << 20
_SHARED_BYTES = 16 << 20
# Objects that a slot names, and that an older checkpoint of this task may be asked for again.
_PARTS = "parts/"


class Known:
    """An object that a committed checkpoint names: its row of digests says what is in it."""

    __slots__ = ("key", "row", "size")

    def __init__(self, key: str, size: int, row: List[str]) -> None:
        self.key = key
        self.size = size
        self.row = row


def known(node: NodeManifest, objects: Iterable[Stowed]) -> List[Known]:
    """Objects that a later checkpoint may refer to. What lies elsewhere (a folder that was shared) is not for us."""
    ours = (each for each in objects if each.key.startswith(_PARTS) and each.size <= OBJECT_BYTES)
    return [Known(each.key, each.size, [node.digest(*piece) for piece in each.holds]) for each in ours]


def known_of(stored: Iterable[StoredManifest]) -> List[Known]:
    """Of several shards, which may name the same object."""
    return list({each.key: each for one in stored for each in known(one.node, one.objects)}.values())


def stow(node: NodeManifest, slot: str, older: Iterable[Known]) -> Tuple[List[Stowed], List[Stowed]]:
    """Every piece in one object: those to send, and those of `older` that are the same."""
    places: Dict[str, List[Piece]] = {}
    for piece in reversed(node.pieces()):
        places.setdefault(node.digest(*piece), []).append(piece)
    same = [Stowed(each.key, each.size, _claim(each.row, places)) for each in older if _has(each.row, places)]
    left = {piece for pieces in places.values() for piece in pieces}
    rows = _rows(node, [piece for piece in node.pieces() if piece in left])
    new = [
        Stowed("%s%s/%05d" % (_PARTS, slot, number), sum(node.piece_size(*piece) for piece in row), row)
        for number, row in enumerate(rows)
    ]
    return new, same


def _has(row: List[str], places: Dict[str, List[Piece]]) -> bool:
    return bool(row) and all(len(places.get(digest, ())) >= count for digest, count in Counter(row).items())


def _claim(row: List[str], places: Dict[str, List[Piece]]) -> List[Piece]:
    return [places[digest].pop() for digest in row]


def _rows(node: NodeManifest, pieces: List[Piece]) -> List[List[Piece]]:
    small = [piece for piece in pieces if node.parts[piece[0]].size < _SMALL_BYTES]
    large = [piece for piece in pieces if node.parts[piece[0]].size >= _SMALL_BYTES]
    return _filled(node, large, OBJECT_BYTES, is_shared=False) + _filled(node, small, _SHARED_BYTES, is_shared=True)


def _filled(node: NodeManifest, pieces: List[Piece], limit_bytes: int, is_shared: bool) -> List[List[Piece]]:
    rows: List[List[Piece]] = []
    size = 0
    for piece in pieces:
        size += node.piece_size(*piece)
        is_next = bool(rows) and (is_shared or rows[-1][-1] == (piece[0], piece[1] - 1))
        if not is_next or size > limit_bytes:
            rows.append([])
            size = node.piece_size(*piece)
        rows[-1].append(piece)
    return rows
