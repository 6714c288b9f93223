"""`crucible template`, and jobs that name one, against a server whose answers we wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from crucible import templates

MINE = """\
template:
  name: mine
  description: Says it
  parameters:
    word: {type: text, doc: what it says}
    times: {type: whole, default: 1, least: 1, most: 9}
job:
  name: mine
  entrypoint: say.py
  code: say
  args: ["${{ word }}", "--times=${{ times }}"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "say").mkdir()
    (tmp_path / "say" / "say.py").write_text("print('it')\n")
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


def test_those_that_come_along_are_shown_without_a_server(crucible: Any) -> None:
    ran = crucible("template", "show", "sweep")
    assert ran.code == 0 and "Template:" in ran.out and "random, tpe" in ran.out and ran.err == ""
    shown = json.loads(crucible("template", "show", "sweep", "-o", "json").out)
    assert shown["parameters"][1]["name"] == "trials" and shown["body"] == templates.text("sweep")
    assert crucible("template", "show", "sweep", "--text").out == templates.text("sweep")


def test_all_are_listed_by_the_server(crucible: Any, serve: Any) -> None:
    one = {
        "name": "mine",
        "description": "Says it",
        "user": "ann",
        "created_at": None,
        "parameters": [],
        "problem": None,
    }
    serve({"GET /v1/templates": {"items": [one]}})
    assert crucible("template", "ls").out.splitlines()[1].split() == ["mine", "ann", "0", "Says", "it"]
    assert json.loads(crucible("template", "ls", "-o", "json").out)["items"] == [one]


def test_a_file_is_shown_and_its_problems_have_their_place(crucible: Any, mine: Path) -> None:
    assert "required" in crucible("template", "show", str(mine)).out
    mine.write_text(MINE.replace("type: whole", "type: int"))
    ran = crucible("template", "show", str(mine))
    assert ran.code == 2 and f"{mine}:6:19: template.parameters.times.type: expected one of" in ran.err


def test_what_is_saved_can_be_submitted(crucible: Any, tmp_path: Path) -> None:
    target = tmp_path / "job.yaml"
    ran = crucible("template", "use", "sweep", "-p", "trials=7", "--gpus", "1", "--save", str(target))
    assert ran.code == 0, ran.err
    assert ran.out == f"saved {target}\nsaved {tmp_path / 'sweep'}\n"
    text = target.read_text()
    assert "trials: 7" in text and "gpus: 1" in text and "code: sweep" in text
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == ["trial.py"]
    assert crucible("validate", str(target)).code == 0
    again = crucible("template", "use", "sweep", "--save", str(target))
    assert again.code == 2 and "exists already" in again.err


def test_the_code_of_a_file_is_found_from_where_the_job_is_saved(crucible: Any, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "job.yaml"
    assert crucible("template", "use", str(mine), "-p", "word=hi", "--save", str(target)).code == 0
    text = target.read_text()
    assert text.startswith("# From the template mine: word=hi\n") and "code: ../say" in text
    assert '- "hi"' in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "word"), "'word' is not NAME=VALUE"),
        (("-p", "word=a", "-p", "word=b"), "word is given twice"),
        (("-p", "wort=a"), "did you mean 'word'?"),
        ((), "parameters.word: is missing, expected text (what it says)"),
        (("-p", "word=a", "-p", "times=10"), "expected a whole number from 1 to 9, found '10'"),
    ],
)
def test_what_cannot_be_filled_in_is_a_usage_error_and_nothing_is_asked_or_written(
    crucible: Any, mine: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    target = tmp_path / "job.yaml"
    ran = crucible("template", "use", str(mine), *words, "--save", str(target))
    assert ran.code == 2 and said in ran.err and not target.exists()


def test_a_missing_file_of_its_code_is_said_before_a_server_is_asked(crucible: Any, mine: Path) -> None:
    (mine.parent / "say" / "say.py").unlink()
    (mine.parent / "say").rmdir()
    ran = crucible("template", "use", str(mine), "-p", "word=hi", "-yd")
    assert ran.code == 2 and "job.code: 'say' does not exist" in ran.err


def test_one_is_stored_and_removed(crucible: Any, serve: Any, mine: Path) -> None:
    view = {"name": "mine", "parameters": [{}, {}], "body": MINE}
    server = serve({"POST /v1/templates": (201, view), "DELETE /v1/templates/mine": (204, {})})
    assert crucible("template", "add", str(mine)).out.startswith("mine: 2 parameters; use it with")
    assert json.loads(server.requests[-1].body) == {"body": MINE}
    assert crucible("template", "rm", "mine").out == "removed mine\n"
    mine.write_text("template: {}")
    asked = len(server.requests)
    assert crucible("template", "add", str(mine)).code == 2 and len(server.requests) == asked


def test_a_job_file_that_names_one_is_checked_offline(crucible: Any, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("job:\n  template: sweep\n  with: {trials: 5}\n  name: mine\n")
    assert crucible("validate", str(path)).out == f"{path}: ok\n"
    path.write_text("job:\n  template: sweep\n  with: {trails: 5}\n")
    ran = crucible("validate", str(path))
    assert ran.code == 2 and f"{path}:3:10: job.with.trails: the template sweep has no parameter" in ran.out
    path.write_text("job: {template: somebody-elses, with: {x: 1}}\n")
    ran = crucible("validate", str(path))
    assert ran.code == 0 and "warning: somebody-elses does not come with Crucible, and no server is asked" in ran.out
    path.write_text("job: {template: sweap}\n")
    assert "did you mean 'sweep'?" in crucible("validate", str(path)).out
