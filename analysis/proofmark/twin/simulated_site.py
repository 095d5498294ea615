"""The twin of a site: its partition with simulated nodes, and the files of the simulation."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.errors import bad_input, nearest
from proofmark.plan.plan import Plan
from proofmark.site.execution import LaunchSettings, Queue
from proofmark.site.inventory import Site
from proofmark.site.partition import PREDICTED
from proofmark.site.storage import Scratch
from proofmark.twin.interconnects import Interconnect
from proofmark.twin.platform import platform_xml, settings
from proofmark.twin.twin_files import MeasuredFigures, ModelFit, SimulatedRun, TwinFacts
from proofmark.twin.twin_model import TwinModel

PROVIDER = "twin"
"""The provider of programs that are compiled for SimGrid."""


def twin_site(site: Site, scratch: Path, known: Interconnect, selector: str = "") -> Site:
    """Return `site` with simulated nodes: this machine runs all jobs.

    Args:
        site: the real partition.
        scratch: a folder of this machine; simulated steps write no files in it.
        known: the figures of the processor family.
        selector: the MPI whose collectives are imitated; empty: the first that is possible. It is a
            part of the site, so that another selector makes another run.

    Raises:
        BadInput: `selector` is not one of the selectors of the processor family.
    """
    chosen = _selector(known, selector)
    partition = site.partition
    current = partition.current_mode
    simulated = partition.model_copy(
        update={
            "origin": PREDICTED,
            "scheduler": "simulated",
            "launch": LaunchSettings(launcher="twin", mpi=chosen),
            "queue": Queue(exclusive=True),
            "provision_from": PROVIDER,
            "scratch": Scratch(path=str(scratch)),
            "file_systems": [],
            "firmware": None,
            "modes": {current: partition.modes[current]},
            "run_user": None,
            "host_cpus": None,
        }
    )
    changes = {"partition": simulated, "connection": "local", "contract": None}
    return site.model_copy(update=changes)


def with_jobs(site: Site, count: int) -> Site:
    """Return the twin `site` with up to `count` jobs at the same time."""
    queue = site.partition.queue.model_copy(update={"max_jobs": count})
    partition = site.partition.model_copy(update={"queue": queue})
    return site.model_copy(update={"partition": partition})


def used_nodes(site: Site, plan: Plan) -> list[str]:
    """Return the nodes of the steps of `plan`, in the order of `site`."""
    used = set()
    for step in plan.steps():
        used.update(step.nodes)
    return [host for host in site.hosts if host in used]


def make_twin(
    site: Site,
    model: TwinModel,
    simulator: tuple[int, int],
    *,
    fit: ModelFit | None = None,
    measured: MeasuredFigures | None = None,
) -> SimulatedRun:
    """Return the files of a simulation on the twin `site`.

    Args:
        site: the simulated partition.
        model: of the nodes that steps use, with the figures that were fitted.
        simulator: SimGrid's version.
        fit: what was fitted to a real run.
        measured: the figures of that run.
    """
    chosen = site.partition.launch.mpi
    values = settings(model.interconnect, chosen, simulator)
    facts = TwinFacts(
        selector=chosen,
        selectors=model.interconnect.collectives,
        settings=values,
        assumptions=model.assumptions,
        fit=fit,
    )
    return SimulatedRun(platform_xml(model, values), facts, measured)


def _selector(interconnect: Interconnect, given: str) -> str:
    known: tuple[str, ...] = interconnect.collectives
    if not given:
        return known[0]
    if given not in known:
        raise bad_input("--selector", "", f"{given!r}{nearest(given, known)}", ", ".join(known))
    return given
