"""A Slurm cluster as a seller: a machine is our agent in a step of a job, for as long as the job lasts."""

from crucible.providers.slurm.cluster import SlurmCluster
from crucible.providers.slurm.settings import ClusterSettings

__all__ = ["ClusterSettings", "SlurmCluster"]
