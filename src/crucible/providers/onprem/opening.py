"""Own hosts, as a server opens them."""

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import Provider, Surroundings
from crucible.providers.onprem.desk import OnpremDesk
from crucible.providers.onprem.fleet import Fleet
from crucible.providers.onprem.kept_host import Program
from crucible.providers.onprem.seller import OnpremSeller
from crucible.providers.onprem.settings import OnpremSettings
from crucible.ssh.connecting import check_installed


def open_provider(here: Surroundings) -> Provider:
    check_installed()
    if here.hosts is None:
        raise InvalidRequest("own hosts are remembered in a server's database: there is none here")
    fleet = Fleet(
        here.hosts,
        deployment=here.deployment,
        program=Program(here.agent),
        url=here.url,
        settings=OnpremSettings.from_environ(here.environ),
        now=here.now,
    )
    return Provider(sellers=[OnpremSeller(fleet)], hosts=OnpremDesk(fleet, here.now), close=fleet.close)
