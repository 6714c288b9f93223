"""Every request and every answer beside botocore's description: names, types and required members by botocore's own
validator, then what it leaves out: enumerations, upper bounds and patterns."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from botocore.validate import ParamValidator

from crucible.lab.aws.errors import AnswerMisfit, AwsError
from crucible.lab.aws.models import OPEN_ENUMS, Operation, Shape

_validator = ParamValidator()


def request(operation: Operation, values: dict[str, Any]) -> None:
    """Raises AwsError, worded as the protocol's services do, unless `values` fit the operation's input."""
    if operation.input is None:
        if values:
            raise _unknown(operation.protocol, next(iter(values)))
        return
    # Its report is text; what it found is kept in this list.
    for reason, where, more in _validator.validate(values, operation.input)._errors:
        raise _refusal(operation.protocol, reason, where.lstrip("."), more)
    for problem in _limits(operation.input, values, ""):
        raise AwsError(_INVALID[operation.protocol], problem)


def answer(operation: Operation, values: dict[str, Any]) -> None:
    """Raises AnswerMisfit unless `values` fit the operation's output."""
    if operation.output is None:
        if values:
            raise AnswerMisfit(f"{operation.name} answers nothing, not {values}")
        return
    errors = _validator.validate(values, operation.output)
    if errors.has_errors():
        raise AnswerMisfit(f"{operation.name}: {errors.generate_report()}")
    for problem in _enums(operation.output, values, ""):
        raise AnswerMisfit(f"{operation.name}: {problem}")


_INVALID = {"ec2": "InvalidParameterValue", "query": "ValidationError", "json": "ValidationException"}
_MISSING = {"ec2": "MissingParameter", "query": "MissingParameter", "json": "ValidationException"}
_UNKNOWN = {"ec2": "UnknownParameter", "query": "ValidationError", "json": "ValidationException"}
_TYPE = {"ec2": "InvalidParameterValue", "query": "ValidationError", "json": "SerializationException"}


def _refusal(protocol: str, reason: str, where: str, more: dict[str, Any]) -> AwsError:
    if reason == "missing required field":
        name = ".".join(filter(None, (where, more["required_name"])))
        return AwsError(_MISSING[protocol], f"The request must contain the parameter {name}")
    if reason == "unknown field":
        return _unknown(protocol, ".".join(filter(None, (where, more["unknown_param"]))))
    if reason in ("invalid range", "invalid length"):
        return AwsError(
            _INVALID[protocol],
            f"Value ({more['param']}) for parameter {where} is invalid. The least allowed is {more['min_allowed']}.",
        )
    return AwsError(_TYPE[protocol], f"Value for parameter {where or 'input'} is invalid: {reason}")


def _unknown(protocol: str, name: str) -> AwsError:
    return AwsError(_UNKNOWN[protocol], f"The parameter {name} is not recognized")


def _limits(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What botocore's validator leaves to the service."""
    yield from _enums(shape, value, path)
    for inner, part, where in _parts(shape, value, path):
        said = inner.metadata
        size = len(part) if isinstance(part, (str, list)) else part
        if "max" in said and isinstance(size, (int, float)) and size > said["max"]:
            yield f"Value ({part}) for parameter {where} is invalid. The most allowed is {said['max']}."
        if "pattern" in said and isinstance(part, str) and not _pattern(said["pattern"]).search(part):
            yield f"Value ({part}) for parameter {where} is invalid. It must match {said['pattern']}."


def _enums(shape: Shape, value: Any, path: str) -> Iterator[str]:
    for inner, part, where in _parts(shape, value, path):
        allowed = inner.metadata.get("enum")
        if allowed and inner.name not in OPEN_ENUMS and part not in allowed:
            yield f"Value ({part}) for parameter {where} is invalid. It must be one of {', '.join(allowed)}."


def _parts(shape: Shape, value: Any, path: str) -> Iterator[tuple[Shape, Any, str]]:
    """Every simple value and every list within, with its shape and where it stands."""
    kind = shape.type_name
    if kind == "structure":
        for name, item in value.items():
            yield from _parts(shape.members[name], item, f"{path}.{name}" if path else name)
    elif kind == "list":
        yield shape, value, path
        for number, item in enumerate(value, 1):
            yield from _parts(shape.member, item, f"{path}.{number}")
    elif kind == "map":
        for name, item in value.items():
            yield from _parts(shape.value, item, f"{path}.{name}")
    else:
        yield shape, value, path


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
