"""The names of the files of a run. No other room has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proofmark.common.files import names_in, paths_in
from proofmark.runs.job_files import JobFiles
from proofmark.runs.step_files import StepFiles

NOT_SEALED = frozenset(
    {
        *("claims.json", "figures", "junit.xml", "records.parquet", "report.html", "report.json"),
        *("rma.csv", "summary.html", "summary.pdf", "verdict.json", "waivers.json"),
        *("evidence", "lock", "nodes", "scratch.probe", "signed", "trace.log"),
    }
)
"""What is at the top of the folder of a run or an acceptance beside the evidence: what is made from
it, the files of the process that works on the run, and what only the stage scratch reads."""


@dataclass(frozen=True)
class RunFiles:
    """``runs/<id>/``."""

    folder: Path

    @property
    def steps(self) -> Path:
        """The folder of all steps. It exists when a step was started."""
        return self.folder / "steps"

    def step(self, name: str) -> StepFiles:
        """Return the files of a step, or of one of its instances (``<step>/<node>``)."""
        return StepFiles(self.steps / name)

    def job(self, name: str) -> JobFiles:
        """Return the files of a job."""
        return JobFiles(self.folder / "jobs" / name)

    def files_reports(self, step: str, attempt: str = "") -> list[list[Path]]:
        """Return the reports of nodes that tried the scratch folder after a failure of `step`.

        There is one list for each attempt of a job, or only for `attempt`, ``<job>/attempt-<n>``.
        """
        jobs = self.folder / "jobs"
        if attempt:
            folders = [jobs / attempt]
        else:
            folders = [each for job in names_in(jobs) for each in JobFiles(jobs / job).attempts()]
        places = sorted(folder / "files" / step for folder in folders)
        found = ([path for path in paths_in(place) if not path.suffix] for place in places)
        return [paths for paths in found if paths]

    def link(self, path: Path) -> str:
        """Return the path of a file relative to the run: the target of a link in the report."""
        return path.relative_to(self.folder).as_posix()

    def top_names(self) -> frozenset[str]:
        """Return the names of all files and folders of the kit directly in the folder."""
        names = (name for name, each in vars(RunFiles).items() if isinstance(each, property))
        found = (getattr(self, name) for name in names)
        paths = (path for each in found for path in (each if isinstance(each, tuple) else (each,)))
        return frozenset({"jobs", *(self.link(path).partition("/")[0] for path in paths)})

    @property
    def identity(self) -> Path:
        """The id of the run, the number of the format of its folder, the digests of its inputs."""
        return self.folder / "run.json"

    @property
    def plan(self) -> Path:
        """The plan."""
        return self.folder / "plan.json"

    @property
    def entered(self) -> Path:
        """The modes that the run may enter, one per line."""
        return self.folder / "entered"

    @property
    def not_needed(self) -> Path:
        """The steps that repeat the command of another step, each with the reason."""
        return self.folder / "not-needed.json"

    @property
    def asked(self) -> Path:
        """The extra variables with which the run was planned."""
        return self.folder / "asked.json"

    @property
    def stage_faults(self) -> Path:
        """What failed in the stages that start no job, one file per stage."""
        return self.folder / "stage-faults"

    @property
    def decisions(self) -> Path:
        """The steps that the controller decided not to run, each with the reason."""
        return self.folder / "decisions.json"

    @property
    def waivers(self) -> Path:
        """The items of the contract that a party waived for the run."""
        return self.folder / "waivers.json"

    @property
    def lock(self) -> Path:
        """The lock of the process that works on the run."""
        return self.folder / "lock"

    @property
    def inputs(self) -> Path:
        """The inputs of the plan, as they were at the start."""
        return self.folder / "inputs"

    @property
    def node_states(self) -> Path:
        """The nodes of a stability run that were down, at each look of the controller."""
        return self.folder / "node-states.jsonl"

    @property
    def growth(self) -> Path:
        """What joined a rolling run, or a stability run, after its start."""
        return self.folder / "growth"

    @property
    def inventory(self) -> Path:
        """Copies of files of the inventory: topologies."""
        return self.inputs / "inventory"

    @property
    def benchmarks(self) -> Path:
        """Copies of all cases and suites."""
        return self.inputs / "benchmarks"

    @property
    def site(self) -> Path:
        """The site of the inventory."""
        return self.inputs / "site.json"

    @property
    def baseline(self) -> Path:
        """The copy of the baseline with which the run is compared; missing if there is none."""
        return self.inputs / "baseline"

    @property
    def expected(self) -> Path:
        """The copy of the predictions for the figures; missing if there are none."""
        return self.inputs / "expected" / "expected.json"

    @property
    def facts_probe(self) -> Path:
        """The output of ``probe.sh facts`` on the machine that planned the run."""
        return self.inputs / "facts.probe"

    @property
    def adopted(self) -> Path:
        """The sources of the outputs of an imported run, with their digests."""
        return self.inputs / "adopted.json"

    @property
    def software(self) -> Path:
        """The programs of the run: libraries, compilers, checksums."""
        return self.folder / "software.json"

    @property
    def installed(self) -> Path:
        """The result of an installation."""
        return self.folder / "installed.json"

    @property
    def program_probes(self) -> Path:
        """The outputs of ``probe-program.sh``, one file per package."""
        return self.folder / "software"

    @property
    def network_script(self) -> Path:
        """The script that prints the counters of the networks of a node."""
        return self.folder / "network.sh"

    @property
    def probe_script(self) -> Path:
        """A copy of ``probe.sh``, for the nodes."""
        return self.folder / "probe.sh"

    @property
    def processor_check(self) -> Path:
        """The program that compares processors with the needs of programs."""
        return self.folder / "fit.awk"

    @property
    def mounted(self) -> Path:
        """The nodes on which the run mounts scratch. It is written before the first mount."""
        return self.folder / "mounted.json"

    @property
    def scratch_probe(self) -> Path:
        """The reports of the nodes about the scratch folder."""
        return self.folder / "scratch.probe"

    @property
    def journal(self) -> Path:
        """The journals of mode changes, one per node."""
        return self.folder / "journal"

    @property
    def bmc_telemetry(self) -> Path:
        """Power and temperature of the nodes by their BMCs."""
        return self.folder / "telemetry" / "bmc.jsonl"

    @property
    def nodes(self) -> Path:
        """The facts of the nodes, one file per node."""
        return self.folder / "nodes"

    @property
    def records(self) -> Path:
        """All records as a table."""
        return self.folder / "records.parquet"

    @property
    def verdict(self) -> Path:
        """The verdict."""
        return self.folder / "verdict.json"

    @property
    def junit(self) -> Path:
        """The verdict in JUnit's form."""
        return self.folder / "junit.xml"

    @property
    def vendor_list(self) -> Path:
        """The bad nodes for the vendor."""
        return self.folder / "rma.csv"

    @property
    def claims(self) -> Path:
        """The answers of the papers' claims."""
        return self.folder / "claims.json"

    @property
    def trace(self) -> Path:
        """The traces of commands with ``-v``."""
        return self.folder / "trace.log"

    @property
    def report(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    @property
    def made(self) -> Path:
        """How the products were written: time, language, versions."""
        return self.folder / "report.json"

    @property
    def summary(self) -> tuple[Path, Path]:
        """The summary of two pages, as HTML and as PDF."""
        return self.folder / "summary.html", self.folder / "summary.pdf"

    @property
    def plots(self) -> Path:
        """The plots and their data."""
        return self.folder / "figures"
