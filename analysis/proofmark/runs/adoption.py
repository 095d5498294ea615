"""Creates a run from outputs that others produced. The folder of the outputs is never changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proofmark.cases.reader.engine import read_output
from proofmark.cases.reader.output_text import output_text
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_bytes_below, write_whole
from proofmark.common.host_names import alike_error, clashes
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES
from proofmark.common.nodesets import folded, is_name
from proofmark.common.parallel import parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.text import size
from proofmark.plan.adopted_plan import Output, adopted_plan
from proofmark.plan.output_paths import PathRule
from proofmark.runs.adopted import Adopted, AdoptedFile, shown
from proofmark.runs.latest import Link, point
from proofmark.runs.output_folder import FoundOutputs, find_outputs, named_errors
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.start import RunInputs, check_run_id, new_run, new_run_id, write_inputs
from proofmark.runs.step_files import StepFiles
from proofmark.site.adopted_site import hosts_by_name, site_of_hosts
from proofmark.site.inventory import Site

BATCH = 250
"""The number of files that one process copies at a time."""
ONE_PROCESS = 2000
"""One process copies at most this number of files: a second costs more time."""

Counted = Callable[[int, int], None]
"""Called with the number of copied files and the number of all files."""


@dataclass(frozen=True)
class Request:
    """What is adopted.

    Attributes:
        folder: the folder of the outputs.
        patterns: the patterns of the paths, by case.
        rule: finds nodes and parameters in a path; None: the paths have none.
        nodes: the nodes of each file whose path names none; may be empty.
        run_id: the id of the run; None: one from the time.
        baseline: the folder of the accepted runs to compare with; None: none.
    """

    folder: Path
    patterns: Mapping[str, Sequence[str]]
    rule: PathRule | None = None
    nodes: tuple[str, ...] = ()
    run_id: str | None = None
    baseline: Path | None = None


def adopt_folder(
    root: Path,
    request: Request,
    benchmarks: Benchmarks,
    site: Site | None = None,
    counted: Counted = lambda done, total: None,
) -> tuple[Run, Adopted]:
    """Return a new run below `root` with copies of the outputs, and where they come from.

    A file that cannot be read is adopted without a copy: its figures are INVALID.

    Args:
        root: the folder of the runs.
        request: what is adopted.
        benchmarks: the cases.
        site: the site of the nodes; None: only the nodes that are found are known.
        counted: called while the files are copied.

    Raises:
        BadInput: see `find_outputs`; a file names no node, or one that `site` does not select; the
            run exists, or would be in the folder of the outputs.
    """
    check_run_id(request.run_id)
    if request.folder.resolve() in (root.resolve(), *root.resolve().parents):
        found = f"{request.folder}: has the folder of the runs, {root}, in it"
        raise bad_input("FOLDER", "", found, "a folder without the runs: it is never changed")
    found_outputs = find_outputs(request.folder, request.patterns)
    named = _named_outputs(request, found_outputs.matched, benchmarks)
    hosts = [node for output in named for node in output.nodes]
    if site is None and (alike := clashes({host: () for host in hosts})):
        raise BadInput(*(alike_error("--node", "", each) for each in alike))
    site = site or site_of_hosts(sorted(set(hosts)))
    plan, folders = adopted_plan(_on_hosts(named, hosts, site), benchmarks, site)
    folder = root / (request.run_id or new_run_id(site, plan))
    with new_run(folder) as made:
        write_inputs(made, RunInputs(plan, benchmarks, site, ""), request.baseline)
        files = _copied(request.folder, RunFiles(made), folders, counted)
        adopted = _adopted(request, found_outputs, files)
        _write_adopted(RunFiles(made), adopted)
    run = Run(folder.resolve(), plan)
    if problem := point(Link.ADOPTED.path(root, site.name), run.id):
        say(problem)
    return run, adopted


def _named_outputs(
    request: Request, matched: Mapping[str, str], benchmarks: Benchmarks
) -> list[Output]:
    """Return the outputs with the nodes and parameters that their paths, or texts, state.

    Raises:
        BadInput: a path states no node and the text neither, or something that is not accepted.
    """
    outputs: list[Output] = []
    problems: dict[str, str] = {}
    for path, case in matched.items():
        try:
            nodes = tuple(request.rule.nodes(path)) if request.rule else ()
            parameters = request.rule.parameters(path, case) if request.rule else {}
        except ValueError as error:
            problems[path] = f"{error}"
            continue
        nodes = nodes or request.nodes or _nodes_in_text(request.folder, path, case, benchmarks)
        if nodes:
            outputs.append(Output(path, case, nodes, parameters))
        else:
            problems[path] = "no node in the path, and none in the text"
    if problems:
        accepted = "a path with a node (--node '{regular expression}'), or --nodes"
        raise BadInput(*named_errors(problems, accepted))
    return outputs


def _nodes_in_text(folder: Path, path: str, case: str, benchmarks: Benchmarks) -> tuple[str, ...]:
    """Return the nodes that the output itself names; empty if it names none or is unreadable."""
    try:
        text = output_text(read_bytes_below(folder, path))
    except OSError:
        return ()
    readings = read_output(benchmarks.case(case).reader(), case, text)
    names = dict.fromkeys(reading.node for reading in readings if reading.node)
    return tuple(name for name in names if is_name(name))


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
        Output(
            output.source,
            output.case,
            tuple(dict.fromkeys(hosts[name] for name in output.nodes)),
            output.parameters,
        )
        for output in outputs
    ]


Copies = list[tuple[str, AdoptedFile]]


def _copied(
    source: Path, files: RunFiles, folders: Mapping[str, Output], counted: Counted
) -> dict[str, AdoptedFile]:
    """Copy the outputs into the folders of their steps; return them by these folders."""
    names = list(folders)
    batches = [names[first : first + BATCH] for first in range(0, len(names), BATCH)]
    copied: dict[str, AdoptedFile] = {}
    work = partial(_copy, source, files, folders)
    counted(0, len(names))
    for part in parallel_map(work, batches, large=len(names) > ONE_PROCESS):
        copied.update(part)
        counted(len(copied), len(names))
    return copied


def _copy(
    source: Path, files: RunFiles, folders: Mapping[str, Output], names: Sequence[str]
) -> Copies:
    copies: Copies = []
    for name in names:
        path = folders[name].source
        execution = StepFiles(files.step(name).folder / "execution-1")
        execution.folder.mkdir(parents=True)
        try:
            content = read_bytes_below(source, path)
        except OSError as error:
            problem = f"{shown(path)}: {error.strerror or 'unreadable'}"
            copies.append((name, AdoptedFile(source=shown(path), problem=problem)))
            continue
        execution.stdout.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        copies.append((name, AdoptedFile(source=shown(path), sha256=digest, bytes=len(content))))
    return copies


def _adopted(request: Request, found: FoundOutputs, files: Mapping[str, AdoptedFile]) -> Adopted:
    return Adopted(
        folder=shown(f"{request.folder.resolve()}"),
        patterns={case: list(patterns) for case, patterns in request.patterns.items()},
        node=request.rule.pattern if request.rule else "",
        files=dict(files),
        unmatched=[shown(path) for path in found.unmatched],
        not_entered={shown(path): why for path, why in found.not_entered.items()},
    )


def _write_adopted(files: RunFiles, adopted: Adopted) -> None:
    text = adopted.model_dump_json(indent=1) + "\n"
    if len(text) > MAX_RUN_FILE_BYTES:
        found = f"names of files with {size(len(text))}"
        accepted = f"at most {size(MAX_RUN_FILE_BYTES)}: adopt a smaller part of the folder"
        raise BadInput(InputError("FOLDER", "", found, accepted))
    write_whole(files.adopted, text)
