"""What a cloud's refusals mean. Their texts hold addresses, and an address may hold a signature: only status and code
get out of here."""

import re

from crucible.model.errors import Conflict, NotFound, PlatformError, StorageFailed, StorageRefused
from crucible.model.storage import Address

_STATUS = re.compile(r"status code: (\d{3})|\(code: (\d{3})\)")
_CODE = re.compile(r"<Code>\s*([A-Za-z0-9]{1,64})\s*</Code>")
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"})
_NO_CONTAINER = "container does not exist"  # in the answer to a batch, which has no codes
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_REGION = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})
_FULL = frozenset({"QuotaExceeded", "InsufficientStorage", "ServiceUnavailableDueToQuota", "XMinioStorageFull"})
_CHANGED = frozenset({"AlreadyExistsError", "PreconditionError"})
_DENIED = frozenset({"PermissionDeniedError", "UnauthenticatedError"})
# It will pass: busy, conflicting with another writer, or too slow.
_PASSING = frozenset({408, 409, 429})


def translated(error: Exception, address: Address, key: str, *, is_write: bool = False) -> PlatformError:
    """`key` is "" where the request is about none in particular."""
    text, kind = str(error), type(error).__name__
    status, code = status_of(text), _code_of(text)
    if code in _NO_BUCKET or _NO_CONTAINER in text or (status == 404 and (is_write or not key)):
        return StorageRefused(f"there is no bucket {address.bucket} for {address.uri}; make it, or name another")
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotFound(f"there is no object {key} in {address.uri}")
    if kind in _CHANGED or status == 412:
        return Conflict(f"the object {key} in {address.uri} is not what it was expected to be")
    said = code or (f"status {status}" if status else kind)
    if code in _FULL or status == 507:
        return StorageFailed(f"{address.uri} is full ({said}); make room, or use another place")
    return _refusal(address, kind, status, code, said) or _failure(address, status, said)


def status_of(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def _code_of(text: str) -> str | None:
    found = _CODE.search(text)
    return found[1] if found else None


def _refusal(address: Address, kind: str, status: int | None, code: str | None, said: str) -> StorageRefused | None:
    if code in _CLOCK:
        return StorageRefused(f"{address.uri} refuses this server's time ({said}); set its clock")
    if code in _REGION or status in (301, 307):
        return StorageRefused(f"the bucket of {address.uri} is in another region ({said}); set AWS_REGION to it")
    if kind in _DENIED or status in (401, 403):
        return StorageRefused(f"{address.uri} refuses this server's credentials ({said}); give them the right to it")
    if status is not None and 400 <= status < 500 and status not in _PASSING:
        return StorageRefused(f"{address.uri} refuses the request ({said}); check the address and its endpoint")
    return None


def _failure(address: Address, status: int | None, said: str) -> StorageFailed:
    if status is None:
        return StorageFailed(f"{address.uri} cannot be reached; check its endpoint and the network, or try again later")
    return StorageFailed(f"{address.uri} failed ({said}); try again later")
