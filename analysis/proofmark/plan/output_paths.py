"""Nodes and parameters in the paths of outputs that others produced."""

from __future__ import annotations

import re
from collections.abc import Mapping

from proofmark.cases.case import Case
from proofmark.cases.reader.values import parameter
from proofmark.cases.vocabulary import LOAD, SENSOR
from proofmark.common.errors import bad_input, nearest
from proofmark.common.nodesets import unfold
from proofmark.plan.step import Scalar

NODE = "node"
"""The group of the regular expression that has a node, or a set of nodes."""
_NOT_IN_PATHS = {"benchmark", "placement", LOAD, SENSOR}


class PathRule:
    """A regular expression that finds nodes and parameters in a path."""

    def __init__(self, pattern: str, cases: Mapping[str, Case]) -> None:
        """Compile `pattern` for the outputs of `cases`.

        The group ``node``, or else the first group without a name, is a node or a set of nodes.
        Every further named group is a parameter of the figures.

        Raises:
            BadInput: it is no regular expression, has no group for a node, or a name that is no
                parameter of any of the cases.
        """
        self.pattern = pattern
        try:
            self._rule = re.compile(pattern)
        except re.error as error:
            raise bad_input(
                "--node", "", f"{pattern!r} ({error})", "a regular expression"
            ) from None
        names = self._rule.groupindex
        plain = set(range(1, self._rule.groups + 1)) - set(names.values())
        if NODE not in names and not plain:
            raise bad_input("--node", "", repr(pattern), "a group for the node: (?P<node>n[0-9]+)")
        self._group: str | int = NODE if NODE in names else min(plain)
        known = {name: case.parameter_names() - _NOT_IN_PATHS for name, case in cases.items()}
        every = sorted(set().union(*known.values()))
        for name in names.keys() - {NODE}:
            if name not in every:
                found = f"the group {name!r}{nearest(name, every)}"
                raise bad_input("--node", "", found, f"{NODE}, {', '.join(every)}")
        self._names = {case: sorted(names.keys() & of_case) for case, of_case in known.items()}
        self._types = {name: case.reader().parameters for name, case in cases.items()}

    def nodes(self, path: str) -> list[str]:
        """Return the nodes that all matches in `path` name, each once, in their order.

        Raises:
            ValueError: a match is no name of a node and no set of nodes.
        """
        texts = (match[self._group] for match in self._matches(path))
        return list(dict.fromkeys(unfold(text for text in texts if text)))

    def parameters(self, path: str, case: str) -> dict[str, Scalar]:
        """Return the parameters of `case` that the first match in `path` states.

        Raises:
            ValueError: a value has not the type of its parameter.
        """
        match = next(iter(self._matches(path)), None)
        if match is None:
            return {}
        given = {name: match[name] for name in self._names[case] if match[name] is not None}
        return {name: self._value(case, name, word) for name, word in given.items()}

    def _matches(self, path: str) -> list[re.Match[str]]:
        """Return the matches in `path` after a ``/``, so that ``/`` is before each folder of it.

        If there are none, those in `path` itself: the expression may begin with ``^``.
        """
        return [*self._rule.finditer(f"/{path}")] or [*self._rule.finditer(path)]

    def _value(self, case: str, name: str, word: str) -> Scalar:
        whole = word.isascii() and word.isdecimal()
        return parameter(self._types[case].get(name, "int" if whole else "word"), word)
