"""The templates that come with Crucible. That their jobs run is shown in tests/e2e/test_templates.py."""

import pytest

from crucible import templates
from crucible.spec import load
from crucible.spec.filling import fill
from crucible.spec.template import read_template


def test_there_is_one_for_each_common_kind_of_work() -> None:
    assert templates.names() == ("batch-inference", "ddp-resnet", "evaluation", "fine-tune", "nanogpt", "sweep")


@pytest.mark.parametrize("name", templates.names())
def test_each_is_called_as_its_folder_and_its_defaults_give_a_job_without_warnings(name: str) -> None:
    template = read_template(templates.text(name))
    assert template.name == name
    loaded = load(fill(template, {}))
    assert loaded.warnings == () and loaded.spec.code == "." and loaded.spec.name == name
    assert (templates.folder(name) / str(loaded.spec.entrypoint)).is_file()


@pytest.mark.parametrize("name", templates.names())
def test_every_parameter_says_what_it_is_for(name: str) -> None:
    assert all(parameter.doc for parameter in read_template(templates.text(name)).parameters)


def test_what_nanogpt_leaves_is_what_fine_tune_begins_with() -> None:
    first, second = (templates.folder(name) / "model.py" for name in ("nanogpt", "fine-tune"))
    assert first.read_text() == second.read_text()
