"""Work on many items as a person does it: a script, a command, a dataset, a container; progress, results and errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers import IMAGE, Podman
from crucible.client.exits import USAGE
from person import Person
from status_shape import assert_status

ROOT = Path(__file__).parents[2]
SQUARES = """\
from crucible import train
for item in train.items():
    with item:
        if item.index % 100 == 13:
            raise ValueError("unlucky")
        item.done(item.value * item.value)
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    someone = Person(tmp_path_factory.mktemp("batch"))
    yield someone
    someone.leave()


def job(**fields: object) -> str:
    return json.dumps({"job": {"type": "inference", "name": "batch", "retry": {"limit": 1, "delay": "1s"}, **fields}})


def finished(person: Person, spec: str) -> str:
    """The id of the job."""
    ran = person.run("submit", person.write("job.yaml", spec), "-y", "-d", "-q")
    assert ran.returncode == 0, ran.stderr
    job_id = ran.stdout.split()[0]
    waited = person.run("wait", job_id)
    assert waited.returncode == 0, waited.stderr + person.run("logs", job_id).stdout
    return job_id


def test_a_script_works_on_a_thousand_items_and_its_results_are_in_order(person: Person) -> None:
    person.write("infer.py", SQUARES)
    job_id = finished(person, job(entrypoint="infer.py", shards={"count": 1000, "size": 40, "workers": 2}))
    said = [json.loads(line) for line in person.run("results", job_id).stdout.splitlines()]
    assert said == [{"index": n, "result": n * n} for n in range(1000) if n % 100 != 13]
    errors = [json.loads(line) for line in person.run("results", job_id, "--errors").stdout.splitlines()]
    assert errors == [{"index": n, "reason": "ValueError: unlucky"} for n in range(13, 1000, 100)]
    page = person.run("shards", job_id, "--limit", "3").stdout
    assert "1,000 of 1,000 items (100%), 10 failed" in page and "25: 25 done" in page
    counts: Any = person.json("shards", job_id)["counts"]
    assert (counts["items_failed"], counts["done"], counts["usd_per_item"]) == (10, 25, 0.0)
    assert "1,000 of 1,000 items" in person.run("describe", job_id).stdout
    now: Any = person.json("describe", job_id)["now"]
    assert assert_status(now)["progress"]["fraction"] == 1.0
    assert person.run("results", job_id, "-o", "out.jsonl").returncode == 0
    assert len((person.folder / "out.jsonl").read_text().splitlines()) == 990


def test_a_command_is_run_for_each_shard_of_lines(person: Person) -> None:
    (person.folder / "code").mkdir()
    (person.folder / "code" / "prompts.txt").write_text("".join(f"prompt {n}\n" for n in range(50)))
    command = 'tr a-z A-Z < "$CRUCIBLE_ITEMS" > "$CRUCIBLE_OUTPUT_FILE"'
    job_id = finished(person, job(command=command, code="code", shards={"lines": "prompts.txt", "size": 7}))
    assert person.run("results", job_id).stdout == "".join(f"PROMPT {n}\n" for n in range(50))


def test_files_of_a_dataset_are_items(person: Person) -> None:
    folder = person.folder / "texts"
    (folder / "deep").mkdir(parents=True)
    for n in range(12):
        (folder / "deep" / f"{n:02}.txt").write_text("x" * n)
    (folder / "readme.md").write_text("not this one")
    assert person.run("dataset", "add", "texts", str(folder)).returncode == 0
    person.write(
        "size.py",
        "import os\nfrom crucible import train\nfor i in train.items():\n    i.done(os.path.getsize(i.path))\n",
    )
    shards = {"glob": "**/*.txt", "size": 5}
    job_id = finished(person, job(entrypoint="size.py", data={"dataset": "dataset://texts"}, shards=shards))
    said = [json.loads(line) for line in person.run("results", job_id).stdout.splitlines()]
    assert said == [{"index": n, "item": f"deep/{n:02}.txt", "result": n} for n in range(12)]
    cat = 'xargs wc -c < "$CRUCIBLE_ITEMS" | grep -v total | awk \'{print $1}\' > "$CRUCIBLE_OUTPUT_FILE"'
    job_id = finished(person, job(command=cat, data={"dataset": "dataset://texts"}, shards=shards))
    assert person.run("results", job_id).stdout.split() == [str(n) for n in range(12)]


def test_the_example_labels_every_text_but_one(person: Person) -> None:
    ran = person.run("submit", str(ROOT / "examples/inference/batch.yaml"), "-y", "-d", "-q")
    assert ran.returncode == 0, ran.stderr
    job_id = ran.stdout.split()[0]
    assert person.run("wait", job_id).returncode == 0
    said = [json.loads(line) for line in person.run("results", job_id).stdout.splitlines()]
    assert [one["index"] for one in said] == [n for n in range(300) if n != 123]
    assert {one["result"]["label"] for one in said} == {"sport", "money", "space"}
    assert "nothing to label" in person.run("results", job_id, "--errors").stdout


def test_a_glob_that_matches_nothing_is_refused_with_what_there_is(person: Person) -> None:
    person.write("infer.py", SQUARES)
    before = person.run("ps", "-a", "-q").stdout
    ran = person.run("submit", person.write("job.yaml", job(entrypoint="infer.py", shards={"glob": "*.jpg"})), "-y")
    assert ran.returncode == USAGE, ran.stderr
    assert "no file of the shipped code matches '*.jpg'" in ran.stderr and "infer.py" in ran.stderr
    assert person.run("ps", "-a", "-q").stdout == before


def test_too_many_failed_items_fail_the_job_and_say_why(person: Person) -> None:
    person.write("infer.py", SQUARES)
    spec = job(entrypoint="infer.py", shards={"count": 1000, "size": 20, "max_errors": 2})
    job_id = person.run("submit", person.write("job.yaml", spec), "-y", "-d", "-q").stdout.split()[0]
    assert person.run("wait", job_id).returncode == 100
    assert "items failed and max_errors is 2; the first: ValueError: unlucky" in person.run("why", job_id).stdout


def test_a_job_without_items_has_no_results(person: Person) -> None:
    job_id = person.run("submit", person.write("job.yaml", '{"job": {"command": "true"}}'), "-y", "-d", "-q").stdout
    assert person.run("wait", job_id.split()[0]).returncode == 0
    ran = person.run("results", job_id.split()[0])
    assert ran.returncode != 0 and "works on no items" in ran.stderr


def test_workers_in_containers_reach_the_server(tmp_path: Path, podman: Podman) -> None:
    someone = Person(tmp_path / "boxed")
    someone.env |= podman.env
    try:
        someone.write("infer.py", SQUARES)
        box = {"image": IMAGE, "container": {"pull": "never"}}
        job_id = finished(someone, job(entrypoint="infer.py", shards={"count": 20, "size": 6, "workers": 1}, **box))
        assert len(someone.run("results", job_id).stdout.splitlines()) == 19
        command = 'cat "$CRUCIBLE_ITEMS" > "$CRUCIBLE_OUTPUT_FILE"'
        job_id = finished(someone, job(command=command, shards={"items": ["a", "b", "c"], "size": 2}, **box))
        assert someone.run("results", job_id).stdout == "a\nb\nc\n"
    finally:
        someone.leave()
