"""Opens the folder of a run. Nothing in it is overwritten."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import RootModel

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.suite import Benchmarks
from proofmark.common.archive import found_in
from proofmark.common.errors import bad_input
from proofmark.common.files import exists, read_json, read_text, text_or_empty, write_whole
from proofmark.common.input_limits import MAX_PROBE_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import Message
from proofmark.common.trust import refuse_untrusted
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.runs.decisions import read_decisions
from proofmark.runs.format import check_inputs
from proofmark.runs.growth import site_now, with_growth
from proofmark.runs.latest import runs_below
from proofmark.runs.run_files import RunFiles
from proofmark.runs.work_folder import use_work_folder
from proofmark.site.inventory import Site


@dataclass(frozen=True)
class Seal:
    """What the evidence of a run states about itself.

    Attributes:
        folder: the acceptance folder, which has the archives, the verdict and the page.
        number: of the newest archive.
        digest: its SHA-256.
        earlier: the SHA-256 of the archives before it.
        time: when it was sealed, UTC.
        run_by: the user who owns the folder of the run.
        changes: the sealed files that were changed in the folder of the run later, with the kind
            of the change. Their sealed content counts.
    """

    folder: Path
    number: int
    digest: str
    earlier: Sequence[str]
    time: datetime
    by: str
    run_by: str
    changes: Mapping[str, str]

    @property
    def archive(self) -> str:
        """The path of the newest archive in the acceptance folder."""
        return f"evidence/{self.number:04d}.tar"


@dataclass(frozen=True)
class Run:
    """A run: its folder, or its evidence.

    Attributes:
        folder: the folder. That of sealed evidence is read from archives and exists on no disk.
        plan: the plan, with all that joined it.
        seal: of the evidence; None: this is the folder in which jobs work.
        run_by: the user who starts the programs.
    """

    folder: Path
    plan: Plan
    seal: Seal | None = None
    run_by: str = ""

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def imported(self) -> bool:
        """Whether others produced the outputs."""
        return self.plan.imported

    @property
    def files(self) -> RunFiles:
        """The files of the run."""
        return RunFiles(self.folder)

    @property
    def products(self) -> RunFiles:
        """What is made from the run: verdict, page, figures."""
        return RunFiles(self.seal.folder if self.seal else self.folder)


def open_run(folder: Path) -> Run:
    """Open the run in `folder`.

    Raises:
        BadInput: `folder` is not a run, is of another version, or has an unreadable plan; its
            inputs were changed after its start; or another user can change it.
    """
    refuse_untrusted(folder, OWN_RUN)
    resolved = folder.resolve()
    files = RunFiles(resolved)
    if not files.plan.is_file():
        raise bad_input("RUN", "", f"{folder}: not a run", runs_below(folder.parent))
    run_by = check_inputs(resolved).run_by
    use_work_folder(resolved, run_by)
    return replace(_opened(resolved), run_by=run_by)


OWN_RUN = "a run that only its user and root can change, or a copy of it by this user (cp -r)"


def sealed_run(place: Path, seal: Seal | None = None) -> Run:
    """Return the run whose evidence is mounted at `place`.

    Raises:
        BadInput: its plan is missing or damaged.
    """
    return replace(_opened(place), seal=seal)


def _opened(folder: Path) -> Run:
    files = RunFiles(folder)
    plan = with_growth(folder, read_json(files.plan, Plan))
    entered = _entered(files)
    for mode in _ran_in(files, plan) - {plan.current_mode, *entered}:
        found = f"no line {mode!r}, but jobs of this mode ran"
        raise bad_input(files.entered, "", found, "the modes that the run entered")
    return Run(folder, plan.model_copy(update={"allowed_modes": entered, **_left_out(files)}))


def _ran_in(files: RunFiles, plan: Plan) -> set[str]:
    """Return the modes in which jobs of the run were started."""
    return {
        group.mode
        for group in plan.groups
        if group.mode != plan.current_mode
        and any(exists(files.job(job.id).folder / "attempt-1") for job in group.jobs)
    }


def with_decisions(run: Run) -> Run:
    """Return `run` with the decisions that were made since it was opened.

    Raises:
        BadInput: a file with them is damaged.
    """
    return replace(run, plan=run.plan.model_copy(update=_left_out(run.files)))


def enter_mode(folder: Path, mode: str) -> None:
    """Allow the run in `folder` to enter `mode`. Its steps are expected from now on."""
    files = RunFiles(folder)
    known = _entered(files)
    if mode not in known:
        write_whole(files.entered, "".join(f"{each}\n" for each in [*known, mode]))


def leave_out(run: Run, not_needed: Mapping[str, Message]) -> Run:
    """Write the steps that are not needed, with their reasons; return the run without them.

    An existing file stays, because the programs of a run do not change.

    Raises:
        BadInput: the file cannot be written, or it is damaged.
    """
    path = run.files.not_needed
    if not os.path.lexists(path):
        write_whole(path, _Reasons(dict(not_needed)).model_dump_json(indent=1) + "\n")
    return open_run(run.folder)


def _left_out(files: RunFiles) -> dict[str, dict[str, Message]]:
    """Return the fields `Plan.repeated` and `Plan.not_needed` of a run."""
    path = files.not_needed
    repeated = read_json(path, _Reasons).root if exists(path) else {}
    return {
        "repeated": repeated,
        "not_needed": {**repeated, **read_decisions(files).left_out()},
    }


class _Reasons(RootModel[dict[str, Message]]):
    """Reasons by id of the step."""


def _entered(files: RunFiles) -> list[str]:
    try:
        return read_text(files.entered, MAX_SMALL_BYTES).split()
    except FileNotFoundError:
        return []
    except OSError as error:
        found = f"{error.strerror}"
        raise bad_input(files.entered, "", found, "the modes that the run entered") from None


def benchmarks_of(run: Run) -> Benchmarks:
    """Return the cases of `run`, as they were at its start."""
    return benchmarks_in(run.folder)


def benchmarks_in(folder: Path) -> Benchmarks:
    """Return the cases of the run in `folder`, as they were at its start.

    Raises:
        BadInput: the cases are wrong, or another user can change the run.
    """
    if not found_in(folder):
        refuse_untrusted(folder, OWN_RUN)
    return load_benchmarks(RunFiles(folder).benchmarks, former=True)


def site_of(run: Run) -> Site:
    """Return the site of `run`, as it was at its start, with the nodes that joined."""
    nodes_arrive = kind_of(run.plan).nodes_arrive
    return site_now(run.folder) if nodes_arrive else read_json(run.files.site, Site)


def reported_names(run: Run, site: Site) -> dict[str, list[str]]:
    """Return the further names that the nodes of `run` may report, by node.

    The inventory declares them. A node that is the machine of the play (connection ``local``) may
    report the name of the machine that planned the run.
    """
    names = {node: list(declared) for node, declared in site.aliases.items()}
    if site.connection == "local":
        text = text_or_empty(run.files.facts_probe, MAX_PROBE_BYTES)
        for node in site.hosts:
            names.setdefault(node, []).extend(_HOSTNAME.findall(text)[:1])
    return names


_HOSTNAME = re.compile(r"^\| hostname: (\S+)$", re.MULTILINE)
