"""What a user who wrote an unknown field name probably meant."""

from collections.abc import Collection, Mapping

from crucible.spec.kinds import nearest

_FEW = 12  # so many names can be listed in a hint


def meant(name: str, path: str, siblings: Collection[str], homes: Mapping[str, str]) -> str:
    """A hint for `name`, found in the mapping at `path` with the fields `siblings`. `homes` has the full path of every
    known field, under its own name and under what others call it."""
    near = nearest(name, tuple(siblings))
    home = homes.get(name)
    # One letter too many or too few is a slip, even where another mapping has a field of that name.
    if home is not None and near.rstrip("s") != name.rstrip("s"):
        return _moved(name, path, home)
    if near:
        return f"did you mean '{near}'?"
    elsewhere = nearest(name, tuple(homes))
    if elsewhere:
        return f"did you mean {homes[elsewhere]}?"
    if len(siblings) <= _FEW:
        return "fields here: " + ", ".join(siblings)
    return "`crucible spec example` shows the fields"


def _moved(name: str, path: str, home: str) -> str:
    group, _, field = home.rpartition(".")
    if group == path:
        return f"did you mean '{field}'?"
    return f"it belongs under {group}" if field == name else f"did you mean {home}?"
