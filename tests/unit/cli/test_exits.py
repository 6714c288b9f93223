"""Exit codes are an interface."""

import pytest

from crucible.cli import exits
from crucible.cli.advice import advice
from crucible.client.errors import (
    AmbiguousJob,
    BadConfiguration,
    JobNotOver,
    LocalServerFailed,
    ServerNotInstalled,
    ServerTimeout,
    ServerUnreachable,
)
from crucible.model import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvariantBroken("x"), 1),
        (errors.Conflict("x"), 1),
        (errors.Busy("x"), 1),
        (ServerUnreachable("x"), 1),
        (LocalServerFailed("x"), 1),
        (errors.InvalidRequest("x"), 2),
        (errors.InvalidSpec("x"), 2),
        (errors.NotAvailableYet("x"), 2),
        (errors.TooLarge("x"), 2),
        (AmbiguousJob("x"), 2),
        (BadConfiguration("x"), 2),
        (ServerNotInstalled("x"), 2),
        (errors.InfeasibleJob("x", field="resources.gpus"), 3),
        (errors.NoCapacity("x"), 3),
        (errors.Unauthenticated("x"), 4),
        (errors.Forbidden("x"), 4),
        (errors.NotFound("x"), 5),
        (errors.InfeasibleJob("x", field="constraints.budget"), 6),
        (errors.ProviderError("x"), 7),
        (errors.CredentialsRejected("x"), 7),
        (ServerTimeout("x"), 8),
        (JobNotOver("x"), 8),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_has_its_exit_code(error: errors.PlatformError, code: int) -> None:
    assert exits.of_error(error) == code


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 100), ("cancelled", 103)])
def test_the_exit_code_of_a_job_says_how_it_ended(status: str, code: int) -> None:
    assert exits.of_job(status) == code


def test_a_hint_of_the_server_goes_before_our_own() -> None:
    assert advice(errors.NotFound("x", hint="look there")) == "look there"
    assert "crucible ps -a" in advice(errors.NotFound("x"))
    assert "crucible user ls" in advice(errors.NotFound("there is no user ada"))
    assert "crucible team ls" in advice(errors.NotFound("ada is not in the team vision"))
    assert advice(errors.NotFound("there is no template x; `crucible template ls` lists them")) == ""
    assert "crucible login" in advice(errors.Unauthenticated("x"))
