"""`crucible dataset` against a server whose answers we wrote."""

import json
from pathlib import Path
from typing import Any

DIGEST = "ab" * 32


def a_dataset(name: str = "images", **more: Any) -> dict[str, Any]:
    facts = {"digest": DIGEST, "uri": "s3://b/datasets", "region": None, "size_bytes": 3 << 30, "files": 12}
    return {"name": name, **facts, "user": "ann", "created_at": "2026-01-01T00:00:00Z", **more}


def test_datasets_are_listed_with_what_names_meant_before(crucible: Any, serve: Any) -> None:
    serve({"GET /v1/datasets": {"items": [a_dataset(), a_dataset(f"images@{DIGEST}", region="aws/us-east-1")]}})
    ran = crucible("dataset", "ls")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["NAME", "images", f"images@{DIGEST}"]
    assert "3.0 GiB" in ran.out and "aws/us-east-1" in ran.out
    assert json.loads(crucible("dataset", "ls", "-o", "json").out)["items"][0]["files"] == 12


def test_nothing_yet_is_said_on_stderr(crucible: Any, serve: Any) -> None:
    serve({"GET /v1/datasets": {"items": []}})
    ran = crucible("dataset", "ls")
    assert (ran.code, ran.out) == (0, "") and "crucible dataset add" in ran.err


def test_one_is_shown_with_its_copies_and_the_jobs_that_need_it(crucible: Any, serve: Any) -> None:
    copy = {"place": "aws/eu-west-1", "uri": "s3://e/datasets", "size_bytes": 1, "created_at": "2026-01-01T00:00:00Z"}
    serve({"GET /v1/datasets/images": {**a_dataset(), "copies": [copy], "jobs": ["j1", "j2"]}})
    out = crucible("dataset", "show", "images").out
    assert "aws/eu-west-1 (s3://e/datasets)" in out and "j1, j2" in out and DIGEST in out


def test_adding_says_what_was_sent(crucible: Any, serve: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    server = serve(
        {
            "POST /v1/datasets/uploads": {"missing": [], "manifest": None, "lives_s": 60},
            "POST /v1/datasets": a_dataset(files=1, size_bytes=1),
        }
    )
    ran = crucible("dataset", "add", "images", str(tmp_path), "--region", "aws/us-east-1")
    assert (ran.code, ran.out) == (0, "images: 1 file, 1 B, abababababab\n") and "0 B sent" in ran.err
    assert json.loads(server.requests[-1].body)["region"] == "aws/us-east-1"


def test_removing_says_what_went(crucible: Any, serve: Any) -> None:
    serve({"DELETE /v1/datasets/images": {"removed": ["images", f"images@{DIGEST}"]}})
    assert crucible("dataset", "rm", "images").out == f"removed images\nremoved images@{DIGEST}\n"
