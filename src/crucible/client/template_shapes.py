"""What the API answers about job templates, as types over plain JSON."""

from typing import TypedDict

Value = str | bool | int | float


class TemplateParameter(TypedDict):
    name: str
    type: str
    doc: str
    required: bool
    default: Value | None
    least: Value | None
    most: Value | None
    choices: list[str]


class Template(TypedDict):
    name: str
    description: str
    user: str | None  # None: it comes with Crucible
    created_at: str | None
    parameters: list[TemplateParameter]
    problem: str | None  # why the server cannot read it


class TemplateView(Template):
    body: str
