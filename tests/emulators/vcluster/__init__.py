"""A virtual cluster on one machine, for tests and rehearsals; see README.md."""

from tests.emulators.vcluster.cluster import Cluster
from tests.emulators.vcluster.flux import Flux
from tests.emulators.vcluster.pbs import OpenPbs
from tests.emulators.vcluster.sge import GridEngine
from tests.emulators.vcluster.slurm import Slurm

__all__ = ["Cluster", "Flux", "GridEngine", "OpenPbs", "Slurm"]
