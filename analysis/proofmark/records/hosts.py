"""The host names that a planned node may report: its own name, and those that the site declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proofmark.common.host_names import (
    HostTable,
    ReportedNames,
    canonical,
    domain_of,
    same_host,
)
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded


class HostNames:
    """The names that nodes may report.

    Args:
        aliases: further names of nodes, by node. Several nodes of one machine may share its name.
        hosts: all hosts of the site: a name that several of them may report proves none of them.
        domain: the domain that the hosts of the run share; None: it is not known.
    """

    def __init__(
        self,
        aliases: Mapping[str, Iterable[str]] | None = None,
        hosts: Iterable[str] = (),
        domain: str | None = None,
    ) -> None:
        self._domain = domain
        self._aliases = {node: tuple(names) for node, names in (aliases or {}).items()}
        self._table = HostTable({**{host: () for host in hosts}, **self._aliases})
        self._planned: dict[tuple[str, ...], ReportedNames] = {}

    def accepts(self, node: str, reported: str) -> bool:
        """Return whether `node` of the plan may report the name `reported`."""
        known = self._table.find(node)
        names = map(canonical, (node, *self._aliases.get(known or node, ())))
        domain = domain_of(reported)
        if domain and self._domain not in (None, domain) and canonical(reported) not in names:
            return False
        if known is None:
            return same_host(node, reported)
        if any(same_host(alias, reported) for alias in self._aliases.get(known, ())):
            return True
        return self._table.find(reported) == known

    def node(self, planned: Sequence[str], reported: str) -> str:
        """Return the node of `planned` that reports a name; `reported` if none or several may."""
        nodes = tuple(planned)
        if nodes not in self._planned:
            self._planned[nodes] = ReportedNames({node: self._names_of(node) for node in nodes})
        return self._planned[nodes].node(reported)

    def wrong_host(self, nodes: Sequence[str], reported: Iterable[str]) -> Message:
        """Return which of the `reported` names is not one of the planned `nodes`, or `NOTHING`."""
        names = list(dict.fromkeys(reported))
        if len(nodes) * len(names) <= 4:  # the usual case; the table costs more
            wrong = [name for name in names if not any(self.accepts(node, name) for node in nodes)]
        else:
            planned = HostTable({node: self._names_of(node) for node in nodes})
            found = {name: planned.find(name) for name in names}
            wrong = [
                name for name, node in found.items() if not node or not self.accepts(node, name)
            ]
        return Message("wrong-host", node=wrong[0], nodes=folded(nodes)) if wrong else NOTHING

    def _names_of(self, node: str) -> tuple[str, ...]:
        return self._aliases.get(self._table.find(node) or node, ())
