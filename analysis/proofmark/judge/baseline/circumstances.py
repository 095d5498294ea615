"""The nodes and programs of a run, as a baseline stores and compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline.baseline_table import programs_of, values_table
from proofmark.judge.fleet.like_figures import Kinds
from proofmark.judge.shared_traits import hardware_kind, machine_traits, software_traits, traits_of
from proofmark.site.inventory import Site
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import MountedFileSystem
from proofmark.software.software import Software


@dataclass(frozen=True)
class Circumstances:
    """The nodes, programs and site of a run; `nodes` are the facts of each node."""

    site: Site
    nodes: Mapping[str, NodeFacts]
    software: Software

    def traits(self) -> dict[str, dict[str, str]]:
        """Return configuration, location and scratch file system of each node."""
        folder = self.site.partition.scratch.path
        settings = {
            host: {**machine_traits(facts), **_mounted(facts.mounts, folder)}
            for host, facts in self.nodes.items()
        }
        places = {host: self.site.location(host) for host in self.nodes if host in self.site.hosts}
        return traits_of(settings, places)

    def libraries(self) -> dict[Message, str]:
        """Return the versions of the programs and of their libraries."""
        return software_traits(self.software)

    def values(self, figures: Aggregates, benchmarks: Benchmarks) -> pl.DataFrame:
        """Return the values of the run (`proofmark.judge.baseline.baseline_table`)."""
        # A signature accepts the hardware that it saw.
        found = {host: hardware_kind(facts) for host, facts in self.nodes.items()}
        kinds = Kinds(found, self.site.distance)
        return values_table(figures, benchmarks, kinds, programs_of(self.software))


def _mounted(mounts: Sequence[MountedFileSystem], folder: str) -> dict[str, str]:
    """Return the mount that contains `folder` as a trait; nothing if it is not known."""
    paths = {path.as_posix() for path in (Path(folder), *Path(folder).parents)}
    fitting = [mount for mount in mounts if mount.target in paths]
    if not fitting:
        return {}
    mount = max(fitting, key=lambda each: len(each.target))
    return {"scratch": f"{mount.kind} {mount.source} at {mount.target} ({mount.options})"}
