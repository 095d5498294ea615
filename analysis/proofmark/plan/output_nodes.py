"""The nodes of outputs whose paths and texts both name some: the text counts.

A path often has words that only look like nodes, and a file can be moved. The text is what the
program or its job printed. A job that measures pairs prints all its nodes into the output of each
pair: then the paths separate them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from proofmark.common.host_names import HostTable, canonical, domain_of, shared_domain, short_name
from proofmark.common.message import Message
from proofmark.common.nodesets import folded

Names = tuple[str, ...]
Output = tuple[str, Names]
"""An output: the path of its file, and its nodes if the file has outputs of several nodes."""


@dataclass(frozen=True)
class NodesOfOutputs:
    """The nodes of outputs.

    Attributes:
        nodes: of each output for which something decides.
        contradicted: the node sets of path and text, where the text decided, by path.
        unsure: what path and text name, where nothing decides, by path.
    """

    nodes: Mapping[Output, Names]
    contradicted: Mapping[str, tuple[str, str]]
    unsure: Mapping[str, Message]


def nodes_of_outputs(
    named: Mapping[Output, Names],
    printed: Mapping[Output, Names],
    measured: Collection[str],
    programs: Mapping[Output, str],
) -> NodesOfOutputs:
    """Return the nodes of each output.

    A text that names some of the nodes of the path does not contradict it: a job often prints only
    its first node. If the jobs of outputs with other nodes in their paths print one and the same
    other node, it may be the host that started them, and nothing decides.

    Texts print names with and without the domain of the machine. Both are one node, which has the
    short name if anything uses it. A name with another domain is another node.

    Args:
        named: the nodes that the path of each output names; may be empty.
        printed: the nodes that its text names; may be empty.
        measured: the paths of the texts in which the program itself names them.
        programs: the program of each output.
    """
    hosts = _Hosts(named, printed, programs)
    printed = {output: hosts.nodes(output, names) for output, names in printed.items()}
    paths_of: dict[frozenset[str], set[frozenset[str]]] = {}
    for output, text in printed.items():
        if text and named[output]:
            paths_of.setdefault(frozenset(text), set()).add(frozenset(named[output]))
    nodes: dict[Output, Names] = {}
    contradicted: dict[str, tuple[str, str]] = {}
    unsure: dict[str, Message] = {}
    for output, of_path in named.items():
        text, path = printed[output], output[0]
        if not text or not of_path or hosts.has(output, of_path, text):
            nodes[output] = of_path or text
            continue
        shared = len(paths_of[frozenset(text)]) > 1
        part = hosts.has(output, text, of_path)
        if shared and part:
            nodes[output] = of_path
        elif shared and path not in measured:
            both = {"path": folded(of_path), "text": folded(text)}
            unsure[path] = Message("adopt-two-answers", **both)
        else:
            nodes[output] = text
            contradicted[path] = folded(of_path), folded(text)
    return NodesOfOutputs(nodes, contradicted, unsure)


class _Hosts:
    """The hosts of all outputs, and the domains that they share.

    Hosts whose names differ only in their numbers share a domain. If one program prints it and
    another one does not, what the outputs of the program share counts.
    """

    def __init__(
        self,
        named: Mapping[Output, Names],
        printed: Mapping[Output, Names],
        programs: Mapping[Output, str],
    ) -> None:
        self._programs = programs
        self._short: dict[str, str] = {}
        for names in (*named.values(), *printed.values()):
            self._short |= {canonical(name): name for name in names if not domain_of(name)}
        together: dict[tuple[str, str], set[str]] = {}
        for output, names in printed.items():
            for name in names:
                for program in ("", programs[output]):
                    together.setdefault((program, _scheme(name)), set()).add(canonical(name))
        self._shared = {key: _domain(names) for key, names in together.items()}

    def nodes(self, output: Output, names: Names) -> Names:
        """Return the names that the text of an output prints as those of nodes, each once."""
        found: dict[str, None] = {}
        for name in names:
            short = self._short.get(short_name(canonical(name)), name)
            found[short if self._is_own(output, name) else name] = None
        return tuple(found)

    def has(self, output: Output, nodes: Names, names: Names) -> bool:
        """Return whether all of `names` are names of `nodes`; its text prints either."""
        table = HostTable.of(nodes)
        for name in names:
            host = table.find(name)
            if host is None:
                return False
            if canonical(host) == canonical(name):
                continue
            if not (self._is_own(output, host) and self._is_own(output, name)):
                return False
        return True

    def _is_own(self, output: Output, name: str) -> bool:
        """Return whether `name` has no other domain than the hosts with such names."""
        scheme = _scheme(name)
        shared = self._shared.get(("", scheme)) or self._shared.get(
            (self._programs[output], scheme)
        )
        return domain_of(name) in ("", shared)


def _scheme(name: str) -> str:
    """Return the name of a host without its numbers and its domain."""
    return re.sub("[0-9]+", "0", short_name(canonical(name)))


def _domain(names: Collection[str]) -> str | None:
    """Return the domain that most hosts share; see `shared_domain`.

    A name without a domain says nothing of a host whose domain another name states.
    """
    full = {short_name(name) for name in names if domain_of(name)}
    return shared_domain(name for name in names if domain_of(name) or name not in full)
