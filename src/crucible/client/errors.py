"""What can go wrong between here and the server, and what the server says went wrong.

ServerUnreachable      nobody answers there: nothing was done
  ConnectionLost       the answer never came: the request may have been carried out
ServerTimeout          it took too long to answer
ServerError            an answer this client does not understand, or a failure of the server itself
LocalServerFailed      the embedded server did not start
ServerNotInstalled     the embedded server is not part of this installation
AmbiguousJob           several jobs fit the name that was given
JobNotOver             a wait ended before the job did
JobFailed              the job whose result was asked for ended without one: `details` has its id and reason
  JobCancelled         because somebody cancelled it
ClientClosed           the client was closed while it was used
BadConfiguration       an environment variable or a configuration file is wrong

Everything else is raised as the class of `crucible.model.errors` that the server named.
"""

from collections.abc import Mapping
from typing import Any

from crucible.model import errors
from crucible.model.errors import Busy, InvalidRequest, PlatformError


class ServerUnreachable(PlatformError):
    code = "server_unreachable"
    status = 503


class ConnectionLost(ServerUnreachable):
    code = "connection_lost"


class ServerTimeout(PlatformError):
    code = "timeout"
    status = 504


class ServerError(PlatformError):
    code = "server_error"
    status = 502


class LocalServerFailed(PlatformError):
    code = "local_server_failed"


class ServerNotInstalled(InvalidRequest):
    code = "server_not_installed"


class AmbiguousJob(InvalidRequest):
    code = "ambiguous_job"


class JobNotOver(PlatformError):
    code = "timeout"
    status = 504


class JobFailed(PlatformError):
    code = "job_failed"


class JobCancelled(JobFailed):
    code = "job_cancelled"


class ClientClosed(PlatformError):
    code = "client_closed"


class BadConfiguration(InvalidRequest):
    code = "bad_configuration"


def _tree(kind: type[PlatformError]) -> list[type[PlatformError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _tree(child))]


# Only what the server can say: the classes above are the client's own words.
_BY_CODE: dict[str, type[PlatformError]] = {
    kind.code: kind for kind in _tree(PlatformError) if kind.__module__ == errors.__name__
}


def from_reply(status: int, body: Any, retry_after: str | None = None) -> PlatformError:
    """The error that an HTTP answer of `status` with the decoded `body` stands for."""
    said = body if isinstance(body, Mapping) else {}
    code = str(said.get("error", ""))
    message = str(said.get("message") or said.get("detail") or f"the server answered {status}")
    details = said.get("details")
    kind = _BY_CODE.get(code)
    error = kind(message) if kind is not None else _by_status(status, message)
    error.details = dict(details) if isinstance(details, Mapping) else {}
    if isinstance(error, Busy):
        error.retry_after_s = _seconds(retry_after)
    return error


def _by_status(status: int, message: str) -> PlatformError:
    """A proxy in between, or a newer server, uses codes we do not know: the status still says what to do."""
    kinds: dict[int, type[PlatformError]] = {
        401: errors.Unauthenticated,
        403: errors.Forbidden,
        404: errors.NotFound,
        409: errors.Conflict,
        413: errors.TooLarge,
        429: Busy,
        503: Busy,
        504: ServerTimeout,
    }
    if status in kinds:
        return kinds[status](message)
    if 400 <= status < 500:
        return InvalidRequest(message)
    return ServerError(f"{message} (HTTP {status})")


def _seconds(text: str | None) -> float:
    try:
        return max(0.0, float(text or 1.0))
    except ValueError:  # an HTTP date: rare, and a second is a fair guess
        return 1.0
