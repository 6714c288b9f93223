"""Providers by name. Ours are in the table; others announce themselves by an entry point of the group
`crucible.providers`. Nothing of a provider is imported before somebody enables it."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import OpenProvider, Provider, Surroundings

GROUP = "crucible.providers"

OURS: Mapping[str, str] = {
    "local": "crucible.providers.local.opening:open_provider",
    "aws": "crucible.providers.aws.opening:open_provider",
    "slurm": "crucible.providers.slurm.opening:open_provider",
    "onprem": "crucible.providers.onprem.opening:open_provider",
}


def open_providers(names: Iterable[str], surroundings: Surroundings) -> dict[str, Provider]:
    """Raises InvalidRequest for a name that nobody knows, and for settings that a provider cannot use."""
    return {name: load(name)(surroundings) for name in dict.fromkeys(names)}


def load(name: str) -> OpenProvider:
    place = OURS.get(name) or others().get(name)
    if place is None:
        known = ", ".join(sorted({*OURS, *others()}))
        raise InvalidRequest(
            f"there is no provider {name!r}: choose from {known}, or install the package that brings it"
        )
    module, _, function = place.partition(":")
    opener: OpenProvider = getattr(import_module(module), function)
    return opener


def others() -> dict[str, str]:
    """Reading what is installed takes a while: nobody pays for it who asks for ours."""
    return {point.name: point.value for point in entry_points(group=GROUP)}
