"""Amazon's words in ours (F2, F7): above all, a purchase that may have happened is never called refused."""

import subprocess
import sys

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ProfileNotFound,
    ReadTimeoutError,
)

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
from crucible.providers.aws.account import check_installed
from crucible.providers.aws.errors import MAX_MESSAGE, code_of, translated

URL = "http://127.0.0.1:9/"


def said(code: str, status: int = 400, message: str = "because") -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "req-1"},
    }
    return ClientError(response, "RunInstances")


def ours(error: Exception, *, is_purchase: bool = True) -> ProviderError:
    with pytest.raises(ProviderError) as caught, translated("us-east-1", is_purchase=is_purchase):
        raise error
    return caught.value


@pytest.mark.parametrize(
    "code",
    [
        "InsufficientInstanceCapacity",
        "SpotMaxPriceTooLow",
        "InsufficientReservedInstanceCapacity",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
    ],
)
def test_no_capacity_speaks_of_one_zone(code: str) -> None:
    error = ours(said(code, 500))
    assert type(error) is NoCapacity and error.scope is Scope.ZONE


@pytest.mark.parametrize("code", ["VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded"])
def test_a_quota_speaks_of_the_region(code: str) -> None:
    error = ours(said(code))
    assert type(error) is QuotaReached and error.scope is Scope.REGION


def test_an_account_that_is_not_verified_yet_can_buy_nothing_anywhere() -> None:
    error = ours(said("PendingVerification"))
    assert isinstance(error, QuotaReached) and error.scope is Scope.ACCOUNT


@pytest.mark.parametrize(
    "code",
    ["AuthFailure", "UnauthorizedOperation", "OptInRequired", "ExpiredToken", "RequestExpired", "InvalidClientTokenId"],
)
@pytest.mark.parametrize("is_purchase", [True, False])
def test_rejected_credentials_are_told_as_such(code: str, is_purchase: bool) -> None:
    assert type(ours(said(code, 403), is_purchase=is_purchase)) is CredentialsRejected


@pytest.mark.parametrize("error", [NoCredentialsError(), ProfileNotFound(profile="none")])
def test_missing_credentials_are_rejected_ones(error: Exception) -> None:
    assert type(ours(error)) is CredentialsRejected


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling", "ThrottlingException"])
def test_throttling_is_no_answer_to_the_order(code: str) -> None:
    error = ours(said(code, 503))
    assert type(error) is RateLimited and error.retry_after_s > 0
    assert type(ours(said("SomethingNew", 429))) is RateLimited


@pytest.mark.parametrize("code", ["InvalidParameterValue", "InvalidAMIID.NotFound", "MissingParameter", "SomethingNew"])
def test_what_amazon_calls_wrong_is_never_tried_again(code: str) -> None:
    assert type(ours(said(code, 400))) is OrderRejected
    assert type(ours(said(code, 400), is_purchase=False)) is ProviderError
    assert type(ours(ParamValidationError(report="MinCount"))) is OrderRejected


@pytest.mark.parametrize(
    "error",
    [
        said("IdempotentParameterMismatch"),
        said("InternalError", 500),
        said("ServiceUnavailable", 503),
        said("", 502),
        said("InternalFailure", 0),
        ReadTimeoutError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        EndpointConnectionError(endpoint_url=URL),
        ConnectionResetError("reset"),
    ],
)
def test_a_purchase_without_an_answer_may_have_happened(error: Exception) -> None:
    assert type(ours(error)) is OutcomeUnknown
    assert type(ours(error, is_purchase=False)) is ProviderError, "a look that failed has changed nothing"


def test_an_error_names_region_code_and_request_in_one_short_line() -> None:
    error = ours(said("UnauthorizedOperation", 403, "Encoded\nfailure " + "x" * 5000))
    assert error.message.startswith("AWS us-east-1: UnauthorizedOperation: Encoded failure x")
    assert len(error.message) < MAX_MESSAGE + 50
    assert (error.provider, error.region, code_of(error)) == ("aws", "us-east-1", "UnauthorizedOperation")
    assert error.details["request_id"] == "req-1"


def test_our_own_errors_pass_unchanged() -> None:
    error = OrderRejected("no subnet")
    assert ours(error) is error


# --- the library --------------------------------------------------------------------------------------


def test_importing_the_provider_does_not_load_boto3() -> None:
    look = "import sys, crucible.providers.aws; print([m for m in sys.modules if m.startswith('boto')])"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_extra_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ProviderError, match=r"pip install 'crucible\[aws\]'"):
        check_installed()


def test_a_boto3_that_cannot_be_imported_is_loud(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    broken = f"{tmp_path}/boto3.py"
    with open(broken, "w") as file:
        file.write("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "boto3", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        check_installed()
