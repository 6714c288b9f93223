"""JSON 1.1, as Service Quotas, Pricing and SSM speak it: a body to values of the input shape, values of the output
shape to a body, and error bodies."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.models import Operation, Shape

CONTENT_TYPE = "application/x-amz-json-1.1"


def decode(operation: Operation, body: bytes) -> dict[str, Any]:
    """Raises AwsError if the body is no JSON object; types and names are checked elsewhere."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise AwsError("SerializationException", "The request body is not valid JSON.") from None
    if not isinstance(found, dict):
        raise AwsError("SerializationException", "Start of structure or map found where not expected.")
    if operation.input is None:
        return found
    values: dict[str, Any] = _read(operation.input, found)
    return values


def answer(operation: Operation, values: dict[str, Any]) -> bytes:
    return json.dumps(_write(operation.output, values), separators=(",", ":")).encode()


def error(refusal: AwsError) -> bytes:
    return json.dumps({"__type": refusal.code, "message": refusal.message}, separators=(",", ":")).encode()


def _read(shape: Shape, value: Any) -> Any:
    """Moments and blobs become Python's; what does not fit is left for the check to name."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        known = {member.serialization.get("name", name): (name, member) for name, member in shape.members.items()}
        said = {name: item for name, item in value.items() if item is not None}
        return {
            known[name][0] if name in known else name: _read(known[name][1], item) if name in known else item
            for name, item in said.items()
        }
    if kind == "list" and isinstance(value, list):
        return [_read(shape.member, item) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {name: _read(shape.value, item) for name, item in value.items()}
    if kind == "timestamp":
        return _moment(value)
    if kind == "blob":
        return _blob(value)
    return value


def _moment(value: Any) -> Any:
    try:
        return datetime.fromtimestamp(value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise AwsError("SerializationException", f"{value} is not a moment in seconds since 1970.") from None


def _blob(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise AwsError("SerializationException", "A blob must be base64.") from None


def _write(shape: Shape, value: Any) -> Any:
    kind = shape.type_name
    if kind == "structure":
        members = shape.members
        return {
            members[name].serialization.get("name", name): _write(members[name], item) for name, item in value.items()
        }
    if kind == "list":
        return [_write(shape.member, item) for item in value]
    if kind == "map":
        return {name: _write(shape.value, item) for name, item in value.items()}
    if kind == "timestamp":
        return value.timestamp()
    if kind == "blob":
        return base64.b64encode(value).decode()
    return value
