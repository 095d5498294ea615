"""What the executions of all steps of a run are read and checked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from proofmark.cases.suite import Benchmarks
from proofmark.common.archive import Change
from proofmark.common.host_names import HostTable, shared_domain
from proofmark.records.columns import VIRTUAL
from proofmark.records.conditions import Conditions
from proofmark.records.hosts import HostNames
from proofmark.records.network import NetworkCheck
from proofmark.runs.bmc_telemetry import read_looks
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run, benchmarks_of, reported_names, site_of
from proofmark.site.adopted_site import IMPORTED
from proofmark.site.ceilings import UNIVERSAL, Ceilings, ceilings_of, of_nodes, stated_ceilings
from proofmark.site.inventory import Site
from proofmark.site.machines import counted_node
from proofmark.software.software import Software, software_of


class RunParts(NamedTuple):
    """A run with what its records are read with; `nodes` are the reports of its nodes, by host."""

    run: Run
    benchmarks: Benchmarks
    site: Site
    software: Software
    nodes: Mapping[str, Node]


def run_parts(run: Run, nodes: Mapping[str, Node] | None = None) -> RunParts:
    """Return a run with its parts; `nodes` are known, or are read.

    Raises:
        BadInput: a file of the run is damaged.
    """
    found = nodes_of(run) if nodes is None else nodes
    return RunParts(run, benchmarks_of(run), site_of(run), software_of(run), found)


class RunFacts:
    """The cases, the programs and the nodes of a run.

    Attributes:
        partition: the partition of the site.
        names: the names that its nodes report.
        conditions: the check of the nodes of an execution.
        emulated: whether the speed of a node is that of the machine below it, or of a model.
        origin: the origin of the records.
        looks: what the BMCs showed.
        other_scripts: the paths of scripts that were not those of the run when it was sealed.
        network_check: the check of the network; None: the site declares none.
    """

    def __init__(self, parts: RunParts) -> None:
        self.run, self.benchmarks, site, self.software, nodes = parts
        run = self.run
        self.partition = site.partition
        self.names = names_of_hosts(run, site, nodes)
        self.conditions = Conditions(run, site, nodes)
        self.emulated = self.partition.origin in VIRTUAL
        self.origin = IMPORTED if run.plan.imported else self.partition.origin
        self.looks = read_looks(run.files)
        changes = run.seal.changes if run.seal else {}
        self.other_scripts = [path for path, kind in changes.items() if kind is Change.SCRIPT]
        self.network_check: NetworkCheck | None = None
        if network := self.partition.fabric.network:
            required = not self.emulated
            self.network_check = NetworkCheck(run.files, network, self.names, required=required)
        known = {} if self.emulated else nodes
        self._ceilings = {
            host: ceilings_of(node.newest) for host, node in known.items() if node.jobs
        }
        self._with_ceilings = HostTable.of(self._ceilings)
        # The nodes of imported outputs were not probed.
        self._others = stated_ceilings(counted_node(site)) if run.plan.imported else UNIVERSAL

    def ceilings(self, hosts: Sequence[str]) -> Ceilings:
        """Return the physical ceilings of `hosts` together."""
        found = (self._with_ceilings.find(host) for host in hosts)
        return of_nodes(self._ceilings[host] if host else self._others for host in found)


def names_of_hosts(run: Run, site: Site, nodes: Mapping[str, Node]) -> HostNames:
    """Return the names that the nodes of a run may report."""
    reported = (_reported(host, node) for host, node in nodes.items())
    return HostNames(reported_names(run, site), site.partition_hosts, shared_domain(reported))


def _reported(host: str, node: Node) -> str:
    """Return the name that a node reports: the domain of the hosts is that of their own names."""
    return (node.newest.reported if node.jobs else "") or host
