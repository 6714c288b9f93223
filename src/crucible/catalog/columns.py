"""The price rows as one file of columns: numbers as numpy arrays, names as one text each, in the order of the offer
table. Nothing in it is pickled. Equal rows give equal bytes."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crucible.core.offers import Codes, Floats, Ints, OfferTable
from crucible.model.errors import InvariantBroken

FILE = "prices.npz"
NEWLINE = "\n"  # no name has one
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member: the file must not tell when it was written

# What each column is stored as: the smallest type that holds a catalog ten times as large.
_STORED = {
    "shape": np.uint16,
    "place": np.uint16,
    "zone": np.uint16,
    "market": np.int8,
    "price": np.int64,
    "as_of": np.int64,
    "source": np.uint16,
    "hazard": np.float64,
    "availability": np.float64,
    "usd_per_gb": np.float64,
    "gbps": np.float64,
}
_ROWS = ("shape", "place", "zone", "market", "price", "as_of", "source", "hazard", "availability")
_NAMES = ("places", "zones", "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Rows of an offer table without what the other files say. `shape` counts the rows of instance_types.csv."""

    shape: Codes
    place: Codes
    zone: Codes
    market: npt.NDArray[np.int8]
    price: Ints
    as_of: Ints
    source: Codes
    hazard: Floats
    availability: Floats
    usd_per_gb: Floats  # [from, to] over places: lanes.csv once more, because six thousand lines are slow to read
    gbps: Floats
    places: tuple[str, ...]  # "provider:region"
    zones: tuple[str, ...]
    sources: tuple[str, ...]


def of_table(table: OfferTable) -> Columns:
    names = (f"{table.sellers.name[s]}:{r}" for s, r in zip(table.places.seller, table.places.region, strict=True))
    return Columns(
        **{name: getattr(table, name) for name in _ROWS},
        usd_per_gb=table.places.usd_per_gb,
        gbps=table.places.gbps,
        places=tuple(names),
        zones=table.zones,
        sources=table.sources,
    )


def write(columns: Columns) -> bytes:
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(columns, name).astype(kind) for name, kind in _STORED.items()}
    for name in _NAMES:
        arrays[name] = _text(getattr(columns, name))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue())
    return out.getvalue()


def read(folder: Path) -> Columns:
    with (folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as stored:
        missing = {*_STORED, *_NAMES} - set(stored.files)
        if missing:
            raise InvariantBroken(f"{FILE} lacks {', '.join(sorted(missing))}: run crucible prices build")
        return _columns({name: stored[name] for name in stored.files})


def _columns(stored: Mapping[str, npt.NDArray[Any]]) -> Columns:
    values: dict[str, Any] = {name: stored[name] for name in _STORED}
    values |= {name: stored[name].astype(np.int64) for name in ("shape", "place", "zone", "source")}
    values |= {name: _names(stored[name]) for name in _NAMES}
    return Columns(**values)


def _text(names: Iterable[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("".join(name + NEWLINE for name in names).encode(), dtype=np.uint8)


def _names(text: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(text.tobytes().decode().split(NEWLINE)[:-1])
