"""The reference of all fields as Markdown, from the table that validates."""

from collections.abc import Iterator

from crucible.spec.fields import groups
from crucible.spec.table import Field, Group, written
from crucible.spec.workflow import OWN

STEP = "job.steps[]"  # has the fields of a job beside these


def reference() -> str:
    """One table per mapping of the spec."""
    lines = [line for path, group in groups().items() for line in _section(path, group)]
    return "\n".join([*lines, *_section(STEP, Group(make=dict, fields=OWN))])


def _section(path: str, group: Group) -> Iterator[str]:
    yield f"### {path}"
    yield ""
    yield "| field | value | default | meaning |"
    yield "|---|---|---|---|"
    for field in group.fields:
        yield f"| `{field.name}` | {_value(field, path)} | {_default(field)} | {_cell(field.doc)} |"
    yield ""


def _value(field: Field, path: str) -> str:
    if isinstance(field.kind, Group):
        inner = f"{path}.{field.name}"
        return f"[{inner}](#{inner.replace('.', '')})"
    example = "" if field.example is None else f", e.g. `{_cell(written(field.example))}`"
    return _cell(field.kind.words) + example


def _default(field: Field) -> str:
    if field.is_required:
        return "required"
    return "" if field.default is None else f"`{written(field.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
