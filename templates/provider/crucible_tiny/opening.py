"""Tiny, as a server opens it: a seller for each region that the operator names."""

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import Provider, Surroundings
from crucible_tiny.seller import TinyRegion
from crucible_tiny.wire import Wire


def open_provider(here: Surroundings) -> Provider:
    """Nothing is asked of Tiny yet: a provider that is down must not keep a server from starting."""
    url, key = (here.environ.get(f"CRUCIBLE_TINY_{name}", "") for name in ("URL", "KEY"))
    if not url or not key:
        raise InvalidRequest("Tiny needs its address and a key: set CRUCIBLE_TINY_URL and CRUCIBLE_TINY_KEY")
    regions = here.environ.get("CRUCIBLE_TINY_REGIONS", "here").split(",")
    return Provider(sellers=[TinyRegion(region, here.deployment, Wire(url, key, region)) for region in regions])
