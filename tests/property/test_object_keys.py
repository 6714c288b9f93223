"""What must hold for every name of an object, and for every listing of a folder of them."""

import asyncio
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crucible.blobs.file_door import FileDoor
from crucible.blobs.keys import whole_key
from crucible.engine.keys import Keys
from crucible.model.errors import InvalidRequest
from crucible.model.storage import parse

KEYS = Keys(b"secret")
DOOR = FileDoor("http://127.0.0.1:1", KEYS.address, KEYS.right_of, lambda: datetime.now(UTC))
NAMES = st.text(st.sampled_from("ab.-0 é%😀"), min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@given(st.text(max_size=40) | st.lists(st.sampled_from(["..", ".", "", "a", "~", "%2e%2e"]), max_size=6).map("/".join))
@example("../../etc/passwd")
@example("a/../../b")
def test_no_key_leads_out_of_its_folder(key: str) -> None:
    root = "/srv/objects"
    try:
        whole = whole_key("", key)
    except InvalidRequest:
        return
    path = os.path.normpath(f"{root}/{whole}")
    assert path == f"{root}/{whole}"
    assert "\0" not in path and "\n" not in path


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_right_comes_back_from_its_token_as_it_was(right: str) -> None:
    token = KEYS.address(right)
    assert KEYS.right_of(token) == right
    assert token.isascii() and "/" not in token and "%" not in token and "?" not in token


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(PATHS, max_size=12), st.text("ab./-", max_size=4), PATHS | st.just(""))
def test_a_folder_lists_like_a_flat_map(paths: set[str], prefix: str, after: str) -> None:
    there = {path for path in paths if not any(other.startswith(path + "/") for other in paths)}
    if any(part in ("", ".", "..") for part in prefix.split("/")[:-1]):
        return

    async def listed(folder: str) -> list[str]:
        objects = DOOR.objects(parse(Path(folder).as_uri()))
        return [facts.key async for facts in objects.list(prefix, after=after)]

    with tempfile.TemporaryDirectory() as folder:
        for key in there:
            Path(folder, key).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, key).touch()
        found = asyncio.run(listed(folder))
    fitting = [key for key in there if key.startswith(prefix) and key.encode() > after.encode()]
    assert found == sorted(fitting, key=str.encode)
