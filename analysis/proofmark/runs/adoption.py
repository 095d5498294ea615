"""Creates a run from outputs that others produced. The folder of the outputs is never changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from proofmark.cases.banners import lines_of
from proofmark.cases.reader.output_text import output_text
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import write_whole
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES
from proofmark.common.nodesets import folded
from proofmark.common.parallel import parallel_map
from proofmark.common.progress_lines import say
from proofmark.common.rights import this_user
from proofmark.common.text import size
from proofmark.plan.adopted_plan import Output, adopted_plan
from proofmark.runs.adopted import Adopted, AdoptedFile, shown
from proofmark.runs.adoption_request import Adoption, AdoptionRequest, planned
from proofmark.runs.latest import Link, point
from proofmark.runs.output_folder import OutputFolder, opened
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_files import RunFiles, StepFiles
from proofmark.runs.start import RunInputs, check_run_id, make_run, new_run_id, write_inputs
from proofmark.site.adopted_site import hosts_by_name, site_of_hosts
from proofmark.site.inventory import Site

_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d.:]*(?:[eE][-+]?\d+)?(?![\w.-])", re.ASCII)
_FIGURE = re.compile(r"[-+]?(?=[\d.]{5})\d+\.\d+(?:[eE][-+]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"\d{1,2}:\d\d:\d\d(?:\.\d+)?", re.ASCII)
BATCH = 250
"""The number of files that one process copies at a time."""
ONE_PROCESS = 2000
"""One process copies at most this number of files: a second costs more time."""

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
        root: the folder of the runs.
        request: what is adopted.
        benchmarks: the cases.
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
    if problem := point(Link.ADOPTED.path(root, site.name), run.id):
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
    write_whole(files.adopted, text)
