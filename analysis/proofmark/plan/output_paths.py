"""Nodes, parameters and labels of outputs that others produced, in their paths and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from proofmark.cases.case import Case
from proofmark.cases.reader.values import parameter
from proofmark.cases.vocabulary import DATE, LOAD, SENSOR, Scalar
from proofmark.common.errors import bad_input, nearest
from proofmark.common.nodesets import unfold
from proofmark.plan.adoption_rules import date_of

NODE = "node"
"""The group of the regular expression that has a node, or a set of nodes."""
PLACE = "place"
"""The group that has the place of the nodes after it: ``rack1`` makes rack1-node01 of node01."""
_NOT_IN_PATHS = {"benchmark", "placement", LOAD, SENSOR}


class PathRule:
    """A regular expression that finds nodes and parameters in a path."""

    def __init__(self, pattern: str, cases: Mapping[str, Case]) -> None:
        """Compile `pattern` for the outputs of `cases`.

        The group ``node``, or else the first group without a name, is a node or a set of nodes.
        The group ``place`` comes before the names of the nodes after it. Every further named group
        is a parameter of the figures.

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
        for name in names.keys() - {NODE, PLACE}:
            if name not in every:
                found = f"the group {name!r}{nearest(name, every)}"
                raise bad_input("--node", "", found, f"{NODE}, {PLACE}, {', '.join(every)}")
        self._names = {case: sorted(names.keys() & of_case) for case, of_case in known.items()}
        self._types = {name: case.reader().parameters for name, case in cases.items()}

    def nodes(self, path: str) -> list[str]:
        """Return the nodes that all matches in `path` name, each once, in their order.

        Raises:
            ValueError: a match is no name of a node and no set of nodes.
        """
        names: dict[str, None] = {}
        places: list[str] = []
        for match in self._matches(path):
            if PLACE in self._rule.groupindex and match[PLACE]:
                places.append(match[PLACE])
            if text := match[self._group]:
                nodes = unfold([text])
                names |= dict.fromkeys("-".join([*places, node]) for node in nodes)
        return list(names)

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


class LabelRule:
    """A regular expression that finds a label of an output: figures with other labels differ.

    Attributes:
        option: as it was given.
        name: of the label, which is a parameter of the figures.
        of_text: whether it is for the text of the file.
    """

    def __init__(self, option: str, cases: Iterable[Case]) -> None:
        """Compile ``NAME=REGEX``, ``NAME=name:REGEX`` or ``NAME=file:REGEX``.

        The expression is for the path, for the name of the file, or for its first 64 KiB. The label
        is the group of its name, the first group, or else the whole match. The label ``date`` is
        written as 2026-04-01.

        Raises:
            BadInput: it has another form, or the name is a parameter of one of the cases.
        """
        self.option = option
        self.name, _, pattern = option.partition("=")
        place, _, rest = pattern.partition(":")
        self.of_text, self._of_name = place == "file", place == "name"
        try:
            rule = rest if self.of_text or self._of_name else pattern
            self._rule = re.compile(rule, re.MULTILINE)
        except re.error as error:
            raise bad_input("--label", "", f"{option!r} ({error})", "NAME=REGEX") from None
        if not (rule and re.fullmatch("[a-z][a-z0-9_]*", self.name)):
            raise bad_input("--label", "", repr(option), "NAME=REGEX, as kind='/(cpu|gpu)/'")
        if any(self.name in {NODE, *case.parameter_names()} for case in cases):
            found = f"{self.name!r}, which is a parameter of a case"
            raise bad_input("--label", "", found, "another name, or a group of --node")

    def value(self, path: str, text: str) -> str | None:
        """Return the label of the output at `path` that begins with `text`; None if it has none."""
        place = text if self.of_text else path.rpartition("/")[2] if self._of_name else f"/{path}"
        if not (match := self._rule.search(place)):
            return None
        group: str | int = self.name if self.name in self._rule.groupindex else 1
        found = match[group if self._rule.groups else 0]
        return date_of(found) if found and self.name == DATE else found
