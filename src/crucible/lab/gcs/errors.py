"""Refusals as Google words them: a code that clients act on, a sentence for people, and a status."""

import re
from typing import Never

# XML cannot carry them.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
LONGEST_MESSAGE = 1000  # what it repeats of a request may be long


class GcsError(Exception):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = UNPRINTABLE.sub("?", message)[:LONGEST_MESSAGE]
        self.status = status


def invalid(message: str) -> Never:
    raise GcsError("InvalidArgument", message)


def beyond_the_lab(what: str) -> Never:
    """Real, described by Google, and not pretended here: a loud refusal instead of a quiet difference."""
    raise GcsError("InvalidArgument", f"The Lab does not emulate {what}.")


def no_such_bucket(name: str) -> GcsError:
    return GcsError("NoSuchBucket", f"The specified bucket does not exist: {name}", 404)


def no_such_key(key: str) -> GcsError:
    return GcsError("NoSuchKey", f"The specified key does not exist: {key}", 404)


def no_such_upload(upload: str) -> GcsError:
    return GcsError("NoSuchUpload", f"The requested upload was not found: {upload}", 404)


def precondition_failed(condition: str) -> GcsError:
    return GcsError(
        "PreconditionFailed", f"At least one of the pre-conditions you specified did not hold: {condition}", 412
    )


def unauthenticated(why: str) -> GcsError:
    return GcsError("AuthenticationRequired", f"Authentication required. {why}", 401)


def access_denied(why: str) -> GcsError:
    return GcsError("AccessDenied", f"Access denied. {why}", 403)
