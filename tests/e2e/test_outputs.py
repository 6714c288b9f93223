"""Outputs as a person uses them: a job leaves files, they are listed and fetched, and a second job reads them. On the
server's own disk and in a real S3; with servers, agents and clients that are killed, and storage that is full."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_cli_journeys import LIMIT_S, Person, person
from .test_datasets import s3_person

__all__ = ["person", "s3_person"]

LEAVE = (
    "import os, pathlib, random; out = pathlib.Path(os.environ['CRUCIBLE_OUTPUT']); (out / 'deep').mkdir();"
    "(out / 'a.txt').write_text('hello\\n'); (out / 'deep/b.bin').write_bytes(random.Random(7).randbytes(3 << 20));"
    "(out / 'latest').symlink_to('deep/b.bin')"
)
READ = 'cat "$CRUCIBLE_INPUTS/made/a.txt" && wc -c < "$CRUCIBLE_INPUTS/made/latest"'
BIG_MIB = 160
LEAVE_MUCH = (
    "import os, pathlib, random; out = pathlib.Path(os.environ['CRUCIBLE_OUTPUT']); dice = random.Random(3);"
    f"[(out / f'f{{n:03}}').write_bytes(dice.randbytes(1 << 20)) for n in range({BIG_MIB})]"
)


def a_job(person: Person, argv: list[str] | str, name: str = "maker", **fields: object) -> str:
    job = {"name": name, "command": argv, "retry": {"limit": 0}, **fields}
    return person.write(f"{name}.yaml", json.dumps({"job": job}))


def python(code: str) -> list[str]:
    return ["python", "-c", code]


def stored(person: Person) -> list[Path]:
    return [path for path in (person.data / "objects/outputs").glob("*/objects/*") if not path.name.startswith(".")]


def agents(person: Person) -> list[int]:
    """Of machines of this computer: each writes its number into its lock."""
    locks = [path.with_name("lock") for path in (person.data / "local").rglob("boot.json")]
    return [int(lock.read_text()) for lock in locks if lock.exists() and lock.read_text().strip()]


def journey(person: Person) -> None:
    made = person.run("submit", a_job(person, python(LEAVE)), "-y")
    assert made.returncode == 0, made.stdout + made.stderr
    assert "left 3 files behind" in made.stdout + made.stderr
    job = str(person.json("describe", "maker")["id"])
    (item,) = person.json("outputs", "ls", "maker")["items"]  # type: ignore[misc]
    assert (item["task"], item["files"], item["size_bytes"]) == (0, 3, (3 << 20) + 6)
    assert "3.0 MiB" in person.run("outputs", "ls", job).stdout and "output" in person.run("artifacts", job).stdout
    got = person.run("outputs", "get", "maker", "-d", "results")
    assert got.returncode == 0 and "100% of 3.0 MiB" in got.stderr, got.stderr
    folder = Path(got.stdout.strip())
    assert folder == person.folder / "results/task-00000"
    assert (folder / "a.txt").read_text() == "hello\n" and os.readlink(folder / "latest") == "deep/b.bin"
    assert (folder / "deep/b.bin").read_bytes() == random.Random(7).randbytes(3 << 20)
    again = person.run("outputs", "get", "maker", "0", "-d", "results")
    assert again.returncode == 1 and "is there already" in again.stderr
    for address in (f"output://{job}", f"output://{job}/0", f"tree://{item['digest']}"):
        read = person.run("submit", a_job(person, READ, "reader", inputs={"made": address}), "-y")
        assert read.returncode == 0 and f"hello\n{3 << 20}\n" in read.stdout, read.stdout + read.stderr
    assert read.stdout.count("came from storage") + read.stderr.count("came from storage") == 0, "it was there already"


def test_what_a_job_leaves_is_listed_fetched_and_read_by_the_next(person: Person) -> None:
    journey(person)


def test_the_same_with_a_real_s3(s3_person: Person) -> None:
    journey(s3_person)
    assert stored(s3_person) == []


def test_the_library_lists_and_fetches_too(person: Person) -> None:
    assert person.run("submit", a_job(person, python(LEAVE)), "-y").returncode == 0
    job_id = person.json("describe", "maker")["id"]
    code = "import sys, crucible; job = crucible.MLPlatform().job(sys.argv[1]); (left,) = job.outputs()"
    argv = [sys.executable, "-c", f"{code}; print(left['files'], job.get_output('there'))", str(job_id)]
    ran = subprocess.run(argv, cwd=person.folder, env=person.env, capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.stdout.strip() == f"3 {person.folder / 'there/task-00000'}", ran.stderr


def test_every_trial_of_a_search_leaves_its_own(person: Person) -> None:
    command = 'cp "$CRUCIBLE_PARAMS" "$CRUCIBLE_OUTPUT/params.json" && test "$(cat $CRUCIBLE_PARAMS | wc -c)" -gt 2'
    sweep = {"method": "grid", "parameters": {"lr": [0.1, 0.2, 0.3]}}
    spec = a_job(person, command, "search", type="hpo", sweep=sweep)
    ran = person.run("submit", spec, "-y")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    job = str(person.json("describe", "search")["id"])
    items: list[dict[str, object]] = person.json("outputs", "ls", job)["items"]  # type: ignore[assignment]
    assert [item["task"] for item in items] == [0, 1, 2] and len({item["digest"] for item in items}) == 3
    got = person.run("outputs", "get", job, "-d", "results")
    assert got.returncode == 0 and len(got.stdout.split()) == 3, got.stderr
    assert "0.2" in (person.folder / "results/task-00001/params.json").read_text()
    several = person.run("submit", a_job(person, "true", "reader", inputs={"made": f"output://{job}"}), "-y")
    assert several.returncode == 2 and f"say which, as output://{job}/TASK" in several.stderr
    show = 'cat "$CRUCIBLE_INPUTS/best/params.json"'
    read = person.run("submit", a_job(person, show, "reader", inputs={"best": f"output://{job}/1"}), "-y")
    assert read.returncode == 0 and "0.2" in read.stdout, read.stdout + read.stderr


def test_bad_input_is_told_and_changes_nothing(person: Person) -> None:
    assert person.run("submit", a_job(person, "true"), "-y").returncode == 0
    job = str(person.json("describe", "maker")["id"])
    missing = person.run("submit", a_job(person, READ, "reader", inputs={"made": f"output://{job}"}), "-y")
    assert missing.returncode == 2 and "has left nothing behind" in missing.stderr, missing.stderr
    for argv, (code, words) in {
        ("outputs", "get", "maker"): (5, "has left nothing behind"),
        ("outputs", "get", "maker", "-1"): (2, "-1"),
        ("outputs", "ls", "nobody"): (5, "nobody"),
    }.items():
        refused = person.run(*argv)
        assert refused.returncode == code and words in refused.stderr, (argv, refused)
    empty = person.run("outputs", "ls", "maker")
    assert empty.returncode == 0 and empty.stdout == "" and "nothing yet" in empty.stderr


def test_outputs_that_cannot_be_stored_fail_the_job_and_say_why(person: Person) -> None:
    code = "import os; os.symlink('/etc/passwd', os.environ['CRUCIBLE_OUTPUT'] + '/x')"
    ran = person.run("submit", a_job(person, python(code)), "-y")
    assert ran.returncode == 100, ran.stderr
    said = person.run("why", "maker").stdout
    assert "could not store the outputs: the link 'x' leads to '/etc/passwd', out of the folder" in said
    assert person.json("outputs", "ls", "maker")["items"] == []


# --- kills ------------------------------------------------------------------------------------------------------


def whole(person: Person, job: str) -> None:
    """All of what LEAVE_MUCH wrote can be fetched."""
    assert person.run("wait", job).returncode == 0, person.run("why", job).stdout
    got = person.run("outputs", "get", job, "-d", "results")
    assert got.returncode == 0, got.stderr
    dice = random.Random(3)
    folder = Path(got.stdout.strip())
    assert all((folder / f"f{n:03}").read_bytes() == dice.randbytes(1 << 20) for n in range(BIG_MIB))
    assert len(list(folder.iterdir())) == BIG_MIB


def test_a_server_that_is_killed_during_the_upload_costs_nothing(person: Person) -> None:
    job = str(person.json("submit", a_job(person, python(LEAVE_MUCH)), "-y", "--detach")["id"])
    person.until("some objects are stored", lambda: len(stored(person)) >= 3)
    os.kill(json.loads((person.data / "server.json").read_text())["pid"], signal.SIGKILL)
    assert person.run("server", "start").returncode == 0
    whole(person, job)


def test_an_agent_that_is_killed_during_the_upload_leaves_nothing_half(person: Person) -> None:
    """Nobody starts it again on this computer: its task runs on another machine, and that one's outputs count."""
    job = str(person.json("submit", a_job(person, python(LEAVE_MUCH)), "-y", "--detach")["id"])
    person.until("some objects are stored", lambda: len(stored(person)) >= 3)
    for pid in agents(person):
        os.kill(pid, signal.SIGKILL)
    assert person.json("outputs", "ls", job)["items"] == []
    whole(person, job)


