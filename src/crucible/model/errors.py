"""Everything that can go wrong, named after what the caller does next.

PlatformError                 has a stable `code` (API and CLI) and an HTTP `status`
  InvalidRequest              the user changes the request
    InvalidSpec               fix the spec: carries every problem with line, column, field and hint
    InfeasibleJob             the spec is fine, nothing can run it: carries the blocking field
    BudgetExhausted           the spec is fine, there is no money for it: carries the budget
    UnknownDataset            register it, or name another one
    UnknownInput              name a tree that earlier work has left
    UnknownTeam               name one that you work in, or have it made
    UnknownProject            the same for a project
    UnknownSecret             set it, or name another one
    NotAvailableYet           the spec is fine, this version of Crucible cannot do it
    NotFound                  no such thing, or not yours
    Conflict                  the thing is in a state that forbids it (a finished job cannot be cancelled)
      NoLab                   there is no Lab that this server buys in: start one, and the server in its environment
    Unauthenticated           log in
    Forbidden                 ask someone with the right
      AddressExpired          ask for a new address
    TooLarge                  send less
  Busy                        try again after `retry_after_s`
  StaleVersion                load again and decide again
  StaleClaim                  another worker owns the row now: stop touching it
  StorageFailed               the disk, the database or object storage did not do it now: nothing was changed
  StorageRefused              object storage never will: bucket, rights, credentials or endpoint must be mended
  SecretsKeyMissing           the operator gives the server the file of keys that it sealed secrets with
  SecretDamaged               set the secret anew: what is stored of it does not open
  Unreachable                 a computer does not answer now, or its answer was lost: what was asked may have happened
    HostKeyRefused            it is not, or not yet, the one it says it is: a person must look; carries its fingerprint
    LoginRefused              it does not let us in: key or user must be mended
  SendFailed                  a message did not arrive: try again later, after `retry_after_s`
    SendRefused               it never will: the address, the rights or the message must be mended
  ProviderError               carries provider and region
    NoCapacity                try the next offer, or later: carries the scope
      QuotaReached            the same; the account's limit, not the seller's stock
    OrderRejected             never try this offer again
    RateLimited               same offer, after `retry_after_s`
    CredentialsRejected       stop using this account, tell the operator
    OutcomeUnknown            observe before anything else
  InvariantBroken             our bug: stop, keep the log, do not retry
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class PlatformError(Exception):
    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details


class InvalidRequest(PlatformError):
    code = "invalid_request"
    status = 400


class InvalidSpec(InvalidRequest):
    """`details["problems"]` lists every problem: line, column, field, message, hint."""

    code = "invalid_spec"
    status = 422


class InfeasibleJob(InvalidRequest):
    """`details["field"]` names the constraint that blocks."""

    code = "infeasible_job"
    status = 422


class BudgetExhausted(InvalidRequest):
    """`details["budget"]` is the id of the one that lacks money."""

    code = "budget_exhausted"
    status = 422


class UnknownDataset(InvalidRequest):
    """`details["field"]` is where it is named."""

    code = "unknown_dataset"
    status = 422


class UnknownInput(InvalidRequest):
    """`details["field"]` is where it is named."""

    code = "unknown_input"
    status = 422


class UnknownTeam(InvalidRequest):
    """`details["field"]` is where it is named."""

    code = "unknown_team"
    status = 422


class UnknownProject(InvalidRequest):
    """`details["field"]` is where it is named."""

    code = "unknown_project"
    status = 422


class UnknownSecret(InvalidRequest):
    """`details["field"]` is where it is named."""

    code = "unknown_secret"
    status = 422


class NotAvailableYet(InvalidRequest):
    code = "not_available_yet"
    status = 422


class NotFound(InvalidRequest):
    code = "not_found"
    status = 404


class Conflict(InvalidRequest):
    code = "conflict"
    status = 409


class NoLab(Conflict):
    """`details["hint"]` is what to type."""

    code = "no_lab"


class Unauthenticated(InvalidRequest):
    code = "unauthenticated"
    status = 401


class Forbidden(InvalidRequest):
    code = "forbidden"
    status = 403


class AddressExpired(Forbidden):
    code = "address_expired"


class TooLarge(InvalidRequest):
    code = "too_large"
    status = 413


class Busy(PlatformError):
    code = "busy"
    status = 429

    def __init__(self, message: str, *, retry_after_s: float = 1.0, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after_s = retry_after_s


class StaleVersion(PlatformError):
    code = "stale_version"
    status = 409


class StaleClaim(PlatformError):
    code = "stale_claim"
    status = 409


class Unreachable(PlatformError):
    code = "unreachable"
    status = 502


class HostKeyRefused(Unreachable):
    """`details["fingerprint"]` is what it showed; `details["expected"]` what is known of it, None on first contact."""

    code = "host_key_refused"
    status = 409


class LoginRefused(Unreachable):
    code = "login_refused"
    status = 422


class StorageFailed(PlatformError):
    code = "storage_failed"
    status = 507


class StorageRefused(PlatformError):
    code = "storage_refused"
    status = 424


class SecretsKeyMissing(PlatformError):
    code = "secrets_key_missing"
    status = 503


class SecretDamaged(PlatformError):
    code = "secret_damaged"
    status = 409


class Scope(StrEnum):
    """What a refusal speaks of: that type in that zone, in the region, or everything of the account."""

    ZONE = "zone"
    REGION = "region"
    ACCOUNT = "account"


class SendFailed(PlatformError):
    code = "send_failed"
    status = 502

    def __init__(self, message: str, *, retry_after_s: float | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after_s = retry_after_s


class SendRefused(SendFailed):
    code = "send_refused"
    status = 422


class ProviderError(PlatformError):
    code = "provider_error"
    status = 502

    def __init__(self, message: str, *, provider: str = "", region: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.provider = provider
        self.region = region


class NoCapacity(ProviderError):
    """`scope` says how much of the seller it speaks of."""

    code = "no_capacity"

    def __init__(
        self, message: str, *, scope: Scope = Scope.ZONE, provider: str = "", region: str = "", **details: Any
    ) -> None:
        super().__init__(message, provider=provider, region=region, **details)
        self.scope = scope


class QuotaReached(NoCapacity):
    """The seller has machines, but the account may have no more."""

    code = "quota_reached"


class OrderRejected(ProviderError):
    code = "order_rejected"


class RateLimited(ProviderError):
    code = "rate_limited"

    def __init__(
        self, message: str, *, retry_after_s: float = 1.0, provider: str = "", region: str = "", **details: Any
    ) -> None:
        super().__init__(message, provider=provider, region=region, **details)
        self.retry_after_s = retry_after_s


class CredentialsRejected(ProviderError):
    code = "credentials_rejected"


class OutcomeUnknown(ProviderError):
    code = "outcome_unknown"


class InvariantBroken(PlatformError):
    code = "invariant_broken"
