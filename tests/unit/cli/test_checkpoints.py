"""`crucible checkpoints` against a server whose answers we wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

ID = "019a8c3f-2b41-7000-8000-000000000001"


def a_checkpoint(step: int, **more: Any) -> dict[str, Any]:
    row = {"step": step, "uri": f"s3://b/{step}", "size_bytes": 3, "created_at": "2026-01-01T00:00:00Z", "shards": 1}
    return {**row, "attempt": 0, "kept_in": "storage", "is_latest": False, **more}


def checked(step: int, **more: Any) -> bytes:
    lines = [{"step": step, "size_bytes": 3, "checked_bytes": 3}]
    lines += [{**lines[0], **more}] if more else []
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def holding(content: bytes, url: str, **more: Any) -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    held = {"file": 0, "offset": 0, "size": len(content), "sha256": sha256}
    files = [{"name": "sub/model.bin", "size": len(content), "shard": 0}, {"name": "empty", "size": 0, "shard": 0}]
    said = {"step": 7, "uri": "s3://b/7", "size_bytes": len(content), "shards": 1, "files": files, "lives_s": 60}
    return {**said, "objects": [{"url": url, "headers": {}, "size": len(content), "holds": [held]}], **more}


def test_checkpoints_are_listed_with_or_without_the_word(crucible: Any, serve: Any) -> None:
    serve({f"GET /v1/jobs/{ID}/checkpoints": {"items": [a_checkpoint(1), a_checkpoint(20)]}})
    short, long = crucible("checkpoints", ID), crucible("checkpoints", "ls", ID)
    assert (short.code, short.out) == (0, long.out)
    assert [line.split()[0] for line in long.out.splitlines()] == ["STEP", "1", "20"]
    assert json.loads(crucible("checkpoints", ID, "-o", "json").out)["items"][1]["step"] == 20


def test_verify_takes_the_newest_and_the_exit_code_says_what_was_found(crucible: Any, serve: Any) -> None:
    server = serve(
        {
            f"GET /v1/jobs/{ID}/checkpoints": {"items": [a_checkpoint(1), a_checkpoint(2)]},
            f"POST /v1/jobs/{ID}/checkpoints/1/verify": checked(1, is_valid=True, problems=[]),
            f"POST /v1/jobs/{ID}/checkpoints/2/verify": checked(2, is_valid=False, problems=["model.bin is missing"]),
        }
    )
    ran = crucible("checkpoints", "verify", ID)
    assert (ran.code, ran.out) == (1, "step 2: not usable\n  model.bin is missing\n")
    assert "step 2: 100% of 3 B" in ran.err
    assert crucible("checkpoints", "verify", ID, "1").code == 0
    every = crucible("checkpoints", "verify", ID, "--all", "-o", "json")
    assert [one["is_valid"] for one in json.loads(every.out)["items"]] == [True, False]
    assert crucible("checkpoints", "verify", ID, "1", "--all").code == 2
    assert server.requests


def test_a_check_that_broke_off_is_an_error_and_no_verdict(crucible: Any, serve: Any) -> None:
    serve({f"POST /v1/jobs/{ID}/checkpoints/3/verify": checked(3)})
    ran = crucible("checkpoints", "verify", ID, "3")
    assert ran.code != 0 and "broke off" in ran.err and ran.out == ""
    serve({f"POST /v1/jobs/{ID}/checkpoints/3/verify": checked(3, error="storage_failed", message="storage is away")})
    ran = crucible("checkpoints", "verify", ID, "3")
    assert ran.code == 1 and "storage is away" in ran.err


def test_get_fetches_every_file_and_checks_it(crucible: Any, serve: Any, tmp_path: Path) -> None:
    routes: dict[str, Any] = {"GET /signed": b"hello"}
    server = serve(routes)
    routes[f"GET /v1/jobs/{ID}/checkpoints/7/files"] = holding(b"hello", f"{server.url}/signed")
    ran = crucible("checkpoints", "get", ID, "7", "-d", str(tmp_path))
    assert (ran.code, ran.out) == (0, f"{tmp_path}/step-000000007\n"), ran.err
    assert (tmp_path / "step-000000007/sub/model.bin").read_bytes() == b"hello"
    assert (tmp_path / "step-000000007/empty").read_bytes() == b""
    again = crucible("checkpoints", "get", ID, "7", "-d", str(tmp_path))
    assert again.code == 1 and "is there already" in again.err


@pytest.mark.parametrize("stored", [b"hellO", b"hell", b"hello!"])
def test_get_leaves_nothing_of_what_is_not_right(crucible: Any, serve: Any, tmp_path: Path, stored: bytes) -> None:
    routes: dict[str, Any] = {"GET /signed": stored}
    server = serve(routes)
    routes[f"GET /v1/jobs/{ID}/checkpoints/7/files"] = holding(b"hello", f"{server.url}/signed?secret=1")
    ran = crucible("checkpoints", "get", ID, "7", "-d", str(tmp_path))
    assert ran.code == 1 and "secret" not in ran.err and "signed" not in ran.err
    assert not any(path.name.startswith((".", "step")) for path in tmp_path.iterdir())


def test_get_never_leaves_the_folder(crucible: Any, serve: Any, tmp_path: Path) -> None:
    files = [{"name": "../../x", "size": 0, "shard": 0}]
    serve({f"GET /v1/jobs/{ID}/checkpoints/7/files": holding(b"", "http://127.0.0.1:1/x", files=files, objects=[])})
    ran = crucible("checkpoints", "get", ID, "7", "-d", str(tmp_path))
    assert ran.code == 2 and "would leave the folder" in ran.err


def test_rm_removes_each_and_says_why_one_stays(crucible: Any, serve: Any) -> None:
    refusal = (409, {"error": "conflict", "message": "the newest 2 checkpoints stay", "details": {}})
    serve(
        {
            f"DELETE /v1/jobs/{ID}/checkpoints/1": {"removed": 1},
            f"DELETE /v1/jobs/{ID}/checkpoints/2": refusal,
        }
    )
    ran = crucible("checkpoints", "rm", ID, "1", "2")
    assert (ran.code, ran.out) == (1, "removed step 1\n") and "stay" in ran.err
