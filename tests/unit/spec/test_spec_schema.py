"""The JSON Schema and the reference say what the validator does, since all three come from one table."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from crucible.model.errors import InvalidSpec
from crucible.spec import example, load, minimal_example, reference, schema
from crucible.spec.fields import groups
from crucible.spec.table import Field, Group, written

ROOT = Path(__file__).parents[3]
GOOD = sorted((ROOT / "tests/golden/spec/good").glob("*.yaml"))
FIELDS = [
    (path, field) for path, group in groups().items() for field in group.fields if not isinstance(field.kind, Group)
]


class EditorLoader(yaml.SafeLoader):
    """Reads YAML as editors do: dates stay text, as in YAML 1.2."""


EditorLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def is_valid_by_schema(text: str) -> bool:
    data: Any = yaml.load(text, EditorLoader)  # a SafeLoader
    return Draft202012Validator(schema()).is_valid(data)


def is_valid(text: str) -> bool:
    try:
        load(text)
    except InvalidSpec:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


def test_the_examples_validate_without_warnings() -> None:
    for text in (example(), minimal_example()):
        assert load(text).warnings == ()
        assert is_valid_by_schema(text)


# Plain `no` as a name is text to us and false to an editor that reads YAML 1.1.
@pytest.mark.parametrize("path", [p for p in GOOD if p.stem != "yaml11_words_as_text"], ids=lambda p: p.stem)
def test_good_specs_are_good_by_the_schema(path: Path) -> None:
    assert is_valid_by_schema(path.read_text())


@pytest.mark.parametrize(
    "lines",
    [
        "name: x",
        "entrypoint: ../x.py",
        "entrypoint: s3://b",
        "model: {config: {}}",
        "steps: [train]",
        "command: x\n  bogus: 1",
        "command: x\n  type: dance",
        "command: x\n  args: []",
        "command: x\n  priority: 1001",
        "command: x\n  timeout: 5 parsecs",
        "command: x\n  timeout: 1h\n  timeout_minutes: 2",
        "command: x\n  retry: {limit: 1}\n  retry_count: 2",
        "command: x\n  resources: {gpus: -1}",
        "command: x\n  resources: {gpus: many}",
        "command: x\n  resources: {gpu_memory: 80XB}",
        "command: x\n  resources: {estimated_hours: 0}",
        "command: x\n  constraints: {min_reliability: 1.01}",
        "command: x\n  constraints: {deadline: 2027-01-15T10:00:00}",
        "command: x\n  constraints: {budget: ten}",
        "command: x\n  data: {dataset: imagenet}",
        "command: x\n  env: {CRUCIBLE_A: b}",
        "command: x\n  env: {A: [b]}",
        "command: x\n  secrets: HF_TOKEN",
        "command: x\n  secrets: [a-b]",
        "command: x\n  secrets: [{env: A}]",
        "command: x\n  secrets: [{name: A, file: /etc/passwd}]",
        "command: x\n  secrets: [{name: A, file: a/../../b}]",
        "command: x\n  checkpoint: {keep: 1}",
        "command: x\n  volumes: {data: /x}",
        "command: x\n  resources: {estimated_on: A100:0}",
        "command: x\n  workload: {parameters: 7Q}",
        "command: x\n  workload: {precision: int4}",
        "command: x\n  workload: {batch_size: 0}",
        "command: x\n  constraints: {providers: []}",
        "command: x\n  constraints: {max_price_per_hour: -1}",
        "command: x\n  constraints: {strategy: best}",
        "command: x\n  sweep: {method: annealing}",
        "command: x\n  sweep: {parameters: {lr: {min: 1}}}",
        "command: x\n  sweep: {parameters: {}}",
        "command: x\n  sweep: {parameters: {a b: [1]}}",
        "command: x\n  sweep: {parameters: {lr: [1]}, trials: 0}",
        "command: x\n  sweep: {parameters: {lr: [1]}, trials: []}",
        "command: x\n  sweep: {parameters: {lr: [1]}, trials: 100001}",
        "command: x\n  sweep: {parameters: {lr: [1]}, objective: {goal: minimize}}",
        "command: x\n  evaluation: {models: [a]}",
        "command: x\n  shards: {size: 1}",
    ],
)
def test_simple_slips_are_found_by_both(lines: str) -> None:
    text = f"job:\n  {lines}\n"
    assert not is_valid(text)
    assert not is_valid_by_schema(text)


def nested(path: str, line: str = "") -> str:
    """A spec with `line` in the mapping at `path`, and with what that mapping must have besides."""
    text = "".join("  " * depth + f"{part}:\n" for depth, part in enumerate(path.split(".")))
    if path != "job":
        text = text.replace("job:\n", "job:\n  template: t\n", 1)
    lines = [*needed(path, line.partition(":")[0]), *([line] if line else [])]
    return text + "".join("  " * (path.count(".") + 1) + each + "\n" for each in lines or ["{}"])


def needed(path: str, name: str) -> list[str]:
    """Lines that the mapping must have beside the field `name`."""
    group = groups()[path]
    found = [field.sample for field in group.fields if field.is_required and field.name != name]
    if group.one_of and name not in group.one_of:
        found.append("template: t" if path == "job" else group.by_name[group.one_of[0]].sample)
    return found


# What the rules between fields ask for beside a sample.
BESIDE = {
    "job.resources.requires_multi_node": "    gpus: 2\n",
    "job.execution.min_nodes": "  framework: pytorch_ddp\n",
    "job.execution.max_nodes": "  framework: pytorch_ddp\n",
    "job.volumes": "  image: busybox\n",
    "job.sweep.parameters": "    method: random\n",
}


@pytest.mark.parametrize(("path", "field"), FIELDS, ids=lambda v: v.name if isinstance(v, Field) else "")
def test_every_sample_in_the_table_is_valid(path: str, field: Field) -> None:
    text = nested(path, field.sample) + BESIDE.get(f"{path}.{field.name}", "")
    assert load(text).spec
    assert is_valid_by_schema(text)


@pytest.mark.parametrize(
    ("path", "field"),
    [(p, f) for p, f in FIELDS if f.default is not None],
    ids=lambda v: v.name if isinstance(v, Field) else "",
)
def test_the_defaults_in_the_table_are_those_of_the_model(path: str, field: Field) -> None:
    assert load(nested(path, f"{field.name}: {written(field.default)}")).spec == load(nested(path)).spec


def test_every_field_says_what_it_is_for() -> None:
    for path, field in FIELDS:
        described = schema()["properties"]["job"]
        for part in path.split(".")[1:]:
            described = described["properties"][part]
        entry = described["properties"][field.name]
        assert entry["title"] and entry["description"] == field.doc and entry["examples"]


def test_the_page_about_the_spec_holds_the_reference() -> None:
    """Run with CRUCIBLE_REWRITE_GOLDEN=1 to write it anew."""
    page = ROOT / "docs/spec.md"
    start, end = "<!-- fields: start -->\n", "<!-- fields: end -->\n"
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(start)
    inside, _, tail = rest.partition(end)
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        inside = f"\n{reference()}\n"
        page.write_text(head + start + inside + end + tail, encoding="utf-8")
    assert inside == f"\n{reference()}\n"
    assert tail == ""
