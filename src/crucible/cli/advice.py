"""What to do about an error, in one line, where the message does not already say it."""

import re

from crucible.client.errors import AmbiguousJob, ConnectionLost, LocalServerFailed, ServerError, ServerUnreachable
from crucible.model import errors

# First match wins. The server's messages say what happened; these say what a person at this terminal does next.
_ADVICE: tuple[tuple[type[errors.PlatformError], str], ...] = (
    (errors.Unauthenticated, "log in with crucible login URL, or set CRUCIBLE_TOKEN"),
    (errors.Forbidden, "crucible team ls says what you are in your teams"),
    (AmbiguousJob, "give more characters of the id"),
    (errors.NotFound, "see what there is with crucible ps -a"),
    (errors.InfeasibleJob, "see what would fit with crucible plan FILE"),
    (errors.NotAvailableYet, "remove that field from the spec"),
    (errors.InvalidSpec, "check it with crucible validate FILE; an example: crucible spec example"),
    (errors.NoCapacity, "try again later, or allow more GPU types or regions"),
    (errors.CredentialsRejected, "check the account with crucible doctor"),
    (errors.Busy, "the server is busy; try again in a moment"),
    (errors.StorageFailed, "free space on the server's disk; nothing was changed"),
    (ConnectionLost, "look before you repeat it: crucible ps -a"),
    (ServerUnreachable, "is it running? crucible doctor says what is wrong"),
    (LocalServerFailed, "crucible server stop, then try again; crucible doctor says what is wrong"),
    (ServerError, "the server's log says more; crucible doctor checks the connection"),
    (errors.InvariantBroken, "this is a bug in Crucible: please report it with the server's log"),
)

# What else than a job is not there.
_LISTED = re.compile(r"\b(?:no|the) (team|user|project|token|budget|dataset|template)\b")


def advice(error: errors.PlatformError) -> str:
    hint = error.details.get("hint")
    if isinstance(hint, str) and hint:
        return hint
    if "`crucible " in error.message:
        return ""
    if isinstance(error, errors.NotFound) and (listed := _LISTED.search(error.message)):
        return f"see what there is with crucible {listed[1]} ls"
    if type(error) is errors.PlatformError:  # the server's own words for "our bug"
        return "its log says more: crucible server status names the file"
    return next((words for kind, words in _ADVICE if isinstance(error, kind)), "")
