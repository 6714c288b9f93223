"""Their errors in our words: one table of codes, and what a call that was never answered may mean. Nothing is retried
here, and an order that may have been carried out is never called refused."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple

from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    QuotaReached,
    RateLimited,
    Scope,
)

PROVIDER = "aws"
# Amazon refills its buckets by the second; the engine adds its own patience.
RETRY_AFTER_S = 2.0
# An encoded authorization failure alone has a thousand characters.
MAX_MESSAGE = 400


class Kind(StrEnum):
    CAPACITY = "capacity"
    QUOTA = "quota"
    AUTH = "auth"
    THROTTLE = "throttle"
    INVALID = "invalid"
    UNKNOWN = "unknown"  # done or not: look


class Meaning(NamedTuple):
    kind: Kind
    scope: Scope = Scope.ZONE


def meanings() -> Iterator[tuple[str, Meaning]]:
    for code in (
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientAddressCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",  # this type is not sold in this zone
    ):
        yield code, Meaning(Kind.CAPACITY)
    for code in (
        "VcpuLimitExceeded",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "VolumeLimitExceeded",
        "MaxIOPSLimitExceeded",
        "NetworkInterfaceLimitExceeded",
        "PrivateIpAddressLimitExceeded",
    ):
        yield code, Meaning(Kind.QUOTA, Scope.REGION)
    for code in ("PendingVerification", "PendingAccountVerification"):
        yield code, Meaning(Kind.QUOTA, Scope.ACCOUNT)
    for code in (
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",  # the first spot machine of an account
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    ):
        yield code, Meaning(Kind.AUTH, Scope.ACCOUNT)
    for code in (
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    ):
        yield code, Meaning(Kind.THROTTLE, Scope.REGION)
    # Another call with our token is there, or was: only a look can tell what came of it.
    yield "IdempotentParameterMismatch", Meaning(Kind.UNKNOWN)


# Everything else that Amazon answers with 4xx is the order's own fault.
MEANINGS: Mapping[str, Meaning] = dict(meanings())


@contextmanager
def translated(region: str, *, is_purchase: bool = False) -> Iterator[None]:
    """Raises ProviderError's children only. `is_purchase`: a call without an answer may have bought something."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise answered(error.response, region, is_purchase) from error
    except BotoCoreError as error:
        raise unanswered(error, region, is_purchase) from error
    except OSError as error:
        raise lost(f"{type(error).__name__}: {error}", region, is_purchase) from error


def answered(response: Mapping[str, Any], region: str, is_purchase: bool) -> ProviderError:
    """Of what Amazon said."""
    said = response.get("Error", {})
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(said.get("Code", "")).removeprefix("Client.")
    details = {"aws_code": code, "request_id": response.get("ResponseMetadata", {}).get("RequestId")}
    message = worded(f"{code}: {said.get('Message', '')}", region)
    kind, scope = MEANINGS.get(code) or by_status(status)
    match kind:
        case Kind.CAPACITY:
            return NoCapacity(message, scope=scope, provider=PROVIDER, region=region, **details)
        case Kind.QUOTA:
            return QuotaReached(message, scope=scope, provider=PROVIDER, region=region, **details)
        case Kind.AUTH:
            return CredentialsRejected(message, provider=PROVIDER, region=region, **details)
        case Kind.THROTTLE:
            return RateLimited(message, retry_after_s=RETRY_AFTER_S, provider=PROVIDER, region=region, **details)
        case Kind.INVALID if is_purchase:
            return OrderRejected(message, provider=PROVIDER, region=region, **details)
        case Kind.UNKNOWN if is_purchase:
            return OutcomeUnknown(message, provider=PROVIDER, region=region, **details)
        case _:
            return ProviderError(message, provider=PROVIDER, region=region, **details)


def by_status(status: int) -> Meaning:
    if status == 429:
        return Meaning(Kind.THROTTLE, Scope.REGION)
    if status in (401, 403):
        return Meaning(Kind.AUTH, Scope.ACCOUNT)
    return Meaning(Kind.INVALID if 400 <= status < 500 else Kind.UNKNOWN)


def unanswered(error: Exception, region: str, is_purchase: bool) -> ProviderError:
    """Of what botocore says by itself: the answer was lost, or the call was never made."""
    from botocore import exceptions as botocore

    credentials = (
        botocore.NoCredentialsError,
        botocore.PartialCredentialsError,
        botocore.CredentialRetrievalError,
        botocore.MetadataRetrievalError,
        botocore.ProfileNotFound,
        botocore.ConfigParseError,
        botocore.SSOError,
        botocore.TokenRetrievalError,
        botocore.InvalidConfigError,
    )
    if isinstance(error, credentials):
        return CredentialsRejected(worded(str(error), region), provider=PROVIDER, region=region)
    if isinstance(error, botocore.ParamValidationError) and is_purchase:
        return OrderRejected(worded(str(error), region), provider=PROVIDER, region=region)
    return lost(f"{type(error).__name__}: {error}", region, is_purchase)


def lost(said: str, region: str, is_purchase: bool) -> ProviderError:
    kind = OutcomeUnknown if is_purchase else ProviderError
    return kind(worded(said, region), provider=PROVIDER, region=region)


def worded(said: str, region: str) -> str:
    line = " ".join(said.split())
    return f"AWS {region}: {line if len(line) <= MAX_MESSAGE else line[:MAX_MESSAGE] + '…'}"


def code_of(error: ProviderError) -> str:
    """Amazon's own, or ""."""
    return str(error.details.get("aws_code") or "")
