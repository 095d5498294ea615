"""The table of the files of a run, which no other room names, and its work folder.

The work folder is that of the user who starts the programs, ``runs/<id>/workdir``. If root runs the
programs as another user, that user makes the folder in a folder of its own, and ``workdir`` is a
link of root to it. Only outputs are read from it, with the rights of its owner
(`proofmark.common.rights`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar, Self, overload

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import (
    is_regular,
    make_folder,
    names_in,
    paths_in,
    write_atomic,
    write_private,
)
from proofmark.common.rights import User, acting_as, own_by, run_user
from proofmark.site.inventory import Site

_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_LAUNCH = re.compile(r"^launch\(\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)


class SealRule(Enum):
    """Whether the seal of a run has a file, and how the file may change after it was sealed."""

    UNSEALED = 0
    """It is no evidence: a product, a file of the process that works on the run."""
    FIXED = 1
    """Not at all: an input, an output, a probe."""
    GROWS = 2
    """Only by lines at its end: a history, each file ``*.jsonl``."""
    DECIDED = 3
    """Only by further decisions."""
    REPLACED = 4
    """In any way: a script, a message, the state of a job that waits."""


@dataclass(frozen=True)
class RunFile:
    """One file or folder: its path in its folder, and the rule of what is directly in a run.

    It is an attribute of a class of files: ``RunFiles(folder).plan`` is its path below `folder`,
    ``RunFiles.plan`` is this object.
    """

    path: str
    rule: SealRule | None = None
    """None: the rule follows from the place of the file (`proofmark.runs.evidence.rule_of`)."""

    @overload
    def __get__(self, files: None, owner: type) -> Self: ...
    @overload
    def __get__(self, files: Files, owner: type) -> Path: ...
    def __get__(self, files: Files | None, owner: type) -> Self | Path:
        return self if files is None else files.folder / self.path


@dataclass(frozen=True)
class Files:
    """The files of a folder. Each class below is a table of them."""

    folder: Path

    @classmethod
    def table(cls) -> dict[str, RunFile]:
        """Return the files by the names of their attributes."""
        return {name: each for name, each in vars(cls).items() if isinstance(each, RunFile)}


class StepFiles(Files):
    """``steps/<id>/``, or the folder of one node or one execution in it."""

    script = RunFile("run.sh")
    """The script that runs the step."""
    node_script = RunFile("node.sh")
    """The script of a node, if each node measures the step by itself."""
    instances = RunFile("instances")
    """The list of the folders of nodes, if each node measures the step by itself."""
    exit_code = RunFile("rc")
    """The exit code of an execution. A per-node step has it after its end."""
    started = RunFile("started")
    """Host, process, start and kind of the execution. The step writes it at its start."""
    when = RunFile("when.json")
    """Start, end, host and ticks of the CPUs, as JSON."""
    stdout = RunFile("stdout")
    """The standard output of the program."""
    stderr = RunFile("stderr")
    """The standard error of the program."""
    binding = RunFile("binding.json")
    """The CPUs and hosts that ranks and threads reported, as JSON."""
    noise = RunFile("noise.json")
    """The samples of the nodes while the program ran, as JSON."""
    samples = RunFile("noise")
    """The newest samples of each node of a running execution, in ``<node>/sums``."""
    disturbed = RunFile("disturbed")
    """The disturbed nodes of an execution; missing if there are none.

    The job writes it into an execution after its end, to plan repeats.
    """
    telemetry = RunFile("telemetry.jsonl")
    """The temperatures, power, clock and throttling of the nodes while the program ran."""
    load = RunFile("load")
    """The folder of the program that runs beside the step: its script and its executions."""
    load_report = RunFile("load.json")
    """Whether the load ran during the whole program, and the CPUs of its ranks, as JSON."""
    copies = RunFile("copies.json")
    """The start and the end of each copy of the program, as JSON."""
    scratch_files = RunFile("scratch.json")
    """What the program wrote into the scratch folder, as JSON."""
    layout = RunFile("layout.txt")
    """What the tool of the file system printed about the layout of the files."""
    digests = RunFile("outputs.sha256")
    """The SHA-256 of each output of an execution at its end, in the format of ``sha256sum``."""
    files_report = RunFile("files.json")
    """Whether the node could write into the scratch folder after a failure, as JSON."""

    @property
    def program_script(self) -> Path:
        """The script that runs the program: of a node, if each node measures by itself."""
        return self.node_script if is_regular(self.node_script) else self.script

    def submitted(self) -> list[Path]:
        """Return the files of an execution that a submission to the HPL list has."""
        outputs = [self.stdout, self.stderr, self.exit_code, self.when]
        return [*outputs, self.folder / "HPL.dat", self.binding]


class QueueFiles(Files):
    """``queue/<job>/``: what the controller keeps of a job."""

    ticket = RunFile("ticket.json")
    """The submission of the job. It is removed at the end of the job."""
    history = RunFile("history.jsonl")
    """One line for each change of the state of the job."""


class JobFiles(Files):
    """``workdir/jobs/<id>/``."""

    REWRITTEN: ClassVar = frozenset({"exit", "fail-fast", "lost", "repeats"})
    """The notes of an attempt that its job script changes while it runs."""

    script = RunFile("job.sh")
    """The job script."""
    hosts = RunFile("hosts")
    """The nodes of the job, if its scheduler reads them from a file."""
    messages = RunFile("messages")
    """The output of the job script."""
    needs = RunFile("needs")
    """The processor features that the programs of the job need."""

    def repeats(self) -> list[Path]:
        """Return the repetitions of disturbed steps by each attempt, in order; some are missing."""
        return [attempt / "repeats" for attempt in self.attempts()]

    def attempts(self) -> list[Path]:
        """Return the folders of the attempts, in order."""
        found = numbered(names_in(self.folder), "attempt-")
        return [self.folder / name for _, name in sorted(found.items())]


class WorkFiles(Files):
    """``runs/<id>/workdir/``, where jobs run.

    ``scripts/`` beside it has the scripts by the same names. The work folder belongs to the user
    who starts the programs. If that is another user than the one of the run, it is a link
    (`proofmark.runs.run_files`).
    """

    steps = RunFile("steps")
    """The folder of all steps."""
    jobs = RunFile("jobs")
    """The folder of all jobs."""
    network_script = RunFile("network.sh")
    """The script that prints the counters of the networks of a node."""
    probe_script = RunFile("probe.sh")
    """A copy of ``probe.sh``, for the nodes."""
    processor_check = RunFile("fit.awk")
    """The program that compares processors with the needs of programs."""

    def step(self, name: str) -> StepFiles:
        """Return the files of a step, or of one of its instances (``<step>/<node>``)."""
        return StepFiles(self.steps / name)

    def job(self, name: str) -> JobFiles:
        """Return the files of a job."""
        return JobFiles(self.jobs / name)

    def files_reports(self, step: str, attempt: str = "") -> list[list[Path]]:
        """Return the reports of nodes that tried the scratch folder after a failure of `step`.

        There is one list for each attempt of a job, or only for `attempt`, ``<job>/attempt-<n>``.
        """
        if attempt:
            folders = [self.jobs / attempt]
        else:
            folders = []
            for job in names_in(self.jobs):
                folders += self.job(job).attempts()
        places = sorted(folder / "files" / step for folder in folders)
        found = ([path for path in paths_in(place) if not path.suffix] for place in places)
        return [paths for paths in found if paths]


class RunFiles(Files):
    """``runs/<id>/``, which belongs to the user of the command.

    The rule of a folder is that of all files in it. In ``workdir`` an execution and an attempt are
    fixed, and all else may be replaced.
    """

    identity = RunFile("run.json", SealRule.REPLACED)
    """The id of the run, the number of the format of its folder, the digests of its inputs."""
    plan = RunFile("plan.json", SealRule.FIXED)
    """The plan."""
    entered = RunFile("entered", SealRule.REPLACED)
    """The modes that the run may enter, one per line."""
    not_needed = RunFile("not-needed.json", SealRule.REPLACED)
    """The steps that repeat the command of another step, each with the reason."""
    asked = RunFile("asked.json", SealRule.REPLACED)
    """The extra variables with which the run was planned."""
    stage_faults = RunFile("stage-faults", SealRule.REPLACED)
    """What failed in the stages that start no job, one file per stage."""
    decisions = RunFile("decisions.json", SealRule.DECIDED)
    """The steps that the controller decided not to run, each with the reason."""
    lock = RunFile("lock", SealRule.UNSEALED)
    """The lock of the process that works on the run."""
    node_states = RunFile("node-states.jsonl", SealRule.GROWS)
    """The nodes that were down for the scheduler, at each look of the controller."""
    growth = RunFile("growth", SealRule.FIXED)
    """What joined a run that grows, after its start."""
    work_folder = RunFile("workdir")
    """The outputs of the jobs: the folder in which they run, or a link to it."""
    scripts_folder = RunFile("scripts", SealRule.REPLACED)
    """The scripts and inputs of steps and jobs, as they were copied into the work folder."""
    queue = RunFile("queue")
    """What the controller keeps of jobs, one folder per job."""

    inputs = RunFile("inputs", SealRule.FIXED)
    """The inputs of the plan, as they were at the start."""
    inventory = RunFile("inputs/inventory", SealRule.FIXED)
    """Copies of files of the inventory: topologies."""
    benchmarks = RunFile("inputs/benchmarks", SealRule.FIXED)
    """Copies of all cases and suites."""
    site = RunFile("inputs/site.json", SealRule.FIXED)
    """The site of the inventory."""
    baseline = RunFile("inputs/baseline", SealRule.FIXED)
    """The copy of the baseline with which the run is compared; missing if there is none."""
    facts_probe = RunFile("inputs/facts.probe", SealRule.FIXED)
    """The output of ``probe.sh facts`` on the machine that planned the run."""

    software = RunFile("software.json", SealRule.FIXED)
    """The programs of the run: libraries, compilers, checksums."""
    installed = RunFile("installed.json", SealRule.REPLACED)
    """The result of an installation."""
    program_probes = RunFile("software", SealRule.REPLACED)
    """The outputs of ``probe-program.sh``, one file per package."""
    mounted = RunFile("mounted.json", SealRule.REPLACED)
    """The nodes on which the run mounts scratch. It is written before the first mount."""
    scratch_probe = RunFile("scratch.probe", SealRule.UNSEALED)
    """The reports of the nodes about the scratch folder; only the stage scratch reads them."""
    journal = RunFile("journal")
    """The journals of mode changes, one per node."""
    bmc_telemetry = RunFile("telemetry/bmc.jsonl", SealRule.GROWS)
    """Power and temperature of the nodes by their BMCs."""
    nodes = RunFile("nodes", SealRule.UNSEALED)
    """The facts of the nodes, one file per node. The seal takes them from the jobs."""

    evidence = RunFile("evidence", SealRule.UNSEALED)
    """The sealed archives, in an acceptance folder."""
    readings = RunFile("evidence/readings.zip", SealRule.UNSEALED)
    """The records of the archives in columns, beside them: a cache."""
    signed = RunFile("signed", SealRule.UNSEALED)
    """The signed products, in an acceptance folder."""
    records = RunFile("records.parquet", SealRule.UNSEALED)
    """All records as a table."""
    verdict = RunFile("verdict.json", SealRule.UNSEALED)
    """The verdict."""
    vendor_list = RunFile("rma.csv", SealRule.UNSEALED)
    """The bad nodes for the vendor."""
    trace = RunFile("trace.log", SealRule.UNSEALED)
    """The traces of commands with ``-v``."""
    report = RunFile("report.html", SealRule.UNSEALED)
    """The report."""
    made = RunFile("report.json", SealRule.UNSEALED)
    """How the products were written: time, language, versions."""
    plots = RunFile("figures", SealRule.UNSEALED)
    """The plots and their data."""

    @property
    def work(self) -> WorkFiles:
        """The files of the work folder."""
        return WorkFiles(self.work_folder)

    @property
    def scripts(self) -> WorkFiles:
        """The scripts, with the names that they have in the work folder."""
        return WorkFiles(self.scripts_folder)

    def step(self, name: str) -> StepFiles:
        """Return the outputs of a step, or of one of its instances (``<step>/<node>``)."""
        return self.work.step(name)

    def job(self, name: str) -> JobFiles:
        """Return the outputs of a job."""
        return self.work.job(name)

    def queued(self, job: str) -> QueueFiles:
        """Return what the controller keeps of a job."""
        return QueueFiles(self.queue / job)

    def link(self, path: Path) -> str:
        """Return the path of a file relative to the run: the target of a link in the report."""
        return path.relative_to(self.folder).as_posix()


class AcceptanceFiles(Files):
    """``runs/acceptance-<site>/``."""

    page = RunFile("acceptance.html")
    """The page of the acceptance of a site."""
    data = RunFile("acceptance.json")
    """The data of the page."""


def run_folders(folders: list[Path]) -> list[Path]:
    """Return the folders of runs in `folders`, sorted by name; a folder may be a run itself.

    Symbolic links such as ``runs/latest-local`` are left out: their targets are in the list.
    """
    found: dict[Path, None] = {}
    for folder in folders:
        inside = [folder] if is_run(folder) else sorted(folder.iterdir())
        found |= {each.resolve(): None for each in inside if is_run(each) or each == folder}
    return sorted(found, key=lambda each: each.name)


def is_run(folder: Path) -> bool:
    """Return whether `folder` is a run, finished or not, and no link to one."""
    files = RunFiles(folder)
    inner = (files.plan, files.identity, files.verdict)
    return folder.is_dir() and not folder.is_symlink() and any(each.is_file() for each in inner)


TOP_RULES = {each.path.partition("/")[0]: each.rule for each in RunFiles.table().values()}
"""The rule of each file and folder directly in the folder of a run or an acceptance."""


def numbered(names: Iterable[str], prefix: str) -> dict[int, str]:
    """Return the names that are `prefix` and a number, by this number."""
    return {
        int(name.removeprefix(prefix)): name
        for name in names
        if name.startswith(prefix) and _NUMBER.fullmatch(name, len(prefix))
    }


def launch_command(script: str) -> str:
    """Return the command that starts the program, from the text of ``run.sh``; may be empty."""
    found = _LAUNCH.search(script)
    return found[1].rstrip() if found else ""


PRIVATE = frozenset({"run.sh", "node.sh"})
"""The scripts that only their owner reads: they can have secrets."""
FOLDER = "proofmark"
"""The folder of all work folders in the home of the run user."""


def work_files(run: Path) -> WorkFiles:
    """Return the files of the work folder of the run in `run`, by the path that jobs see."""
    place = RunFiles(run).work_folder
    return WorkFiles(place.readlink() if place.is_symlink() else place.resolve())


def planned_work(run: Path, site: Site) -> Path:
    """Return where the work folder of a run in `run` would be."""
    named = site.partition.run_user or ""
    try:
        user = run_user(named)
    except BadInput:  # the run will be refused
        return Path(site.partition.work or f"~{named}/{FOLDER}") / run.name
    if user.is_this:
        return RunFiles(run).work_folder
    with acting_as(user):
        return _base(user, site)[0] / run.name


def make_work_folder(run: Path, site: Site, *, with_scratch: bool = False) -> User:
    """Make the work folder of the run in the folder `run`, unless it has one; return its owner.

    If it is to be in the scratch directory, it is made only `with_scratch`: after that is mounted.

    Raises:
        BadInput: its owner cannot make it.
    """
    user, place = run_user(site.partition.run_user or ""), RunFiles(run).work_folder
    if place.is_symlink() or place.exists():
        return user
    if user.is_this:
        place.mkdir()
        return user
    with acting_as(user):
        base, in_scratch = _base(user, site)
        if in_scratch and not with_scratch:
            return user
        target = base / run.name
        try:
            base.mkdir(parents=True, exist_ok=True)
            target.mkdir()
        except OSError as error:
            found = f"{target}: {error.strerror}, for the user {user.name}"
            accepted = f"a folder that {user.name} can make, and that all nodes see"
            raise bad_input("partition.work", "", found, accepted) from None
    place.symlink_to(target)
    return user


def _base(user: User, site: Site) -> tuple[Path, bool]:
    """Return the folder of the work folders, and whether it is in the scratch directory.

    It is that of the inventory, else in the home, else in the scratch directory.
    """
    partition = site.partition
    if partition.work:
        return Path(partition.work), False
    home = Path(user.home)
    if home.is_dir() and os.access(home, os.W_OK | os.X_OK, effective_ids=True):
        return home / FOLDER, False
    return Path(partition.scratch.path) / FOLDER, True


def use_work_folder(run: Path, owner: str) -> User | None:
    """Read and write the work folder of `run` with the rights of `owner`; None: it is not ours.

    A run that others started can be shown: then the owner is no user of this machine.
    """
    place = RunFiles(run).work_folder
    if not place.is_symlink():
        return None
    try:
        user = run_user(owner)
    except BadInput:
        return None  # this process has no more rights than its own
    own_by(place, user)
    own_by(place.readlink(), user)
    return user


def write_scripts_of(run: Path, texts: Mapping[str, str]) -> None:
    """Write scripts and inputs into the work folder of a run, and into the run itself.

    The run has only scripts that are in its work folder, also after a kill.

    Args:
        texts: the content of each file, by its path in the work folder.

    Raises:
        BadInput: a file cannot be written.
    """
    for folder in (work_files(run).folder, RunFiles(run).scripts_folder):
        for name, text in texts.items():
            path = folder / name
            make_folder(path.parent)
            (write_private if path.name in PRIVATE else write_atomic)(path, text)
