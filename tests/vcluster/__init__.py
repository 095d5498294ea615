"""A virtual cluster on one machine, for tests and rehearsals. See README.md."""

from tests.vcluster.cluster import Cluster
from tests.vcluster.sge import GridEngine
from tests.vcluster.slurm import Slurm

__all__ = ["Cluster", "GridEngine", "Slurm"]
