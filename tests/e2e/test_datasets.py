"""Datasets as a person uses them: a folder is added, jobs read it, the second finds it on the node, and it goes. On the
server's own disk and in a real S3; with clients that are killed, and two at once."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage_engines import StorageEngine

from .test_cli_journeys import LIMIT_S, Person, person

__all__ = ["person"]

READ = 'cat "$DATASET/a.txt" && find "$DATASET/" -type f | wc -l && (cd "$DATASET" && sha256sum deep/b.bin)'


def a_folder(person: Person, name: str = "images", count: int = 300, size: int = 1000) -> Path:
    folder = person.folder / name
    (folder / "deep").mkdir(parents=True)
    dice = random.Random(7)
    (folder / "a.txt").write_text("hello\n")
    (folder / "deep/b.bin").write_bytes(dice.randbytes(3 << 20))
    for n in range(count):
        (folder / f"f{n:04}").write_bytes(dice.randbytes(size))
    return folder


def a_job(person: Person, command: str = READ, dataset: str = "dataset://images", policy: str = "none") -> str:
    data = {"dataset": dataset, "replication_policy": policy}
    return person.write("job.yaml", json.dumps({"job": {"name": "reader", "command": command, "data": data}}))


def stored(person: Person) -> list[Path]:
    folder = person.data / "objects/datasets/objects"
    return [path for path in folder.glob("*") if not path.name.startswith(".")] if folder.is_dir() else []


def journey(person: Person, policy: str = "none") -> None:
    folder = a_folder(person)
    added = person.run("dataset", "add", "images", str(folder))
    assert added.returncode == 0, added.stderr
    assert "302 files" in added.stdout and "100% stored, 3.3 MiB sent" in added.stderr
    again = person.run("dataset", "add", "images", str(folder))
    assert "0 B sent" in again.stderr and again.stdout == added.stdout
    first = person.run("submit", a_job(person, policy=policy), "-y")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "hello" in first.stdout and "302" in first.stdout and "deep/b.bin" in first.stdout
    assert "came from storage" in first.stdout + first.stderr
    second = person.run("submit", a_job(person, policy=policy), "-y")
    assert second.returncode == 0 and "hello" in second.stdout
    assert "came from storage" not in second.stdout + second.stderr
    (listed,) = person.json("dataset", "ls")["items"]
    assert (listed["name"], listed["files"]) == ("images", 302)
    assert "Digest" in person.run("dataset", "show", "images").stdout
    assert person.run("dataset", "rm", "images").stdout == "removed images\n"
    assert person.json("dataset", "ls")["items"] == []


def test_a_folder_is_added_read_found_again_and_removed(person: Person) -> None:
    journey(person)
    assert stored(person) == []


@pytest.fixture
def s3_person(person: Person, seaweedfs: StorageEngine) -> Iterator[Person]:
    """What is added goes to S3; machines of this computer have storage of their own beside them."""
    person.env |= seaweedfs.environ | {
        "CRUCIBLE_STORAGE": f"s3://{seaweedfs.bucket}/e2e-{time.time_ns()}",
        "CRUCIBLE_REGION_STORAGE": f"local/local=file://{person.data}/regional",
    }
    yield person


def test_the_same_with_a_real_s3_that_clients_and_nodes_reach_by_signed_requests(s3_person: Person) -> None:
    journey(s3_person, "on-demand-cache")
    assert stored(s3_person) == []


def test_a_tree_in_s3_is_copied_beside_the_machines_before_ranks_start(s3_person: Person) -> None:
    assert s3_person.run("dataset", "add", "images", str(a_folder(s3_person))).returncode == 0
    ran = s3_person.run("submit", a_job(s3_person, policy="pre-stage"), "-y")
    assert ran.returncode == 0 and "hello" in ran.stdout, ran.stdout + ran.stderr
    (copy,) = s3_person.json("dataset", "show", "images")["copies"]  # type: ignore[misc]
    assert copy["place"] == "local/local"
    regional = s3_person.data / "regional/datasets"
    assert len(list((regional / "objects").iterdir())) >= 2 and len(list((regional / "manifests").iterdir())) == 1
    assert s3_person.run("dataset", "rm", "images").returncode == 0
    assert [path for path in regional.rglob("*") if path.is_file()] == []


def test_a_client_that_is_killed_leaves_no_dataset_and_the_next_goes_on(person: Person) -> None:
    folder = a_folder(person, count=60, size=1 << 20)
    assert person.run("server", "start").returncode == 0
    with person.start("dataset", "add", "images", str(folder)) as adding:
        person.until("some objects are stored", lambda: len(stored(person)) >= 3)
        adding.send_signal(signal.SIGKILL)
        adding.communicate(timeout=LIMIT_S)
    assert person.json("dataset", "ls")["items"] == []
    before = len(stored(person))
    added = person.run("dataset", "add", "images", str(folder))
    assert added.returncode == 0, added.stderr
    sent = float(added.stderr.split("100% stored, ")[1].split(" MiB sent")[0])
    assert sent <= 63.1 - (before - 1), (before, sent)


def test_two_that_add_the_same_folder_at_once_both_succeed(person: Person) -> None:
    folder = a_folder(person, count=20, size=1 << 20)
    assert person.run("server", "start").returncode == 0
    both = [person.start("dataset", "add", name, str(folder)) for name in ("images", "images", "pictures")]
    for one in both:
        out, err = one.communicate(timeout=LIMIT_S)
        assert one.returncode == 0, out + err
    names = {item["name"]: item["digest"] for item in person.json("dataset", "ls")["items"]}
    assert set(names) == {"images", "pictures"} and len(set(names.values())) == 1
    assert person.run("dataset", "rm", "images").returncode == 0
    read = person.run("submit", a_job(person, dataset="dataset://pictures"), "-y")
    assert read.returncode == 0 and "hello" in read.stdout


def test_a_file_that_vanishes_during_the_upload_registers_nothing(person: Person) -> None:
    folder = a_folder(person, count=60, size=1 << 20)
    assert person.run("server", "start").returncode == 0
    with person.start("dataset", "add", "images", str(folder)) as adding:
        person.until("some objects are stored", lambda: len(stored(person)) >= 1)
        for path in folder.glob("f*"):
            path.unlink()
        _, err = adding.communicate(timeout=LIMIT_S)
    assert adding.returncode == 1 and "vanished while it was read; nothing was registered" in err, err
    assert person.json("dataset", "ls")["items"] == []


def test_it_cannot_go_while_a_job_needs_it_and_a_new_tree_changes_no_running_job(person: Person) -> None:
    folder = a_folder(person, count=3)
    assert person.run("dataset", "add", "images", str(folder)).returncode == 0
    wait = "while [ ! -e " + str(person.folder / "go") + ' ]; do sleep 0.1; done; cat "$DATASET/a.txt"'
    job = str(person.json("submit", a_job(person, wait), "-y", "--detach")["id"])
    (folder / "a.txt").write_text("goodbye\n")
    assert person.run("dataset", "add", "images", str(folder)).returncode == 0
    refused = person.run("dataset", "rm", "images")
    assert refused.returncode == 1 and job in refused.stderr
    (person.folder / "go").touch()
    assert person.run("wait", job).returncode == 0
    assert person.run("logs", job).stdout.strip().endswith("hello")
    assert "goodbye" in person.run("submit", a_job(person, 'cat "$DATASET/a.txt"'), "-y").stdout
    assert len(person.run("dataset", "rm", "images").stdout.splitlines()) == 2
    assert stored(person) == []


def test_bad_input_is_told_and_changes_nothing(person: Person) -> None:
    missing = person.run("submit", a_job(person, dataset="dataset://nothing"), "-y")
    assert missing.returncode == 2 and "there is no dataset nothing; add it" in missing.stderr
    for argv, words in {
        ("dataset", "add", "no spaces", "."): "cannot name a dataset",
        ("dataset", "add", "x", "missing"): "is no folder",
        ("dataset", "rm", "x"): "there is no dataset x",
        ("dataset", "show", "x"): "there is no dataset x",
    }.items():
        refused = person.run(*argv)
        assert refused.returncode != os.EX_OK and words in refused.stderr, refused.stderr
