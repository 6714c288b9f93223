"""`crucible outputs` against a server whose answers we wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any

from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry

ID = "019a8c3f-2b41-7000-8000-000000000001"
BODY = b"hello"
TREE, MANIFEST = dataset_tree.tree_of([Entry("deep/a.txt", len(BODY), hashlib.sha256(BODY).hexdigest())])


def an_output(task: int = 0) -> dict[str, Any]:
    facts = {"digest": TREE.digest, "size_bytes": len(BODY), "files": 1, "created_at": "2026-01-01T00:00:00Z"}
    return {"task": task, **facts}


def view(url: str, task: int) -> dict[str, Any]:
    """Under addresses of the same server."""
    signed = {"url": f"{url}/manifest", "headers": {}}
    (one,) = TREE.objects
    held = {"name": one.name, "size": one.size, "url": f"{url}/object", "headers": {}}
    manifest = {"name": TREE.digest, "size": None, **signed}
    return {**an_output(task), "manifest": manifest, "first": 0, "objects": [held], "total": 1, "lives_s": 60.0}


def page(*tasks: int, cursor: str | None = None) -> dict[str, Any]:
    return {"items": [an_output(task) for task in tasks], "next_cursor": cursor}


def test_outputs_are_listed(crucible: Any, serve: Any) -> None:
    serve({f"GET /v1/jobs/{ID}/outputs": page(0, 7)})
    ran = crucible("outputs", "ls", ID)
    assert ran.code == 0 and [line.split()[0] for line in ran.out.splitlines()] == ["TASK", "0", "7"]
    assert TREE.digest in ran.out
    assert json.loads(crucible("outputs", "ls", ID, "-o", "json").out)["items"][1]["task"] == 7


def test_nothing_yet_is_said_on_stderr(crucible: Any, serve: Any) -> None:
    serve({f"GET /v1/jobs/{ID}/outputs": page()})
    ran = crucible("outputs", "ls", ID)
    assert (ran.code, ran.out) == (0, "") and "$CRUCIBLE_OUTPUT" in ran.err
    got = crucible("outputs", "get", ID)
    assert got.code == 5 and "has left nothing behind" in got.err


def test_every_task_is_fetched_into_a_folder_of_its_own(crucible: Any, serve: Any, tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        f"GET /v1/jobs/{ID}/outputs": page(0, 7),
        "GET /manifest": MANIFEST,
        "GET /object": BODY,
    }
    server = serve(answers)
    for task in (0, 7):
        answers[f"GET /v1/jobs/{ID}/outputs/{task}"] = view(server.url, task)
    ran = crucible("outputs", "get", ID, "-d", str(tmp_path))
    assert ran.code == 0, ran.err
    assert ran.out.split() == [str(tmp_path / "task-00000"), str(tmp_path / "task-00007")]
    assert (tmp_path / "task-00007/deep/a.txt").read_bytes() == BODY and "task 7: 100% of 5 B" in ran.err
    one = crucible("outputs", "get", ID, "7", "-d", str(tmp_path / "other"), "-o", "json")
    assert [item["task"] for item in json.loads(one.out)["items"]] == [7]
    missing = crucible("outputs", "get", ID, "3")
    assert missing.code == 5 and "task 3 of job" in missing.err
