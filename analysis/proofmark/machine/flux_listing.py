"""The nodes and queues that Flux lists."""

from __future__ import annotations

import re
from contextlib import suppress

from proofmark.common.json_text import parse_json
from proofmark.common.nodesets import unfold
from proofmark.machine.listing import Ask, NodeListing, no_listing
from proofmark.machine.outcome import NodeError
from proofmark.site.survey.listed import ListedNode

_HOSTS = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
"""The parts of a list of hosts: a node set would sort them."""


class FluxNodes(NodeListing):
    """Flux (flux-core 0.61 and later)."""

    program = "flux"
    source = "flux resource R"
    groups_are_queues = True

    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes. Those with the same numbers of cores and GPUs are alike.

        The output is R of RFC 20: hosts in the order of their ranks, and the children of ranks.
        """
        printed = ask("flux", "resource", "R", "--states=all")
        try:
            execution = parse_json(printed.encode())["execution"]
            kinds: dict[int, tuple[str, ...]] = {}
            for entry in execution["R_lite"]:
                kinds |= dict.fromkeys(_numbers(entry["rank"]), _kind(entry["children"]))
            words = _HOSTS.findall(",".join(execution["nodelist"]))
            hosts = [host for word in words for host in unfold([word])]
            of_host = dict(zip(hosts, (kinds[rank] for rank in sorted(kinds)), strict=True))
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            raise no_listing(self.source, f"not R of RFC 20: {error!r}") from None
        queues = _queues(ask)
        return [
            ListedNode(name=host, kind=kind, groups=tuple(queues.get(host, ())))
            for host, kind in of_host.items()
        ]


def _kind(children: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}s={len(_numbers(ids))}" for name, ids in sorted(children.items()))


def _numbers(ids: str) -> list[int]:
    return [int(name[1:]) for name in unfold([f"n[{ids}]"])]


def _queues(ask: Ask) -> dict[str, list[str]]:
    """Return the queues of each node; an instance needs none."""
    queues: dict[str, list[str]] = {}
    form = "--format={queue}|{nodelist}"
    with suppress(NodeError, ValueError):
        printed = ask("flux", "resource", "list", "--no-header", "--states=all", form)
        for names, _, nodes in (line.partition("|") for line in printed.splitlines()):
            for host in unfold([nodes]) if nodes else ():
                queues.setdefault(host, []).extend(name for name in names.split(",") if name)
    return queues
