"""Machines that are on sale: the public value of a healthy node is PASS, a slow node is not."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, log2

import pytest
from tests.fixtures.probes import node_facts
from tests.fixtures.stated import stated_node
from tests.folders import ROOT
from tests.unit.judge.test_references import figures
from tests.unit.judge.test_verdict import record

from proofmark.cases.reference import Reference, Rule
from proofmark.judge.references.derived import Build
from proofmark.judge.references.figure_comparison import Comparison, Figure
from proofmark.judge.references.judgement import Judgement
from proofmark.site.hardware_limits import (
    ProcessorLimits,
    families,
    processor,
    processors,
    typical_shares,
)

SLOW = 0.8
"""The share of its public value that a slow node reaches."""


@dataclass(frozen=True)
class Machine:
    """A node with a public value.

    Attributes:
        processor: as its vendor writes it.
        cores: of the node.
        value: GFlop/s of HPL, GB/s of Triad.
        program: the BLAS of HPL; the stores of Triad.
        dimms: the memory modules of the node.
        mt_per_s: their speed.
        threads: of the run; 0 is one for each core.
        of: where the value is from, if no source has it for this processor and run.
    """

    processor: str
    cores: int
    value: float
    program: str
    dimms: int = 0
    mt_per_s: int = 0
    threads: int = 0
    of: str = ""

    @property
    def rule(self) -> Rule:
        return "typical_triad" if self.dimms else "typical_hpl"

    @property
    def row(self) -> ProcessorLimits:
        row = processor(self.processor)
        assert row is not None, self.processor
        return row


STREAMING, CACHED = "streaming", "through the caches"
MACHINES = (
    Machine("AMD EPYC 7452", 64, 2269, "openblas"),
    Machine("AMD EPYC 7452", 64, 2346, "aocl"),
    Machine("AMD EPYC 7702", 128, 2752, "openblas"),
    Machine("AMD EPYC 7702", 128, 3027, "mkl"),
    Machine("AMD EPYC 7702", 128, 337, STREAMING, 16, 3200, 32),
    Machine("AMD EPYC 7742", 128, 350, STREAMING, 16, 3200, of="Azure HB120rs_v2"),
    Machine("AMD EPYC 7763", 128, 230, CACHED, 16, 3200),
    Machine("AMD EPYC 7763", 128, 307, STREAMING, 16, 3200, of="4/3 of 230"),
    Machine("AMD EPYC 7763", 128, 350, STREAMING, 16, 3200, of="Azure HB120rs_v3"),
    Machine("AMD EPYC 9254", 48, 2000, "openblas"),
    Machine("AMD EPYC 9254", 48, 437, CACHED, 24, 4800),
    Machine("AMD EPYC 9454", 96, 3350, "openblas"),
    Machine("AMD EPYC 9454", 96, 522, CACHED, 24, 4800),
    Machine("AMD EPYC 9654", 192, 7439, "aocl"),
    Machine("AMD EPYC 9654", 192, 719, STREAMING, 24, 4800, 96),
    Machine("AMD EPYC 9654", 192, 719, STREAMING, 24, 4800, of="that of 96 threads"),
    Machine("AMD EPYC 9754", 256, 6200, "openblas"),
    Machine("AMD EPYC 9754", 256, 500, CACHED, 24, 4800),
    Machine("AMD EPYC 9755", 256, 16810, "aocl"),
    Machine("AMD EPYC 9755", 256, 985, STREAMING, 24, 6400, 32),
    Machine("AMD EPYC 9755", 256, 985, STREAMING, 24, 6400, of="that of 32 threads"),
    Machine("Intel Xeon Gold 6130", 32, 172, STREAMING, 12, 2666),
    Machine("Intel Xeon Gold 6148", 40, 2027, "mkl"),
    Machine("Intel Xeon Gold 6248", 40, 1872, "mkl"),
    Machine("Intel Xeon Platinum 8276", 56, 2600, "mkl"),
    Machine("Intel Xeon Gold 6338", 64, 311.5, STREAMING, 16, 3200),
    Machine("Intel Xeon Platinum 8358", 64, 3100, "openblas"),
    Machine("Intel Xeon Platinum 8358", 64, 330, STREAMING, 16, 3200),
    Machine("Intel Xeon Platinum 8368Q", 76, 4500, "mkl"),
    Machine("Intel Xeon Platinum 8480+", 112, 6200, "mkl"),
    Machine("Intel Xeon Platinum 8480+", 112, 486.7, STREAMING, 16, 4800),
    Machine("Intel Xeon Platinum 8468", 96, 486.7, STREAMING, 16, 4800, of="its family"),
    Machine("NVIDIA Grace", 144, 5209, "nvpl"),
)


def judged(machine: Machine, share: float, program: str = "") -> Judgement:
    """Return the judgement of a node that reaches a share of its public value."""
    row, program = machine.row, program or machine.program
    triad = machine.rule == "typical_triad"
    node = node_facts("skl-2x6148", virtual=None).model_copy(
        update={"cpu_model": row.name, "cores": machine.cores}
    )
    memory = {"channels": machine.dimms, "mt_per_s": machine.mt_per_s} if triad else {}
    hertz = 3.1e9 if row.base_hz is None else row.base_hz
    stated = stated_node(clock_hz=hertz, flop_per_cycle=row.flop_per_cycle, memory=memory)
    build = Build(None, program == STREAMING) if triad else Build(program, None)
    of = record(
        unit="GB/s" if triad else "GFlop/s",
        parameters={"threads": machine.threads or machine.cores},
    )
    comparison = Comparison(figures([]), {"n1": node}, node=stated, builds={"fake": build})
    wanted = Reference(metric="rate", kind="expected", source="s", rule=machine.rule)
    return comparison.judge(Figure(of, share * machine.value), wanted)


def run_of(machine: Machine) -> str:
    """Return what the value is for, in words."""
    threads = f", {machine.threads} threads" if machine.threads else ""
    of = f" ({machine.of})" if machine.of else ""
    return f"{'Triad' if machine.dimms else 'HPL'}, {machine.program}{threads}{of}"


def name(machine: Machine) -> str:
    return ", ".join(filter(None, (machine.processor, f"{machine.value:g}", run_of(machine))))


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_the_public_value_is_pass_and_a_slow_node_is_fail(machine: Machine) -> None:
    assert judged(machine, 1.0).outcome == "PASS"
    assert judged(machine, SLOW).outcome == "FAIL"


@pytest.mark.parametrize("share", [1.0, SLOW])
@pytest.mark.parametrize(
    ("machine", "program", "code"),
    [
        (Machine("Intel Xeon Platinum 8480+", 112, 6200, "mkl"), "openblas", "condition-blas"),
        (Machine("Intel Xeon Gold 6148", 40, 2027, "mkl"), "openblas", "condition-blas"),
        (Machine("AMD EPYC 9654", 192, 7439, "aocl"), "mkl", "condition-blas"),
        (
            Machine("AMD EPYC 9554", 128, 719, STREAMING, 24, 4800),
            CACHED,
            "condition-stores",
        ),
    ],
)
def test_a_program_that_is_not_that_of_the_source_stays_unjudged(
    machine: Machine, program: str, code: str, share: float
) -> None:
    found = judged(machine, share, program)
    assert found.outcome == "UNJUDGED"
    assert code in found.reason.codes


def test_the_limit_of_a_gold_6148_is_near_its_value() -> None:
    """HPL of a system, 1,453 GFlop/s, is no floor for a node that should reach 2,027."""
    node = Machine("Intel Xeon Gold 6148", 40, 2027, "mkl")
    assert judged(node, 1800 / 2027).outcome == "FAIL"
    assert judged(node, 1830 / 2027).outcome == "PASS"


class TestFamilies:
    def test_the_line_of_openblas_is_as_near_to_each_public_value_as_stated(self) -> None:
        line = families()[0]
        points = [
            (row.cores, each.ratio, line.typical_for(row).ratio)
            for name in ("7452", "7702", "9254", "9454", "9754")
            for row in [Machine(f"AMD EPYC {name}", 1, 1, "").row]
            for each in row.hpl
            if each.conditions.blas == ("openblas",) and row.cores
        ]
        errors = [abs(ratio - of_line) for _, ratio, of_line in points]
        assert len(points) == 5
        assert max(errors) == pytest.approx(0.081, abs=0.002)
        assert max(errors) < line.typical.tolerance
        slope = self._slope([(log2(cores), ratio) for cores, ratio, _ in points])
        assert line.per_doubling == pytest.approx(slope, abs=0.002)

    @staticmethod
    def _slope(points: list[tuple[float, float]]) -> float:
        x_mean = fsum(x for x, _ in points) / len(points)
        y_mean = fsum(y for _, y in points) / len(points)
        over = fsum((x - x_mean) * (y - y_mean) for x, y in points)
        squares = fsum((x - x_mean) * (x - x_mean) for x, _ in points)
        return over / squares

    def test_each_public_triad_of_a_family_meets_it(self) -> None:
        """Without streaming stores a Triad has 3/4 of the rate: four transfers for three."""
        for row in processors():
            for own in row.triad:
                ratio = own.ratio * (4 / 3 if own.conditions.streaming_stores is False else 1)
                for family in typical_shares(row, "triad")[len(row.triad) :]:
                    assert abs(ratio - family.ratio) <= family.tolerance, row.name

    def test_a_slow_node_is_below_each_family_that_a_good_one_meets(self) -> None:
        for family in families():
            lowest = family.typical.ratio - family.typical.tolerance
            assert SLOW * family.typical.ratio < lowest

    def test_few_dies_and_mrdimms_are_of_no_family(self) -> None:
        for model in ("AMD EPYC 9254", "AMD EPYC 7302", "Intel Xeon 6980P"):
            row = Machine(model, 1, 1, "").row
            assert typical_shares(row, "triad")[len(row.triad) :] == ()


def table() -> list[str]:
    """Return the rows of the table in docs/tested.md."""
    rows = []
    for machine in MACHINES:
        good, slow = judged(machine, 1.0), judged(machine, SLOW)
        assert good.value is not None and good.at_least is not None
        unit = "GB/s" if machine.dimms else "GFlop/s"
        rows.append(
            f"| {machine.processor} | {run_of(machine)} | {machine.value:g} {unit} "
            f"| {good.value * good.at_least:.4g} | {good.outcome} | {slow.outcome} |"
        )
    return rows


def test_the_page_of_the_trials_has_this_table() -> None:
    page = (ROOT / "docs" / "tested.md").read_text(encoding="utf-8")
    missing = [row for row in table() if row not in page]
    assert not missing, "\n".join(table())
