"""The host names that a planned node may report: its own name, and those that the site declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proofmark.common.nodesets import folded, short_name


class HostNames:
    """The names that nodes may report. Names that differ only in their domains are equal."""

    def __init__(self, aliases: Mapping[str, Iterable[str]] | None = None) -> None:
        self._aliases = {
            short_name(node): frozenset(map(short_name, names))
            for node, names in (aliases or {}).items()
        }

    def reported(self, node: str) -> frozenset[str]:
        """Return the names that `node` of the plan may report, without their domains."""
        name = short_name(node)
        return self._aliases.get(name, frozenset()) | {name}

    def accepts(self, node: str, reported: str) -> bool:
        """Return whether `node` of the plan may report the name `reported`."""
        planned, name = short_name(node), short_name(reported)
        return planned == name or name in self._aliases.get(planned, ())

    def wrong_host(self, nodes: Sequence[str], reported: Iterable[str]) -> str:
        """Return which of the `reported` names is not one of the planned `nodes`, or ""."""
        names = list(dict.fromkeys(reported))
        if len(nodes) * len(names) <= 4:  # the usual case; the sets cost more
            wrong = [name for name in names if not any(self.accepts(node, name) for node in nodes)]
        else:
            accepted = {short_name(node) for node in nodes}.union(
                *(self._aliases.get(short_name(node), ()) for node in nodes)
            )
            wrong = [name for name in names if short_name(name) not in accepted]
        return f"ran on {wrong[0]}, planned on {folded(nodes)}" if wrong else ""
