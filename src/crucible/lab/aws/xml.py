"""Answers of the EC2 and Query protocols: XML around the elements of an output shape, and their error documents."""

from functools import lru_cache
from typing import Any
from xml.sax.saxutils import escape

from crucible.lab.aws.elements import Element, contents
from crucible.lab.aws.errors import AnswerMisfit, AwsError
from crucible.lab.aws.models import Operation

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def answer(operation: Operation, values: dict[str, Any], request_id: str) -> bytes:
    """Raises AnswerMisfit unless `values` fit the operation's output."""
    out = [_HEAD, f'<{operation.name}Response xmlns="{operation.namespace.rstrip("/")}/">']
    if operation.protocol == "ec2":
        out.append(f"<requestId>{request_id}</requestId>")
        _output(operation, values, out)
    else:
        _wrapped(operation, values, out)
        out.append(f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>")
    out.append(f"</{operation.name}Response>")
    return "".join(out).encode()


def ec2_error(error: AwsError, request_id: str) -> bytes:
    return (
        f"{_HEAD}<Response><Errors><Error><Code>{escape(error.code)}</Code>"
        f"<Message>{escape(error.message)}</Message></Error></Errors><RequestID>{request_id}</RequestID></Response>"
    ).encode()


def query_error(error: AwsError, request_id: str, namespace: str) -> bytes:
    kind = "Sender" if error.status < 500 else "Receiver"
    return (
        f'{_HEAD}<ErrorResponse xmlns="{namespace}"><Error><Type>{kind}</Type><Code>{escape(error.code)}</Code>'
        f"<Message>{escape(error.message)}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode()


def _output(operation: Operation, values: dict[str, Any], out: list[str]) -> None:
    if operation.output is not None:
        _contents(operation).write(values, out)
    elif values:
        raise AnswerMisfit(f"{operation.name} answers nothing, not {values}")


def _wrapped(operation: Operation, values: dict[str, Any], out: list[str]) -> None:
    wrapper = operation.output.serialization.get("resultWrapper") if operation.output is not None else None
    if wrapper is None:
        _output(operation, values, out)
        return
    out.append(f"<{wrapper}>")
    _output(operation, values, out)
    out.append(f"</{wrapper}>")


@lru_cache(maxsize=1024)
def _contents(operation: Operation) -> Element:
    return contents(operation.output)