def test_a_client_that_is_killed_while_it_fetches_goes_on(person: Person) -> None:
    assert person.run("submit", a_job(person, python(LEAVE_MUCH)), "-y").returncode == 0
    results = person.folder / "results"
    with person.start("outputs", "get", "maker", "-d", "results") as getting:
        person.until("some came", lambda: any(len(p.read_text().split()) >= 5 for p in results.glob(".task-*/done")))
        getting.send_signal(signal.SIGKILL)
        getting.communicate(timeout=LIMIT_S)
    assert not (results / "task-00000").exists()
    whole(person, "maker")
    assert [path.name for path in results.iterdir()] == ["task-00000"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_storage_fails_the_job_and_nothing_of_it_stays(person: Person, small_disk: Path) -> None:
    person.env["CRUCIBLE_STORAGE"] = small_disk.as_uri()
    ran = person.run("submit", a_job(person, python(LEAVE_MUCH)), "-y")
    assert ran.returncode == 100, ran.stderr
    assert "could not store the outputs: storage refuses them: HTTP 507" in person.run("why", "maker").stdout
    assert person.json("outputs", "ls", "maker")["items"] == []
    person.until("it is empty again", lambda: not [path for path in small_disk.rglob("*") if path.is_file()])
    assert person.run("submit", a_job(person, python(LEAVE), "small"), "-y").returncode == 0
