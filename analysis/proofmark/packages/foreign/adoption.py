"""Creates a run from outputs that others produced. The folder of the outputs is never changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import write_atomic
from proofmark.common.grouping import batched
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES
from proofmark.common.nodesets import folded
from proofmark.common.processes import parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.rights import this_user
from proofmark.common.text import size
from proofmark.packages.foreign import LINK
from proofmark.packages.foreign.adopted import (
    KIND,
    Adopted,
    AdoptedFile,
    lines_of,
    path_of,
    shown,
)
from proofmark.packages.foreign.adoption_request import Adoption, AdoptionRequest, Output, planned
from proofmark.packages.foreign.output_folder import OutputFolder, opened
from proofmark.packages.foreign.output_text import output_text
from proofmark.plan.expansion import content_digest
from proofmark.plan.plan import Group, Job, Plan, Totals
from proofmark.plan.step import Step
from proofmark.runs.run import Run, link_path, open_run, point
from proofmark.runs.run_files import RunFiles, StepFiles
from proofmark.runs.start import RunInputs, check_run_id, make_run, new_run_id, write_inputs
from proofmark.site.file_systems import Scratch
from proofmark.site.hardware import UNRECORDED
from proofmark.site.inventory import Site
from proofmark.site.partition import Partition

_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d.:]*(?:[eE][-+]?\d+)?(?![\w.-])", re.ASCII)
_FIGURE = re.compile(r"[-+]?(?=[\d.]{5})\d+\.\d+(?:[eE][-+]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"\d{1,2}:\d\d:\d\d(?:\.\d+)?", re.ASCII)
BATCH = 1000
"""The number of files that one process copies at a time."""

Counted = Callable[[int, int], None]
"""Called with the number of copied files and the number of all files."""


def adopt_folder(
    root: Path,
    request: AdoptionRequest,
    benchmarks: Benchmarks,
    site: Site | None = None,
    counted: Counted = lambda done, total: None,
) -> tuple[Run, Adopted]:
    """Return a new run below `root` with copies of the outputs, and where they come from.

    A file that cannot be read is adopted without a copy: its figures are INVALID.

    Args:
        request: what is adopted.
        site: the site of the nodes; None: only the nodes that are found are known.
        counted: called while the files are copied.

    Raises:
        BadInput: see `planned`; a file is of a node that `site` does not select; the run exists, or
            would be in the folder of the outputs.
    """
    check_run_id(request.run_id)
    if request.folder.resolve() in (root.resolve(), *root.resolve().parents):
        found = f"{request.folder}: has the folder of the runs, {root}, in it"
        raise bad_input("FOLDER", "", found, "a folder without the runs: it is never changed")
    with opened(request.folder) as outputs:
        adoption = planned(outputs, request, benchmarks, site)
        hosts: list[str] = []
        for output in adoption.outputs:
            hosts += output.nodes
        site = site or site_of_hosts(sorted(set(hosts)))
        named = _on_hosts(adoption.outputs, hosts, site)
        plan, folders = adopted_plan(named, benchmarks, site)
        inputs = RunInputs(plan, benchmarks, site, "")
        written: list[Adopted] = []

        def write(made: Path) -> str:
            write_inputs(made, inputs, request.baseline)
            files = _copied(outputs, RunFiles(made), folders, counted)
            written.append(_adopted(adoption, outputs, files))
            _write_adopted(RunFiles(made), written[-1])
            return this_user().name

        folder = make_run(root, request.run_id or "", new_run_id(site, plan), write)
        adopted = written[-1]
    run = open_run(folder)
    if problem := point(link_path(root, LINK, site.name), run.id):
        say(problem)
    return run, adopted


def _on_hosts(outputs: Sequence[Output], names: Sequence[str], site: Site) -> list[Output]:
    """Return `outputs` with the names that the site has for their nodes.

    Raises:
        BadInput: names the nodes that the site does not select.
    """
    hosts = hosts_by_name(site, set(names))
    if others := sorted(set(names) - hosts.keys()):
        found = f"nodes that {site.limit!r} of {site.name} does not select: {folded(others)}"
        raise bad_input("--node", "", found, f"hosts of {site.partition_name}")
    return [
        replace(output, nodes=tuple(dict.fromkeys(hosts[name] for name in output.nodes)))
        for output in outputs
    ]


Copies = list[tuple[str, AdoptedFile]]


def _copied(
    source: OutputFolder, files: RunFiles, folders: Mapping[str, Output], counted: Counted
) -> dict[str, AdoptedFile]:
    """Copy the outputs into the folders of their steps; return them by these folders."""
    copied: dict[str, AdoptedFile] = {}
    work = partial(_copy, source, files, folders)
    counted(0, len(folders))
    for part in parallel_map(work, batched(folders, BATCH)):
        copied.update(part)
        counted(len(copied), len(folders))
    return copied


def _copy(
    source: OutputFolder, files: RunFiles, folders: Mapping[str, Output], names: Sequence[str]
) -> Copies:
    copies: Copies = []
    for name in names:
        path, lines = folders[name].source, folders[name].lines
        execution = StepFiles(files.step(name).folder / "execution-1")
        execution.folder.mkdir(parents=True)
        try:
            content = source.read(path)
        except OSError as error:
            problem = f"{shown(path)}: {error.strerror or 'unreadable'}"
            copies.append((name, AdoptedFile(source=shown(path), problem=problem)))
            continue
        execution.stdout.write_bytes(content)
        numbers = _NUMBER.findall(lines_of(output_text(content), lines))
        file = AdoptedFile(
            source=shown(path),
            sha256=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
            moments=len([*filter(_MOMENT.fullmatch, numbers)]),
            figures=len({*filter(_FIGURE.fullmatch, numbers)}),
            numbers=hashlib.sha256("\n".join(numbers).encode()).hexdigest(),
            lines=lines,
        )
        copies.append((name, file))
    return copies


def _adopted(
    adoption: Adoption, outputs: OutputFolder, files: Mapping[str, AdoptedFile]
) -> Adopted:
    request = adoption.request
    return Adopted(
        folder=shown(f"{request.folder.resolve()}"),
        patterns={case: list(patterns) for case, patterns in request.patterns.items()},
        node=request.rule.pattern if request.rule else "",
        labels=[label.option for label in request.labels],
        files=dict(files),
        unmatched=[shown(path) for path in adoption.left],
        not_entered={shown(path): why for path, why in outputs.not_read.items()},
        contradicted={shown(path): each for path, each in adoption.contradicted.items()},
        unselected={shown(path): list(cases) for path, cases in adoption.unselected.items()},
    )


def _write_adopted(files: RunFiles, adopted: Adopted) -> None:
    text = adopted.model_dump_json(indent=1) + "\n"
    if len(text) > MAX_RUN_FILE_BYTES:
        found = f"names of files with {size(len(text))}"
        accepted = f"at most {size(MAX_RUN_FILE_BYTES)}: adopt a smaller part of the folder"
        raise BadInput(InputError("FOLDER", "", found, accepted))
    write_atomic(path_of(files), text)


SUITE = "adopted"
"""The name that the plan has instead of that of a suite."""


def adopted_plan(
    outputs: Iterable[Output], benchmarks: Benchmarks, site: Site
) -> tuple[Plan, dict[str, Output]]:
    """Return the plan of `outputs`, and each output by the folder of its step below ``steps/``.

    The first file of each node is one step, the second file of each node another one: repeats of
    a node are in different steps. A file of several nodes is a step of its own. Files with other
    parameters in their paths are in other steps.

    Args:
        outputs: at least one.
        site: the site, whose hosts include all nodes of `outputs`.
    """
    numbers = count(1)
    order = {host: number for number, host in enumerate(site.hosts)}
    steps: list[Step] = []
    folders: dict[str, Output] = {}
    for members in _groups(outputs):
        for part in _rounds(members):
            first = part[0]
            part.sort(key=lambda output: order[output.nodes[0]])
            alone = len(first.nodes) == 1
            nodes = [node for output in part for node in output.nodes]
            step = _step(f"{next(numbers):04d}-{first.case}", first, nodes, benchmarks, alone=alone)
            steps.append(step)
            folders |= {
                f"{step.id}/{output.nodes[0]}" if alone else step.id: output for output in part
            }
    cases = {step.case: benchmarks.case(step.case) for step in steps}
    plan = Plan(
        digest="",
        site=site.name,
        partition=site.partition_name,
        suite=SUITE,
        system=site.partition_name,
        groups=[
            Group(mode=UNRECORDED, environment=site.partition.environment, jobs=_jobs(steps)),
        ],
        totals=Totals(
            jobs=0, steps=len(steps), node_hours=0, bytes=0, scratch_peak_bytes=0, wall_s=0
        ),
        cases={name: content_digest(case.model_dump(mode="json")) for name, case in cases.items()},
        current_mode=UNRECORDED,
        fewer_nodes=_fewer_nodes(steps, site),
        kind=KIND,
    )
    sources = {folder: output.source for folder, output in folders.items()}
    content = [plan.model_dump(mode="json"), site.partition.model_dump(mode="json"), sources]
    return plan.model_copy(update={"digest": content_digest(content)}), folders


def _groups(outputs: Iterable[Output]) -> list[list[Output]]:
    """Return the outputs with the same case and parameters, of one node or of several nodes."""
    groups: dict[tuple[str, str, bool], list[Output]] = {}
    for output in sorted(outputs, key=lambda output: output.source):
        parameters = json.dumps(dict(output.parameters), sort_keys=True)
        key = (output.case, parameters, len(output.nodes) > 1)
        groups.setdefault(key, []).append(output)
    return [members for _, members in sorted(groups.items())]


def _rounds(members: Sequence[Output]) -> Iterator[list[Output]]:
    """Yield the first file of each node, then the second ones; a file of several nodes alone."""
    if len(members[0].nodes) > 1:
        yield from ([output] for output in members)
        return
    by_number: dict[int, list[Output]] = {}
    seen: dict[str, int] = {}
    for output in members:
        number = seen[output.nodes[0]] = seen.get(output.nodes[0], 0) + 1
        by_number.setdefault(number, []).append(output)
    yield from by_number.values()


def _step(
    name: str, output: Output, nodes: Sequence[str], benchmarks: Benchmarks, *, alone: bool
) -> Step:
    case = benchmarks.case(output.case)
    return Step(
        id=name,
        case=output.case,
        repeat=1,
        nodes=list(nodes),
        ranks=0,
        threads=0,
        placement="",
        parameters=dict(output.parameters),
        derived={},
        package=case.package,
        program="",
        launch=case.launch,
        arguments=[],
        environment={},
        inputs={},
        output="stdout",
        variants={},
        cpus=[],
        seconds=0,
        timeout=0,
        bytes=0,
        scope="each-node" if alone else "job",
    )


def _jobs(steps: Sequence[Step]) -> list[Job]:
    by_nodes: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_nodes.setdefault(tuple(step.nodes), []).append(step)
    return [
        Job(id=f"00-{number:04d}", nodes=list(nodes), steps=members)
        for number, (nodes, members) in enumerate(by_nodes.items(), start=1)
    ]


def _fewer_nodes(steps: Sequence[Step], site: Site) -> dict[str, int]:
    """Return the cases of single nodes that some hosts lack (docs/design/cases.md)."""
    hosts = len(site.partition_hosts or site.hosts)
    together = {step.case for step in steps if step.scope == "job"}
    nodes: dict[str, set[str]] = {}
    for step in steps:
        if step.case not in together:
            nodes.setdefault(step.case, set()).update(step.nodes)
    return {case: hosts for case, known in nodes.items() if len(known) < hosts}


def site_of_hosts(hosts: Iterable[str]) -> Site:
    """Return a site with one partition of `hosts`, whose facts are not known."""
    known = tuple(dict.fromkeys(hosts))
    return Site(
        name=KIND,
        inventory=Path(KIND),
        limit=KIND,
        partition_name=KIND,
        partition=Partition(
            environment=KIND,
            scheduler="none",
            provision_from=KIND,
            scratch=Scratch(path="/"),
        ),
        hosts=known,
        connection="ssh",
        partition_hosts=list(known),
    )


def hosts_by_name(site: Site, names: Collection[str]) -> dict[str, str]:
    """Return the host of `site` for each of `names` that is a name of one.

    A name that several hosts may have is none of them.
    """
    found = {name: site.host_of(name) for name in names}
    return {name: host for name, host in found.items() if host}
