"""Bad machines: what is wrong with each of them, as changes of a healthy run, and the exit code.

A machine of 8 nodes measures one rate, five times on each node. All that a run of a real machine
leaves is written: outputs, probes, digests. The run is then judged from its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.bars.judged import report
from tests.fixtures.finished import own_number, seal
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item

from proofmark.runs.run import Run

HOSTS = tuple(f"n{number:02}" for number in range(8))
REPEATS = 5
LEVEL = 100_000.0
"""The rate of a healthy node, MB/s. Its memory has a peak of 213 GB/s."""
CASE: dict[str, Any] = {
    "title": "Memory",
    "metrics": {
        "rate": {
            "unit": "MB/s",
            "better": "higher",
            "bound": "{memory}",
            "what": "how fast",
        }
    },
    "references": [
        {
            "metric": "rate",
            "kind": "floor",
            "source": "half of the memory channels",
            "rule": "memory_bandwidth",
            "at_least": 0.3,
        }
    ],
}
CONTRACT = {
    "case": "fake",
    "metric": "rate",
    "value": 95,
    "unit": "GB/s",
    "at_least": 1,
    "source": "tender, annex 3",
}
DIMMS = ("A1", "B1", "C1", "D1", "E1", "F1")
ALL = "all"
"""The key of a change on each node."""


@dataclass(frozen=True)
class BadMachine:
    """A machine with one fault.

    Attributes:
        name: the fault.
        code: the exit code; 3 if the run or its signature is refused; 0 only if `shown` names the
            fault.
        shown: texts that the last lines of the acceptance must have. Refusals must have them too.
        level: the rate of all nodes ÷ that of healthy ones.
        nodes: the rate of single nodes ÷ that of healthy ones.
        noise: of a repeat, as a part of its value.
        contract: whether a contract has a limit.
        baseline: whether the site has accepted a healthy run.
        rates: the values of single nodes, in place of those above.
        changes: replacements in both probes of a node, or of all.
        after: further replacements in the probe after the job.
        executions: further arguments of `write_execution`, by node.
        outputs: the outputs of single nodes in place of rates.
        rack: nodes in a rack.
        partition: further facts of the partition.
        edit: changes the finished folder.
        picked: whether the repeats were not planned: one step was run again.
    """

    name: str
    code: int
    shown: tuple[str, ...]
    level: float = 1.0
    nodes: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.005
    contract: bool = True
    baseline: bool = False
    rates: Mapping[str, Sequence[float]] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    after: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    executions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    outputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    partition: Mapping[str, Any] = field(default_factory=dict)
    edit: Callable[[Run], None] | None = None
    picked: bool = False

    def run(self, folder: Path, baseline: Path | None, run_id: str = "planted") -> Run:
        """Write the finished run of the machine."""
        measured = {host: self.rates.get(host, values) for host, values in self._rates().items()}
        outputs = {
            host: [text_of(value) for value in values] for host, values in measured.items()
        } | dict(self.outputs)
        run = fleet_run(
            folder,
            measured,
            changes=_by_host(self.changes),
            after=_by_host(self.after),
            executions=_by_host(self.executions),
            outputs=outputs,
            case=CASE,
            items=[item(**CONTRACT)] if self.contract else [],
            partition=self.partition,
            baseline=baseline if self.baseline else None,
            run_id=run_id,
            more=0 if self.picked else REPEATS - 1,
        )
        if self.edit:
            self.edit(run)
        return run

    def _rates(self) -> dict[str, list[float]]:
        spread = np.random.default_rng(0).normal(0, 0.005, len(HOSTS))
        noise = np.random.default_rng(len(self.name)).normal(0, self.noise, (len(HOSTS), REPEATS))
        levels = LEVEL * self.level * np.exp(spread[:, None] + noise)
        return {
            host: (self.nodes.get(host, 1.0) * levels[number]).round(3).tolist()
            for number, host in enumerate(HOSTS)
        }


def text_of(value: float) -> str:
    """Return the output of the program."""
    return f"size 1\nrate {value}\nEND\n"


def _by_host(given: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the changes of each host."""
    return {host: {**given.get(ALL, {}), **given.get(host, {})} for host in HOSTS}


