"""What is adopted of a folder: as options state it, or as the folder itself suggests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import Scalar
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.host_names import (
    HostTable,
    alike_error,
    canonical,
    clashes,
    domain_of,
    shared_domain,
    short_name,
)
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.packages.foreign.adopted import Contradiction, Lines
from proofmark.packages.foreign.node_names import NamedNodes, named_nodes
from proofmark.packages.foreign.output_folder import OutputFolder, find_outputs, named_errors
from proofmark.packages.foreign.output_heads import Banners, OutputHead, Part, head_of, heads_of
from proofmark.packages.foreign.path_rules import LabelRule, PathRule, case_patterns, label_rules
from proofmark.site.inventory import Site

Names = tuple[str, ...]
OutputKey = tuple[str, Names]
"""An output: the path of its file, and its nodes if the file has outputs of several nodes."""


@dataclass(frozen=True)
class Output:
    """The output of a program that others produced: a file, or its part of one.

    Attributes:
        source: its path below the adopted folder.
        case: the case whose reader reads it.
        nodes: the hosts of the site that it was measured on, at least one.
        parameters: the parameters that its path states.
        lines: its lines in the file; empty: all.
    """

    source: str
    case: str
    nodes: tuple[str, ...]
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    lines: Lines = ()


@dataclass(frozen=True)
class AdoptionRequest:
    """What is adopted.

    Attributes:
        patterns: the patterns of the paths, by case. Without any, the folder suggests them, and a
            rule and labels if none are given.
        rule: finds nodes and parameters in a path; None: the paths have none.
        nodes: the nodes of each file whose path names none; may be empty.
        run_id: the id of the run; None: one from the time.
        baseline: the folder of the accepted runs to compare with; None: none.
        labels: they separate figures.
    """

    folder: Path
    patterns: Mapping[str, Sequence[str]]
    rule: PathRule | None = None
    nodes: tuple[str, ...] = ()
    run_id: str | None = None
    baseline: Path | None = None
    labels: tuple[LabelRule, ...] = ()


@dataclass(frozen=True)
class Adoption:
    """What is adopted, file by file.

    Attributes:
        request: with all patterns, the rule and the labels.
        outputs: the adopted files.
        left: the other files, each with the reason.
        contradicted: the adopted files whose text names other nodes than their path.
        unselected: the adopted files with outputs of programs that no pattern selects, each with
            the cases of these.
    """

    request: AdoptionRequest
    outputs: Sequence[Output]
    left: Mapping[str, Message]
    contradicted: Mapping[str, Contradiction] = field(default_factory=dict)
    unselected: Mapping[str, Sequence[str]] = field(default_factory=dict)


def planned(
    folder: OutputFolder, request: AdoptionRequest, benchmarks: Benchmarks, site: Site | None = None
) -> Adoption:
    """Return what is adopted of `folder`.

    Raises:
        BadInput: see `find_outputs`; a file has no node, no case reads any file, or two nodes have
            one name without the domain.
    """
    banners = Banners(benchmarks)
    if request.patterns:
        return _told_apart(_of_patterns(folder, request, banners, benchmarks), site)
    heads = heads_of(folder, banners)
    files = _Files(folder, heads.__getitem__, folder.paths)
    answers = {path: _parts_of(head) for path, head in heads.items()}
    parts = {path: each for path, each in answers.items() if not isinstance(each, Message)}
    left = {path: each for path, each in answers.items() if isinstance(each, Message)}
    known = (lambda name: site.host_of(name) is not None) if site else None
    named = NamedNodes(None, {})
    printed = {path: heads[path].nodes for path in parts}
    stated = request.rule is not None
    if not stated:
        programs = {word for name in benchmarks.cases for word in (name, name.partition("-")[0])}
        hosts = dict.fromkeys(request.nodes)
        for head in heads.values():
            hosts |= dict.fromkeys(head.nodes)
        named = named_nodes(printed, programs, known, hosts)
        read = {name: benchmarks.case(name) for name in _cases(parts)}
        rule = PathRule(named.pattern, read) if named.pattern else None
        request = replace(request, rule=rule)
    outputs, problems, contradicted = _outputs(
        files, request, parts, stated=stated, unsure=named.questions.keys()
    )
    for path in problems.keys() & named.questions.keys():
        asks = named.questions[path]
        words, option = ", ".join(asks.words), shlex.quote(asks.pattern)
        problems[path] = Message("adopt-unsure-node", words=words, option=option)
    if known:
        others = {each.source: each.nodes for each in outputs if not all(map(known, each.nodes))}
        outputs = [each for each in outputs if each.source not in others]
        problems |= {
            path: Message("adopt-other-node", nodes=folded(nodes)) for path, nodes in others.items()
        }
    left |= problems
    if not outputs:
        why = ", ".join(dict.fromkeys(left.values())) or "no file"
        raise bad_input("FOLDER", "", f"{request.folder}: {why}", "an output that a case reads")
    if not request.labels:
        labels = (
            LabelRule(each, benchmarks.cases.values()) for each in label_rules(_by_case(outputs))
        )
        request = replace(request, labels=tuple(labels))
        outputs = [replace(each, parameters=files.labelled(each, request)) for each in outputs]
    request = replace(request, patterns=_patterns(heads, outputs))
    return _told_apart(Adoption(request, outputs, left, contradicted), site)


def _of_patterns(
    folder: OutputFolder, request: AdoptionRequest, banners: Banners, benchmarks: Benchmarks
) -> Adoption:
    """Return what the patterns of a person select.

    Raises:
        BadInput: see `find_outputs`; a file has no node, or patterns of a case that is not in it.
    """
    found = find_outputs(folder, request.patterns)
    heads = heads_of(replace(folder, paths=list(found.matched)), banners)
    parts: dict[str, list[Part]] = {}
    others: dict[str, Message | str] = {}
    unselected: dict[str, Sequence[str]] = {}
    for path, cases in found.matched.items():
        parts[path] = [each for each in heads[path].parts if each.case in cases]
        # Several cases can read alike: then the output is read by the one that was selected.
        read = [benchmarks.case(case).reader() for case in cases]
        printed = dict.fromkeys(each.case for each in heads[path].parts)
        if more := [case for case in printed if benchmarks.case(case).reader() not in read]:
            unselected[path] = more
        if len(cases) == 1:
            parts[path] = parts[path] or [Part(cases[0])]
        elif len(parts[path]) < len(cases):
            others[path] = f"patterns of {' and '.join(cases)}"
    if others:
        raise BadInput(*named_errors(others, "a file of one case, or with an output of each"))
    files = _Files(
        folder, lambda path: heads.get(path) or head_of(folder, banners, path), found.unmatched
    )
    stated = request.rule is not None
    outputs, problems, contradicted = _outputs(files, request, parts, stated=stated)
    if problems:
        accepted = "a path with a node (--node '{regular expression}'), or --nodes"
        raise BadInput(*named_errors(problems, accepted))
    left = dict.fromkeys(found.unmatched, Message("adopt-no-pattern"))
    return Adoption(request, outputs, left, contradicted, unselected)


class _Files:
    """The files of a folder: what their begins show, and the job scripts beside them."""

    def __init__(
        self, folder: OutputFolder, head: Callable[[str], OutputHead], scripts: Sequence[str]
    ) -> None:
        self._folder, self._head, self._paths = folder, head, scripts
        self._scripts: dict[str, set[tuple[str, ...]]] | None = None

    def head(self, path: str) -> OutputHead:
        """Return what the begin of a file shows."""
        return self._head(path)

    def of_scripts(self, path: str) -> tuple[str, ...]:
        """Return the nodes that all job scripts beside a file name."""
        if self._scripts is None:
            self._scripts = {}
            for other in self._paths:
                if (head := self._head(other)).script and head.nodes:
                    self._scripts.setdefault(other.rpartition("/")[0], set()).add(head.nodes)
        beside = self._scripts.get(path.rpartition("/")[0], set())
        return next(iter(beside)) if len(beside) == 1 else ()

    def labelled(self, output: Output, request: AdoptionRequest) -> dict[str, str | int | float]:
        """Return the parameters of an output, with its labels."""
        given = {}
        for label in request.labels:
            text = self._folder.text(output.source) if label.of_text else ""
            if value := label.value(output.source, text):
                given[label.name] = value
        return {**output.parameters, **given}


def _outputs(
    files: _Files,
    request: AdoptionRequest,
    parts: Mapping[str, Sequence[Part]],
    *,
    stated: bool,
    unsure: Collection[str] = (),
) -> tuple[list[Output], dict[str, Message], dict[str, Contradiction]]:
    """Return the outputs with their nodes, parameters and labels.

    Then the files without a node, and the files whose text names other nodes than their path.

    Args:
        request: what is adopted.
        parts: the outputs in each file.
        stated: whether a person states the rule: its nodes count where nothing else decides.
        unsure: the paths whose nodes are asked about.
    """
    outputs: list[Output] = []
    problems: dict[str, Message] = {}
    given: dict[str, list[tuple[Output, Part]]] = {}
    for path, of_path in parts.items():
        try:
            sure = request.rule if path not in unsure else None
            nodes = (tuple(sure.nodes(path)) if sure else ()) or request.nodes
            given[path] = [(_output(path, nodes, part, request.rule), part) for part in of_path]
        except ValueError as error:
            problems[path] = Message("adopted-unread", problem=str(error))
    named: dict[OutputKey, Names] = {}
    printed: dict[OutputKey, Names] = {}
    programs: dict[OutputKey, str] = {}
    for path, members in given.items():
        for output, part in members:
            key = (path, part.nodes)
            named[key], programs[key] = output.nodes, output.case
            printed[key] = part.nodes or files.head(path).nodes
    measured = {path for path in given if files.head(path).measured}
    found = nodes_of_outputs(named, printed, measured, programs)
    if not stated:
        problems |= found.unsure
    for path, members in given.items():
        if path in problems:
            continue
        for output, part in members:
            key = (path, part.nodes)
            nodes = found.nodes.get(key, named[key]) or files.of_scripts(path)
            if not nodes:
                problems[path] = Message("adopt-no-node")
                continue
            decided = replace(output, nodes=nodes)
            outputs.append(replace(decided, parameters=files.labelled(decided, request)))
    contradicted = {
        path: Contradiction(path=named, text=text)
        for path, (named, text) in found.contradicted.items()
    }
    return outputs, problems, contradicted


def _output(path: str, nodes: tuple[str, ...], part: Part, rule: PathRule | None) -> Output:
    """Return the output of one program in a file.

    Raises:
        ValueError: see `PathRule.parameters`.
    """
    parameters = rule.parameters(path, part.case) if rule else {}
    return Output(path, part.case, nodes, parameters, part.lines)


def _told_apart(adoption: Adoption, site: Site | None) -> Adoption:
    """Return `adoption`; a site has refused such hosts itself."""
    files: dict[str, str] = {}
    for each in adoption.outputs:
        for host in each.nodes:
            files.setdefault(host, each.source)
    if site is None and (alike := clashes(dict.fromkeys(files, ()))):
        raise BadInput(
            *(alike_error("--node", "", each, [files[host] for host in each]) for each in alike)
        )
    return adoption


def _parts_of(head: OutputHead) -> Sequence[Part] | Message:
    """Return the outputs in a file, or why it is left over."""
    if head.problem:
        return head.problem
    if not head.parts:
        return Message("adopt-job-script" if head.script else "adopt-no-banner")
    return head.parts


def _cases(parts: Mapping[str, Sequence[Part]]) -> set[str]:
    """Return the cases of all outputs."""
    found: set[str] = set()
    for of_path in parts.values():
        found.update(part.case for part in of_path)
    return found


def _by_case(outputs: Sequence[Output]) -> Iterable[Mapping[str, tuple[str, ...]]]:
    """Return the nodes of the outputs of each case, by path."""
    cases: dict[str, dict[str, tuple[str, ...]]] = {}
    for each in outputs:
        cases.setdefault(each.case, {})[each.source] = each.nodes
    return cases.values()


def _patterns(paths: Mapping[str, OutputHead], outputs: Sequence[Output]) -> dict[str, list[str]]:
    by_case: dict[str, list[str]] = {}
    for each in outputs:
        by_case.setdefault(each.case, []).append(each.source)
    return {case: case_patterns(own, [*(paths.keys() - own)]) for case, own in by_case.items()}


@dataclass(frozen=True)
class NodesOfOutputs:
    """The nodes of outputs.

    Attributes:
        nodes: of each output for which something decides.
        contradicted: the node sets of path and text, where the text decided, by path.
        unsure: what path and text name, where nothing decides, by path.
    """

    nodes: Mapping[OutputKey, Names]
    contradicted: Mapping[str, tuple[str, str]]
    unsure: Mapping[str, Message]


def nodes_of_outputs(
    named: Mapping[OutputKey, Names],
    printed: Mapping[OutputKey, Names],
    measured: Collection[str],
    programs: Mapping[OutputKey, str],
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
    nodes: dict[OutputKey, Names] = {}
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
        named: Mapping[OutputKey, Names],
        printed: Mapping[OutputKey, Names],
        programs: Mapping[OutputKey, str],
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

    def nodes(self, output: OutputKey, names: Names) -> Names:
        """Return the names that the text of an output prints as those of nodes, each once."""
        found: dict[str, None] = {}
        for name in names:
            short = self._short.get(short_name(canonical(name)), name)
            found[short if self._is_own(output, name) else name] = None
        return tuple(found)

    def has(self, output: OutputKey, nodes: Names, names: Names) -> bool:
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

    def _is_own(self, output: OutputKey, name: str) -> bool:
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
