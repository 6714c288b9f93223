"""The CLI against a real server with real agents, as a person uses it: one folder, one data folder, processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from person import LIMIT_S, Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    someone = Person(tmp_path)
    yield someone
    someone.leave()


def command(text: str, name: str = "hello") -> str:
    return f"job:\n  name: {name}\n  command: {json.dumps(text)}\n  retry: {{limit: 0}}\n"


def test_a_first_job_needs_one_command(person: Person) -> None:
    person.write("random.py", "raise SystemExit('a file of the user is not the library')\n")
    ran = person.run("submit", person.write("job.yaml", command("echo one; echo two >&2; echo three")))
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split()) == ["one", "three", "two"]
    assert "started a local server" in ran.stderr
    assert "running → completed" in ran.stderr or "→ completed" in ran.stderr
    assert "hello completed in" in ran.stderr
    again = person.run("submit", "job.yaml", "-q")
    assert (again.returncode, again.stderr) == (0, "")
    assert (person.data / "admin-token").stat().st_mode & 0o077 == 0


def test_two_commands_at_once_start_one_server(person: Person) -> None:
    both = [person.start("ps"), person.start("ps")]
    said = ""
    for process in both:
        with process:
            said += process.communicate(timeout=LIMIT_S)[1]
        assert process.returncode == 0, said
    assert said.count("started a local server") == 1


def test_all_commands_tell_the_same_facts_of_a_job_that_failed(person: Person) -> None:
    ran = person.run("submit", person.write("job.yaml", command("echo oh no; exit 7", "doomed")))
    assert ran.returncode == 100
    assert "doomed failed" in ran.stderr
    job = person.json("describe", "doomed")
    job_id = str(job["id"])
    assert job["status"] == "failed"
    assert person.run("wait", job_id[:18]).returncode == 100
    assert "exited with 7" in person.run("why", "doomed").stdout
    assert person.run("logs", "doomed").stdout == "oh no\n"
    assert person.run("events", "doomed").stdout.splitlines()[-1].split("  ")[1].endswith("→ failed")
    (row,) = person.json("ps", "-a")["items"]  # type: ignore[misc]
    assert row["id"] == job_id  # type: ignore[index]
    assert person.run("ps", "-q").stdout == ""
    assert person.run("cancel", job_id).returncode == 1
    assert person.run("resume", job_id).returncode == 1
    retried = person.run("retry", job_id, "-f")
    assert retried.returncode == 100
    assert retried.stdout == "oh no\n"


def test_code_is_shipped_and_each_rank_is_named(person: Person) -> None:
    person.write("train.py", "import os, helper\nprint('rank', os.environ['RANK'], helper.word)\n")
    person.write("helper.py", "word = 'helped'\n")
    spec = "job:\n  name: gang\n  code: .\n  entrypoint: train.py\n  execution: {processes_per_node: 2}\n"
    ran = person.run("submit", person.write("job.yaml", spec))
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == ["[0] rank 0 helped", "[1] rank 1 helped"]
    assert "sending" in ran.stderr
    again = person.run("submit", "job.yaml")
    assert "sending" not in again.stderr
    assert person.run("logs", "gang", "--rank", "1").stdout == "rank 1 helped\n"


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(person: Person) -> None:
    person.write("job.yaml", command("echo begun; while true; do sleep 0.2; done", "endless"))
    with person.start("submit", "job.yaml") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 130
        said = process.stderr.read()
    job = person.json("describe", "endless")
    assert job["status"] in ("provisioning", "running")
    assert f"crucible logs -f {job['id']}" in said
    assert f"crucible cancel {job['id']}" in said
    assert person.run("wait", "endless", "--timeout", "0.5").returncode == 8
    assert person.run("cancel", "endless").returncode == 0
    assert person.run("wait", "endless").returncode == 103


def test_a_held_job_waits_until_it_is_released(person: Person) -> None:
    person.write("job.yaml", command("echo begun; sleep 1; echo done", "patient"))
    job = person.run("submit", "job.yaml", "-dq").stdout.strip()
    assert person.run("hold", job, "--reason", "lunch").returncode == 0
    person.until("held", lambda: person.json("describe", job)["status"] == "pending")
    assert "is held: lunch" in person.run("why", job).stdout
    assert person.run("release", job).returncode == 0
    assert person.run("wait", job).returncode == 0


def test_a_followed_log_survives_a_restart_of_the_server(person: Person) -> None:
    count = 40
    person.write("job.yaml", command(f"for i in $(seq {count}); do echo line $i; sleep 0.1; done", "counting"))
    assert person.run("submit", "job.yaml", "-d").returncode == 0
    with person.start("logs", "-f", "counting") as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "line 1\n"
        assert person.run("server", "stop").returncode == 0
        assert person.run("server", "start").returncode == 0
        # Not by communicate: lines that came with the first one are in a buffer that it does not read.
        rest = follower.stdout.read()
        assert follower.stderr is not None
        said = follower.stderr.read()
    assert follower.returncode == 0, said
    assert rest.splitlines() == [f"line {i}" for i in range(2, count + 1)]


def test_a_server_that_is_killed_is_found_again(person: Person) -> None:
    count = 40
    person.write("job.yaml", command(f"for i in $(seq {count}); do echo line $i; sleep 0.1; done", "counting"))
    with person.start("submit", "job.yaml") as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "line 1\n"
        pid = int(json.loads((person.data / "server.json").read_text())["pid"])
        os.kill(pid, signal.SIGKILL)
        assert person.run("ps").returncode == 0  # the next command that needs a server starts one
        rest, said = follower.communicate(timeout=LIMIT_S)
    assert follower.returncode == 0, said
    assert rest.splitlines() == [f"line {i}" for i in range(2, count + 1)]


def test_another_person_logs_in_with_a_token_of_their_own(person: Person, tmp_path: Path) -> None:
    person.run("submit", person.write("job.yaml", command("true", "private")))
    url = str(person.json("server", "status")["url"])
    assert person.run("user", "create", "ada").returncode == 0
    token = person.run("token", "create", "laptop", "--user", "ada").stdout
    ada = Person(tmp_path / "ada")
    with ada.start("login", url) as refused:
        refused.communicate(timeout=LIMIT_S)
    assert refused.returncode == 2  # nothing on stdin
    login = subprocess.run(
        [sys.executable, "-m", "crucible.cli.entry", "login", url],
        input=token,
        env=ada.env,
        capture_output=True,
        text=True,
    )
    assert login.returncode == 0, login.stderr
    assert token.strip() not in login.stdout + login.stderr
    assert ada.run("ps", "-aq").stdout == ""
    assert ada.run("describe", "private").returncode == 5
    assert ada.run("user", "ls").returncode == 4
    assert ada.run("doctor").returncode == 0
    assert ada.run("logout").returncode == 0
    assert not ada.data.exists()


def test_a_wrong_token_is_exit_code_4_and_nobody_there_is_1(person: Person) -> None:
    assert person.run("ps").returncode == 0
    url = str(person.json("server", "status")["url"])
    wrong = person.run("ps", CRUCIBLE_SERVER=url, CRUCIBLE_TOKEN="cru_wrong")
    assert wrong.returncode == 4
    assert "crucible login" in wrong.stderr
    person.run("server", "stop")
    gone = person.run("ps", CRUCIBLE_SERVER=url)
    assert gone.returncode == 1
    assert "no server answers" in gone.stderr


def test_a_server_that_cannot_start_shows_the_end_of_its_log(person: Person) -> None:
    ran = person.run("server", "start", "--database", "nonsense://x")
    assert ran.returncode == 1
    assert "server.log ends with:" in ran.stderr