def without_dimms(names: Sequence[str]) -> dict[str, str]:
    """Return the changes of a probe that lacks memory modules in both sockets."""
    places = [f"P{socket}-DIMM{name}" for socket in (1, 2) for name in names]
    size = "Size: 16384 MB\n| \tLocator: "
    return {
        f"{size}{each}\n": f"Size: No Module Installed\n| \tLocator: {each}\n" for each in places
    }


def outputs_of(run: Run, host: str) -> list[Path]:
    """Return the folders of the executions of a host."""
    return sorted(run.folder.glob(f"workdir/steps/*/{host}/execution-*"))


def edited(run: Run) -> None:
    """Edit the slow outputs of n03 after the run."""
    for folder in outputs_of(run, "n03"):
        (folder / "stdout").write_text(text_of(100_100.5))


def without_digests(run: Run) -> None:
    """Edit an output of n03, and remove its digests."""
    edited(run)
    for folder in outputs_of(run, "n03"):
        (folder / "outputs.sha256").unlink()


def one_edited(run: Run) -> None:
    """Edit one of the outputs of n03."""
    (outputs_of(run, "n03")[0] / "stdout").write_text(text_of(100_100.5))


def edited_limit(run: Run) -> None:
    """Lower the limit of the contract in the inputs of the run."""
    path = run.folder / "inputs" / "site.json"
    path.write_text(path.read_text().replace("95", "15"))


def without_identity(run: Run) -> None:
    """Lower the limit of the contract, and remove the digests of the inputs."""
    edited_limit(run)
    (run.folder / "run.json").unlink()


def truncated(run: Run) -> None:
    """Cut an output of n03 before its last line, as a full disk does."""
    folder = outputs_of(run, "n03")[0]
    text = (folder / "stdout").read_text()
    (folder / "stdout").write_text(text.removesuffix("END\n"))
    seal(folder)


def without_results(run: Run) -> None:
    """Remove what n03 measured: its job was killed."""
    for folder in outputs_of(run, "n03"):
        for path in sorted(folder.iterdir()):
            path.unlink()
        folder.rmdir()


def timed_out(run: Run) -> None:
    """Let the watchdog end the executions of n03."""
    for folder in outputs_of(run, "n03"):
        path = folder / "when.json"
        path.write_text(path.read_text().replace('"timed_out": false', '"timed_out": true'))
        (folder / "rc").write_text("124\n")
        seal(folder)


def _coded(*codes: int) -> Callable[[Run], None]:
    """Return how executions of n03 end with exit codes, the first ones first."""

    def edit(run: Run) -> None:
        for folder, code in zip(outputs_of(run, "n03"), codes, strict=False):
            (folder / "rc").write_text(f"{code}\n")
            if code:
                (folder / "stdout").write_text("size 1\n")
            seal(folder)

    return edit


def _answered(*texts: str) -> Callable[[Run], None]:
    """Return how executions of n03 print other outputs, the first ones first."""

    def edit(run: Run) -> None:
        for folder, text in zip(outputs_of(run, "n03"), texts, strict=False):
            (folder / "stdout").write_text(text)
            seal(folder)

    return edit


def _bound_elsewhere(run: Run) -> None:
    """Let the ranks of n03 have run on another host."""
    for folder in outputs_of(run, "n03"):
        path = folder / "when.json"
        path.write_text(path.read_text().replace('"host": "n03"', '"host": "n99"'))
        seal(folder)


PRODUCTS = ("report.html", "rma.csv", "records.parquet")


def forged(run: Run) -> None:
    """Forge products of the run after the verdict."""
    report(run)
    for name in PRODUCTS:
        path = run.folder / name
        content = path.read_bytes()
        changed = content.replace(b"FAIL", b"PASS").replace(b"failure", b"skipped")
        path.write_bytes(changed if changed != content else content + b" ")


def _slow(factor: float, **how: Any) -> BadMachine:
    against = "the baseline" if how.get("baseline") else "the contract"
    return BadMachine(
        f"all nodes at {factor:g}, {against}", 1, ("FAIL", "rate"), level=factor, **how
    )


def _slow_node(factor: float, **how: Any) -> BadMachine:
    against = "the baseline" if how.get("baseline") else "peers" if how else "the contract"
    return BadMachine(
        f"n03 at {factor:g}, {against}", 1, ("FAIL", "n03"), nodes={"n03": factor}, **how
    )


