"""The launchers of the kit: subclasses of `proofmark.jobs.launcher.Launcher`, by their names."""

from __future__ import annotations

PLUGINS = {
    "flux": "resource_managers:FluxLauncher",
    "hydra": "mpi:Hydra",
    "jsrun": "resource_managers:Jsrun",
    "openmpi": "mpi:OpenMpi",
    "pals": "resource_managers:Pals",
    "plain": "mpi:Plain",
    "poe": "resource_managers:Poe",
    "prterun": "mpi:Prterun",
    "srun": "resource_managers:Srun",
}
