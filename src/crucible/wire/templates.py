"""Job templates in the REST API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Request, SpecText

MAX_PARAMETERS = 200

Value = str | bool | int | float


class TemplateNew(Request):
    body: SpecText  # the file, to the letter; its name stands in it


class Fill(Request):
    """Text is read as on a command line: by the type of its parameter."""

    parameters: Annotated[dict[str, Value | None], Field(default_factory=dict, max_length=MAX_PARAMETERS)]


class TemplateParameter(BaseModel):
    name: str
    type: Literal["text", "whole", "number", "flag", "choice", "size", "duration", "money"]
    doc: str
    required: bool
    default: Value | None
    least: Value | None
    most: Value | None
    choices: list[str]


class TemplateItem(BaseModel):
    name: str
    description: str
    user: str | None  # null: it comes with Crucible
    created_at: datetime | None
    parameters: list[TemplateParameter]
    problem: str | None  # this version cannot read it


class TemplateView(TemplateItem):
    body: str


class Templates(BaseModel):
    items: list[TemplateItem]


class Filled(BaseModel):
    spec_yaml: str
