"""Opens the folder of a run, with what joined it and what was decided after its start.

- ``growth/<n>.json``: what joined a run that grows (`proofmark.plan.kinds`). No file of the run is
  changed. A file has jobs and nodes only: the limits, the contract and everything else that judges
  are those of the start.
- ``decisions.json``: what the controller decided about steps of the plan. A step whose files were
  not written is not run. The reason is written when the decision is made, and stays.
- ``runs/latest-<site>``: the link to the newest acceptance of a site. A package has other links for
  its runs: the group of this module in its ``PLUGINS`` has the first word of their names.
  Another site or another kind of run never moves a link. Another user of the same site does, so
  each command prints the run that it takes.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel, ValidationError

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.suite import Benchmarks
from proofmark.common.archive import found_in
from proofmark.common.errors import bad_input
from proofmark.common.files import (
    exists,
    paths_in,
    read_json,
    regular_or_empty,
    text_or_empty,
    write_atomic,
)
from proofmark.common.input_limits import MAX_PROBE_BYTES, MAX_SMALL_BYTES
from proofmark.common.message import Message
from proofmark.common.plugins import installed
from proofmark.common.shared_models import StrictModel
from proofmark.common.trust import refuse_untrusted
from proofmark.plan.kinds import Part, kind_of
from proofmark.plan.plan import Group, Plan
from proofmark.runs.identity import check_inputs
from proofmark.runs.run_files import RunFiles, use_work_folder
from proofmark.site.access import Access
from proofmark.site.inventory import Site


class SetAside(StrictModel):
    """Executions of a step that a site sets aside, because it runs the step again.

    Attributes:
        attempts: the number of the last of these executions.
        reason: why they say nothing about the nodes.
    """

    attempts: Annotated[int, Field(gt=0)]
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class Decisions(StrictModel, extra="ignore"):
    """The decisions of a run.

    Attributes:
        not_needed: the steps whose files are those of another step, each with the reason.
        not_run: the steps that cannot run, each with the reason: their files were not written.
            They are INVALID.
        set_aside: the executions that the site sets aside, by the folder of the step.
    """

    not_needed: dict[str, Message] = {}
    not_run: dict[str, Message] = {}
    set_aside: dict[str, SetAside] = {}

    def left_out(self) -> dict[str, Message]:
        """Return the steps that are not run, each with the reason."""
        return {**self.not_needed, **self.not_run}


def read_decisions(files: RunFiles) -> Decisions:
    """Return the decisions of a run; a run without the file has none.

    Raises:
        BadInput: the file cannot be read, or it is damaged.
    """
    path = files.decisions
    return read_json(path, Decisions) if exists(path) else Decisions()


def extends(old: bytes, new: bytes) -> bool:
    """Return whether the file `new` has all decisions of the file `old`, and perhaps more."""
    try:
        before, after = (Decisions.model_validate_json(each) for each in (old, new))
    except ValidationError:
        return False
    kinds = Decisions.model_fields
    return all(getattr(before, kind).items() <= getattr(after, kind).items() for kind in kinds)


def add_decisions(files: RunFiles, made: Decisions) -> None:
    """Add decisions to those of a run.

    Raises:
        BadInput: the file cannot be read or written.
    """
    known = read_decisions(files)
    every = {kind: getattr(known, kind) | getattr(made, kind) for kind in Decisions.model_fields}
    write_atomic(files.decisions, Decisions(**every).model_dump_json(indent=1) + "\n")


class Growth(StrictModel):
    """Jobs that joined a run.

    `partition_hosts` are the nodes of the partition at that time, `aliases` the further names of
    its nodes. `ssh` is how the inventory reaches them; None: as before.
    """

    groups: list[Group]
    searches: Annotated[list[object], Field(max_length=0, exclude=True)] = []
    """Runs of earlier releases have it."""
    hosts: list[str]
    partition_hosts: list[str]
    aliases: dict[str, list[str]]
    ssh: Access | None


def _growths(folder: Path) -> list[Growth]:
    """Return what joined the run in `folder`, the oldest first."""
    return [read_json(path, Growth) for path in paths_in(RunFiles(folder).growth, "*.json")]


def with_growth(folder: Path, plan: Plan) -> Plan:
    """Return `plan`, that of the start of the run in `folder`, with all that joined it.

    Raises:
        BadInput: no installed package has the kind of the plan, or a file is damaged.
    """
    kind = kind_of(plan)
    for each in _growths(folder) if kind.grows else ():
        plan = kind.grown(plan, each.groups)
    return plan


def site_now(folder: Path) -> Site:
    """Return the site of the run in `folder`: its partition at the start, with all nodes."""
    site = read_json(RunFiles(folder).site, Site)
    for each in _growths(folder):
        site = _joined(site, each)
    return site


def add_growth(folder: Path, part: Part, joining: Site) -> None:
    """Add `part`, and the hosts of the site `joining`, to the run in `folder`.

    Raises:
        BadInput: the file cannot be written.
    """
    growth = RunFiles(folder).growth
    path = growth / f"{len(_growths(folder)) + 1:04d}.json"
    growth.mkdir(exist_ok=True)
    made = Growth(
        groups=part,
        hosts=list(joining.hosts),
        partition_hosts=list(joining.partition_hosts),
        aliases=joining.aliases,
        ssh=joining.ssh,
    )
    write_atomic(path, made.model_dump_json(indent=1) + "\n")


def _joined(site: Site, joining: Growth) -> Site:
    """Return `site` with the hosts of `joining`, as the inventory reached them at that time."""
    access = site.ssh
    if access is not None and joining.ssh is not None:
        hosts = {**access.hosts, **{host: joining.ssh.of(host) for host in joining.hosts}}
        others = {host: each for host, each in hosts.items() if each != access.usual}
        access = Access(shell=access.shell, usual=access.usual, hosts=others)
    return site.model_copy(
        update={
            "hosts": tuple(dict.fromkeys((*site.hosts, *joining.hosts))),
            "partition_hosts": joining.partition_hosts,
            "aliases": {**site.aliases, **joining.aliases},
            "ssh": access,
        }
    )


LATEST = "latest"
"""The kind of the links to acceptances: the first word of their names."""


def link_path(root: Path, kind: str, site: str) -> Path:
    """Return the link of `kind` to the newest run of `site` below `root`."""
    return root / f"{kind}-{site}"


def is_reserved(name: str) -> bool:
    """Return whether `name` is the name of a link, so that no run can have it."""
    kind, separator, site = name.partition("-")
    return kind in (LATEST, *installed(__name__)) and bool(site or not separator)


def point(link: Path, run: str) -> str:
    """Let `link` point to `run`, a folder beside it; return why it was not moved, or "".

    A file or folder in the place of the link stays, and so does a link that this user cannot
    replace.
    """
    if link.exists() and not link.is_symlink():
        return f"{link}: no link; remove it, so that it can be the link to the newest run"
    fresh = link.with_name(f".{link.name}-{secrets.token_hex(8)}")
    try:
        fresh.symlink_to(run)
        fresh.rename(link)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        return f"{link}: not moved to {run}: {error.strerror}"
    return ""


def followed(path: Path) -> Path | None:
    """Return `path` with the run in place of a link in it; None if it has no link to a run.

    Raises:
        BadInput: the run does not exist.
    """
    for place in (path, *path.parents):
        if is_reserved(place.name) and place.is_symlink():
            run = place.parent / place.readlink()
            if not run.is_dir():
                found = f"{place}: a link to {place.readlink()}, which does not exist"
                raise bad_input("RUN", "", found, runs_below(place.parent))
            return run / path.relative_to(place)
    return None


def newest_run(root: Path, site: str) -> Path:
    """Return the link to the newest acceptance of `site`.

    Raises:
        BadInput: there is no such link.
    """
    link = link_path(root, LATEST, site)
    if not link.is_symlink():
        found = f"no link {link}: no run of the site {site}"
        raise bad_input("run_id", "", found, runs_below(root))
    return link


def runs_below(root: Path) -> str:
    """Return the links and the newest runs in `root` as text."""
    links = sorted(path.name for path in root.glob(f"{LATEST}-*") if path.is_symlink())
    newest = sorted(path.name for path in root.glob("*Z-*") if not path.is_symlink())[-3:]
    return ", ".join([*links, *newest]) or "a run's folder"


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
    def executed(self) -> bool:
        """Whether this kit starts its programs (`proofmark.plan.kinds.RunKind`)."""
        return kind_of(self.plan).executed

    @property
    def files(self) -> RunFiles:
        """The files of the run."""
        return RunFiles(self.folder)

    @property
    def archives(self) -> tuple[str, ...]:
        """The SHA-256 of each sealed archive, the newest one first; empty if nothing is sealed."""
        return (self.seal.digest, *self.seal.earlier) if self.seal else ()

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
    for group in plan.groups:
        left_out = group.mode not in (plan.current_mode, *entered)
        if left_out and any(exists(files.job(job.id).folder / "attempt-1") for job in group.jobs):
            found = f"no line {group.mode!r}, but jobs of this mode ran"
            raise bad_input(files.entered, "", found, "the modes that the run entered")
    return Run(folder, plan.model_copy(update={"allowed_modes": entered, **_left_out(files)}))


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
        write_atomic(files.entered, "".join(f"{each}\n" for each in [*known, mode]))


def leave_out(run: Run, not_needed: Mapping[str, Message]) -> Run:
    """Write the steps that are not needed, with their reasons; return the run without them.

    An existing file stays, because the programs of a run do not change.

    Raises:
        BadInput: the file cannot be written, or it is damaged.
    """
    path = run.files.not_needed
    if not os.path.lexists(path):
        write_atomic(path, _Reasons(dict(not_needed)).model_dump_json(indent=1) + "\n")
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
    return regular_or_empty(files.entered, MAX_SMALL_BYTES).decode(errors="replace").split()


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