ALONE: dict[str, Any] = {"contract": False, "baseline": True}
PEERS: dict[str, Any] = {"contract": False}
HALF = without_dimms(DIMMS[:3])
CRASH = ("n03",)
NAN = "size 1\nrate nan\nEND\n"
EQUAL = (100_100.5, 100_300.25, 99_800.75, 100_000.125, 99_999.5)
BAD: tuple[BadMachine, ...] = (
    # uniformly slow
    *(_slow(factor) for factor in (0.9, 0.8, 0.5, 0.2, 0.112)),
    *(_slow(factor, **ALONE) for factor in (0.95, 0.9, 0.8, 0.5, 0.2)),
    BadMachine("all nodes at a tenth, the floor", 1, ("FAIL",), level=0.1, contract=False),
    BadMachine("all nodes at a quarter, the floor", 1, ("FAIL",), level=0.25, contract=False),
    # slow nodes
    *(_slow_node(factor) for factor in (0.93, 0.8, 0.5, 0.112)),
    *(_slow_node(factor, **PEERS) for factor in (0.7, 0.5, 0.1)),
    *(_slow_node(factor, **ALONE) for factor in (0.9, 0.5)),
    BadMachine("two nodes at half", 1, ("n03", "n05"), nodes={"n03": 0.5, "n05": 0.5}),
    BadMachine(
        "half of the nodes at 0.8",
        1,
        ("FAIL",),
        nodes=dict.fromkeys(HOSTS[:4], 0.8),
    ),
    BadMachine(
        "half of the nodes at 0.8, the baseline",
        1,
        ("FAIL",),
        nodes=dict.fromkeys(HOSTS[:4], 0.8),
        **ALONE,
    ),
    # noise
    BadMachine("at 0.2 with 40 % noise, the baseline", 1, ("FAIL",), level=0.2, noise=0.4, **ALONE),
    BadMachine("25 % noise", 1, ("FAIL",), noise=0.25),
    BadMachine(
        "n03 with 25 % noise above its limit",
        1,
        ("n03", "repeats miss the limit"),
        rates={"n03": (80_000, 100_100, 135_000, 101_000, 82_000)},
    ),
    BadMachine(
        "n03 with 60 % noise, the baseline",
        1,
        ("n03", "repeats miss the limit"),
        rates={"n03": (40_000, 100_100, 180_000, 101_000, 50_000)},
        **ALONE,
    ),
    BadMachine(
        "n03 steady in one of five repeats",
        1,
        ("n03",),
        rates={"n03": (100_100, 31_000, 32_000, 30_500, 33_000)},
    ),
    BadMachine(
        "n03 three times slower in two of five repeats",
        1,
        ("n03", "repeats miss the limit"),
        rates={"n03": (100_100, 100_300, 99_800, 33_000, 34_000)},
    ),
    BadMachine(
        "n03 three times slower in two of five repeats, the baseline",
        1,
        ("n03", "repeats miss the limit"),
        rates={"n03": (100_100, 100_300, 99_800, 33_000, 34_000)},
        **ALONE,
    ),
    BadMachine(
        "repeats picked until the median passes",
        1,
        ("n03", "planned"),
        picked=True,
        rates={"n03": (10_000, 10_100, 9_900, 100_000, 100_100, 100_200, 100_300)},
    ),
    # hardware
    BadMachine(
        "half of the memory modules of n03, the baseline",
        1,
        ("n03", "DIMMs"),
        changes={"n03": HALF},
        **ALONE,
    ),
    BadMachine(
        "half of the memory modules of all nodes, the baseline",
        1,
        ("DIMMs",),
        changes={ALL: HALF},
        **ALONE,
    ),
    BadMachine("half of the memory modules of n03, peers", 1, ("n03",), changes={"n03": HALF}),
    BadMachine(
        "half of the memory modules of n03 at half",
        1,
        ("n03",),
        nodes={"n03": 0.5},
        changes={"n03": HALF},
        contract=False,
    ),
    BadMachine(
        "one memory module of n03, the baseline",
        1,
        ("n03", "DIMMs"),
        changes={"n03": without_dimms(("F1",))},
        **ALONE,
    ),
    BadMachine(
        "the rail of n03 is down, the baseline",
        1,
        ("n03",),
        changes={"n03": {"mlx5_0/1 state: 4: ACTIVE": "mlx5_0/1 state: 1: DOWN"}},
        **ALONE,
    ),
    BadMachine(
        "the rail of n03 is down, peers",
        1,
        ("n03",),
        changes={"n03": {"mlx5_0/1 state: 4: ACTIVE": "mlx5_0/1 state: 1: DOWN"}},
    ),
    BadMachine(
        "the port of n03 is trained as SDR, peers",
        1,
        ("n03",),
        changes={"n03": {"rate: 100 Gb/sec (4X EDR)": "rate: 10 Gb/sec (4X SDR)"}},
    ),
    # crashes and wrong answers
    BadMachine("one crash of five on n03", 1, CRASH, edit=_coded(139, 0, 0, 0, 0), picked=True),
    BadMachine(
        "four crashes of five on n03", 1, CRASH, edit=_coded(139, 139, 139, 139, 0), picked=True
    ),
    BadMachine("five crashes of five on n03", 2, CRASH, edit=_coded(139, 139, 139, 139, 139)),
    BadMachine("an exit code of n03", 1, CRASH, edit=_coded(74, 0), picked=True),
    BadMachine("a timeout of n03", 2, CRASH, edit=timed_out),
    BadMachine(
        "a wrong answer of n03", 1, CRASH, edit=_answered("size 1\nFAKE broken\n"), picked=True
    ),
    BadMachine(
        "wrong answers of n03",
        1,
        CRASH,
        edit=_answered(*["size 1\nrate nan\nEND\n"] * 4),
        picked=True,
    ),
    BadMachine(
        "only wrong answers of n03", 2, CRASH, edit=_answered(*["size 1\nrate -1\nEND\n"] * 5)
    ),
    BadMachine("a truncated output of n03", 1, CRASH, edit=truncated, picked=True),
    BadMachine("the output of another point", 2, (), edit=_answered(*["rate 100000\nEND\n"] * 5)),
    BadMachine("nothing measured on n03", 2, CRASH, edit=without_results),
    BadMachine("measured on another host", 2, ("n03",), edit=_bound_elsewhere),
    # too good
    BadMachine("above the physical bound", 2, ("n03",), nodes={"n03": 9.0}),
    BadMachine("far above all peers and the memory", 1, ("n03",), nodes={"n03": 3.0}),
    # duplicates
    BadMachine(
        "equal outputs on two nodes",
        1,
        ("n03",),
        rates=dict.fromkeys(
            ("n03", "n04"), (100_100.5, 100_300.25, 99_800.75, 100_000.125, 99_999.5)
        ),
    ),
    BadMachine(
        "one boot id on two nodes",
        1,
        ("n03",),
        changes={"n03": {own_number("n03", "4"): own_number("n04", "4")}},
    ),
    BadMachine(
        # The nodes of a chassis share its number, but not those of their boards.
        "one number of a board on two nodes",
        1,
        ("n03",),
        changes={"n03": {own_number("n03", "B"): own_number("n04", "B")}},
    ),
    # errors that the hardware reports
    BadMachine(
        "an uncorrected memory error of n03",
        2,
        ("n03",),
        after={"n03": {"edac/mc1/ue_count: 0": "edac/mc1/ue_count: 1"}},
    ),
    BadMachine(
        "900,000 corrected memory errors of n03",
        1,
        ("n03",),
        after={"n03": {"edac/mc1/ce_count: 0": "edac/mc1/ce_count: 900000"}},
    ),
    BadMachine(
        "n03 throttled",
        2,
        ("n03",),
        after={"n03": {"core_throttle_count: 0": "core_throttle_count: 90000"}},
    ),
    BadMachine(
        "link errors of n03",
        1,
        ("n03",),
        after={"n03": {"counters/symbol_error: 0": "counters/symbol_error: 5000000"}},
    ),
    BadMachine(
        "n03 restarted",
        2,
        ("n03",),
        after={"n03": {own_number("n03", "4"): "4ffffffffff"}},
    ),
    # edited runs
    BadMachine("edited outputs", 2, ("n03",), nodes={"n03": 0.5}, edit=edited),
    BadMachine(
        "edited outputs without digests", 2, ("n03",), nodes={"n03": 0.5}, edit=without_digests
    ),
    BadMachine("one edited output of five", 1, ("n03",), edit=one_edited, picked=True),
    BadMachine("an edited limit", 3, ("site.json",), level=0.5, edit=edited_limit),
    BadMachine("an edited limit, no run.json", 3, ("run.json",), level=0.5, edit=without_identity),
    BadMachine("forged products", 3, PRODUCTS, level=0.5, edit=forged),
)
