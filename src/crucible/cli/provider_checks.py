"""`crucible doctor PROVIDER`: what the server finds when it asks a provider now. Only told here, never decided."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from crucible.cli.advice import advice
from crucible.cli.checkup import BAD, OK, WARNING, Check
from crucible.client import config
from crucible.client.api import Client
from crucible.client.transport import Transport
from crucible.model.errors import NotFound, PlatformError

# A server gives a provider half a minute to say everything.
TIMEOUT_S = 45.0
# Said by the line itself.
_OWN_WORDS = ("status", "region", "problems")


def provider_checkup(provider: str, environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Starts nothing: only a server that runs knows which providers it may use, and how."""
    start = f"CRUCIBLE_PROVIDERS=local,{provider} crucible server"
    try:
        endpoint = config.resolve(environ) or config.embedded(environ).endpoint()
        if endpoint is None:
            yield Check("server", BAD, "not running: it is the one who asks the provider", start)
            return
        with Client(Transport(endpoint, timeout_s=TIMEOUT_S)) as client:
            told = client.provider_health(provider)
    except NotFound as error:
        yield Check(provider, BAD, error.message, start)
    except PlatformError as error:
        yield Check("server", BAD, error.message, advice(error))
    else:
        for place in told["places"]:
            yield from place_checks(provider, place)


def place_checks(provider: str, place: Mapping[str, Any]) -> Iterator[Check]:
    """One line for the place itself and one for each of its problems."""
    name = " ".join(filter(None, (provider, place.get("region"))))
    facts = {key: value for key, value in place.items() if key not in _OWN_WORDS}
    state = {"healthy": OK, "down": BAD}.get(str(place.get("status")), WARNING)
    problems = place.get("problems", ())
    if facts or not problems:
        yield Check(name, state, f"{place.get('status')}; {said(facts)}" if facts else str(place.get("status")))
    for problem in problems:
        told = problem if isinstance(problem, Mapping) else {"problem": problem}
        yield Check(name, state, str(told.get("problem")), str(told.get("fix") or ""))


def said(value: Any) -> str:
    """Facts as a line: whatever a provider tells about itself."""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')} {said(one)}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(said(one) for one in value) or "none"
    return str(value)
