"""Every template that comes with Crucible runs to its end on this computer, with its defaults; and a person stores,
uses and removes one of their own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crucible import templates
from frameworks import python_of
from person import Person

TORCH = ("ddp-resnet", "fine-tune", "nanogpt")
# The last words of each: they show that it did its work.
SAID = {
    "batch-inference": "lines scored",
    "ddp-resnet": "final accuracy",
    "evaluation": "accuracy",
    "fine-tune": "numbers learned; loss before",
    "nanogpt": "final loss",
    "sweep": "loss",
}

MINE = """\
template:
  name: mine
  description: Says it with code of whoever uses it
  parameters: {word: {type: text}, times: {type: whole, default: 2, most: 5}}
job:
  name: mine
  entrypoint: say.py
  args: ["${{ word }}", "${{ times }}"]
"""
SAY = "import sys\nprint((sys.argv[1] + '!') * int(sys.argv[2]))\n"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    made = Person(tmp_path_factory.mktemp("templates"))
    made.env["OMP_NUM_THREADS"] = "1"
    yield made
    made.leave()


@pytest.mark.parametrize("name", templates.names())
def test_each_runs_to_its_end_with_its_defaults(person: Person, name: str) -> None:
    given = ("-p", f"python={python_of('torch')}") if name in TORCH else ()
    ran = person.run("template", "use", name, *given, "-y", "-n", name)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert SAID[name] in ran.stdout, ran.stdout[-3000:]
    check_what_it_left(person, name)


def check_what_it_left(person: Person, name: str) -> None:
    """A search has a best trial, an evaluation a table, a batch its results in order."""
    if name == "sweep":
        assert "lr" in person.run("sweep", "best", name).stdout
    elif name == "evaluation":
        table = person.run("eval", "show", name).stdout
        assert "always" in table and "nearest" in table
    elif name == "batch-inference":
        lines = person.run("results", name).stdout.splitlines()
        assert [json.loads(line)["index"] for line in lines] == list(range(10))


def test_a_job_file_names_one_and_the_server_brings_its_code(person: Person) -> None:
    spec = "{template: evaluation, with: {candidate: centre}, name: by-file, evaluation: {datasets: [rings]}}"
    ran = person.run("submit", person.write("job.yaml", f"job: {spec}\n"), "-y")
    assert ran.returncode == 0, ran.stderr
    assert "always on rings" in ran.stdout and "the log of task 0" in ran.stderr
    table = person.run("eval", "show", "by-file").stdout
    assert "centre" in table and "rings" in table and "clouds" not in table


def test_a_saved_job_is_changed_and_run(person: Person) -> None:
    folder = person.folder / "saved"
    folder.mkdir()
    assert person.run("template", "use", "sweep", "-p", "trials=1", "--save", "saved/job.yaml").returncode == 0
    script = folder / "sweep" / "trial.py"
    script.write_text(script.read_text().replace('print(f"lr', 'print(f"changed: lr'))
    ran = person.run("submit", "saved/job.yaml", "-y")
    assert ran.returncode == 0, ran.stderr
    assert "changed: lr" in ran.stdout


def test_one_of_their_own_is_stored_used_changed_and_removed(person: Person) -> None:
    person.write("say.py", SAY)
    person.write("mine.yaml", MINE)
    assert person.run("template", "use", "./mine.yaml", "-p", "word=file", "-y").stdout == "file!file!\n"
    assert person.run("template", "add", "mine.yaml").returncode == 0
    assert "Says it with code" in person.run("template", "ls").stdout
    assert person.run("template", "use", "mine", "-p", "word=hi", "-p", "times=3", "-y").stdout == "hi!hi!hi!\n"
    wrong = person.run("template", "use", "mine", "-p", "times=9", "-y")
    assert wrong.returncode == 2 and "parameters.word: is missing" in wrong.stderr and "to 5" not in wrong.stdout
    person.write("mine.yaml", MINE.replace("default: 2", "default: 1"))
    assert person.run("template", "add", "mine.yaml").returncode == 0
    assert person.run("template", "use", "mine", "-p", "word=ho", "-y").stdout == "ho!\n"
    person.write("job.yaml", "job: {template: mine, with: {word: named}}\n")
    assert person.run("submit", "job.yaml", "-y").stdout == "named!\n"
    assert person.run("template", "rm", "mine").returncode == 0
    gone = person.run("template", "use", "mine", "-p", "word=hi", "-y")
    assert gone.returncode == 5 and "crucible template ls" in gone.stderr


def test_the_thin_client_finds_those_that_come_along_in_its_own_package() -> None:
    assert all((Path(templates.folder(name)) / templates.FILE).is_file() for name in templates.names())
