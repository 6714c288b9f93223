"""Random values of any shape that botocore describes, and botocore's own codecs to compare ours with."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import strategies as st

from crucible.lab.aws import models
from crucible.lab.aws.models import Operation, Shape

# What XML can carry.
TEXT = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\ufffe\uffff") | st.sampled_from("\r\n\t<>&\"'+%= "),
    max_size=8,
).filter(lambda text: all(ord(letter) >= 32 or letter in "\r\n\t" for letter in text))
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MOMENT = st.integers(0, 10**12).map(lambda ms: EPOCH + timedelta(milliseconds=ms))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "character": TEXT,
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "timestamp": MOMENT,
    "blob": st.binary(max_size=8),
}


@st.composite
def values(draw: st.DrawFn, shape: Shape, depth: int = 0) -> Any:
    """A value that says something: the protocols cannot tell an empty list from none."""
    kind = shape.type_name
    if kind == "structure":
        return draw(_structure(shape, depth))
    if kind == "list":
        return [
            item
            for item in (draw(values(shape.member, depth + 1)) for _ in range(draw(st.integers(1, 2))))
            if item != {}
        ]
    if kind == "map":
        return {draw(SCALARS["string"]): draw(values(shape.value, depth + 1))}
    if shape.metadata.get("enum"):
        return draw(st.sampled_from(shape.metadata["enum"]))
    return draw(SCALARS[kind])


@st.composite
def _structure(draw: st.DrawFn, shape: Shape, depth: int) -> dict[str, Any]:
    names = [name for name, member in shape.members.items() if depth < 4 or member.type_name in SCALARS]
    if not names:
        return {}
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=4))
    found = {name: draw(values(shape.members[name], depth + 1)) for name in chosen}
    return {name: value for name, value in found.items() if value not in ({}, [])}


def operation(service: str, name: str) -> Operation:
    found = models.operation(service, name)
    assert found is not None
    return found


def sent(operation: Operation, given: dict[str, Any]) -> Any:
    """The body that botocore sends: a form, or JSON."""
    described = models.service(operation.service).operation_model(operation.name)
    body = create_serializer(operation.protocol, False).serialize_to_request(given, described)["body"]
    return urlencode(body) if isinstance(body, dict) else body


def read_back(operation: Operation, body: bytes, status: int = 200) -> dict[str, Any]:
    """What botocore makes of an answer."""
    answer = {"body": body, "headers": {}, "status_code": status}
    parsed: dict[str, Any] = create_parser(operation.protocol).parse(answer, operation.output)
    parsed.pop("ResponseMetadata", None)
    return parsed
