"""Checkpoints that agents carry to object storage (ADR 13): what is kept where, which are whole, what may go. Whatever
is read from storage is hostile until it was checked here."""

from crucible.model.storage import is_object_storage


def is_carried(place: str | None, shares_files: bool, has_carried: bool) -> bool:
    """`place` is the job's checkpoint.dir. A folder that the user names is a folder on every machine."""
    if place is not None:
        return is_object_storage(place)
    return has_carried or not shares_files
