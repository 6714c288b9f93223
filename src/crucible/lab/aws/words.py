"""What each protocol says when it refuses a signature, is too busy or has failed: code, status and sentence."""

from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.sigv4 import Denied

_DENIED: dict[str, dict[Denied, tuple[str, int]]] = {
    "ec2": {
        Denied.MISSING: ("MissingAuthenticationToken", 403),
        Denied.MALFORMED: ("IncompleteSignature", 400),
        Denied.UNKNOWN_KEY: ("AuthFailure", 401),
        Denied.MISMATCH: ("SignatureDoesNotMatch", 403),
        Denied.EXPIRED: ("RequestExpired", 400),
        Denied.WRONG_REGION: ("AuthFailure", 401),
    },
    "query": {
        Denied.MISSING: ("MissingAuthenticationToken", 403),
        Denied.MALFORMED: ("IncompleteSignature", 400),
        Denied.UNKNOWN_KEY: ("InvalidClientTokenId", 403),
        Denied.MISMATCH: ("SignatureDoesNotMatch", 403),
        Denied.EXPIRED: ("RequestExpired", 400),
        Denied.WRONG_REGION: ("SignatureDoesNotMatch", 403),
    },
    "json": {
        Denied.MISSING: ("MissingAuthenticationTokenException", 400),
        Denied.MALFORMED: ("IncompleteSignatureException", 400),
        Denied.UNKNOWN_KEY: ("UnrecognizedClientException", 400),
        Denied.MISMATCH: ("InvalidSignatureException", 400),
        Denied.EXPIRED: ("InvalidSignatureException", 400),
        Denied.WRONG_REGION: ("InvalidSignatureException", 400),
    },
}
UNKNOWN_KEY = {
    "ec2": "AWS was not able to validate the provided access credentials",
    "query": "The security token included in the request is invalid.",
    "json": "The security token included in the request is invalid.",
}
_EXPIRED = {"ec2": ("RequestExpired", 400), "query": ("ExpiredToken", 403), "json": ("ExpiredTokenException", 400)}
_BUSY = {"ec2": ("RequestLimitExceeded", 503), "query": ("Throttling", 400), "json": ("ThrottlingException", 400)}
_FAILED = {
    ("ec2", 500): "InternalError",
    ("ec2", 503): "Unavailable",
    ("query", 500): "InternalFailure",
    ("query", 503): "ServiceUnavailable",
    ("json", 500): "InternalFailure",
    ("json", 503): "ServiceUnavailableException",
}


def denied(protocol: str, reason: Denied, message: str) -> AwsError:
    code, status = _DENIED[protocol][reason]
    return AwsError(code, message, status)


def credentials_expired(protocol: str) -> AwsError:
    code, status = _EXPIRED[protocol]
    message = "Request has expired." if protocol == "ec2" else "The security token included in the request is expired"
    return AwsError(code, message, status)


def too_busy(protocol: str) -> AwsError:
    code, status = _BUSY[protocol]
    return AwsError(code, "Request limit exceeded." if protocol == "ec2" else "Rate exceeded", status)


def failed(protocol: str, status: int) -> AwsError:
    message = (
        "An internal error has occurred" if status == 500 else "The server is overloaded and can't handle the request."
    )
    return AwsError(_FAILED[protocol, status], message, status)


def no_such_action(protocol: str, name: str) -> AwsError:
    if protocol == "json":
        return AwsError("UnknownOperationException", f"The operation {name} is not known.")
    return AwsError("InvalidAction", f"The action {name} is not valid for this web service.")
