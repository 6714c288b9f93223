"""Slurm, as a server opens it: a seller for each cluster that the operator names."""

import getpass
from pathlib import Path

from crucible.ports.provider import Provider, Surroundings
from crucible.providers.slurm.cli import CliDoor
from crucible.providers.slurm.cluster import SlurmCluster
from crucible.providers.slurm.door import Door
from crucible.providers.slurm.here import HereRemote
from crucible.providers.slurm.rest import RestDoor
from crucible.providers.slurm.settings import HERE, ClusterSettings, read_clusters
from crucible.ssh.login import Login, parse_place
from crucible.ssh.remote import SshRemote


def open_provider(here: Surroundings) -> Provider:
    return Provider(
        sellers=[
            SlurmCluster(settings, door_of(settings, here), deployment=here.deployment, agent=here.agent)
            for settings in read_clusters(here.environ)
        ]
    )


def door_of(settings: ClusterSettings, here: Surroundings) -> Door:
    if settings.url is not None and settings.token_file is not None:
        token_file = Path(settings.token_file).expanduser()
        name = settings.user or getpass.getuser()
        return RestDoor(settings.name, settings.url, token_file, name, settings.environment)
    if settings.login in (None, HERE):
        return CliDoor(settings.name, HereRemote(here.environ), settings.python)
    user, address, port = parse_place(str(settings.login))
    return CliDoor(settings.name, SshRemote(Login(address, port, user)), settings.python)
