"""Refusals as Amazon words them: a code that clients act on, a sentence for people, and a status."""

import re
from typing import Never

# XML cannot carry them.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
LONGEST_MESSAGE = 1000  # what it repeats of a request may be long


class AwsError(Exception):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = UNPRINTABLE.sub("?", message)[:LONGEST_MESSAGE]
        self.status = status


class AnswerMisfit(Exception):
    """Our bug: an answer that does not fit the shape that Amazon describes."""


def invalid(message: str) -> Never:
    raise AwsError("InvalidParameterValue", message)


def combination(message: str) -> Never:
    raise AwsError("InvalidParameterCombination", message)


def missing(name: str) -> Never:
    raise AwsError("MissingParameter", f"The request must contain the parameter {name}")


def would_succeed() -> AwsError:
    """The answer to a dry run."""
    return AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)


def beyond_the_lab(what: str) -> Never:
    """Real, described by Amazon, and not pretended here: a loud refusal instead of a quiet difference."""
    raise AwsError("UnsupportedOperation", f"The Lab does not emulate {what}.")
