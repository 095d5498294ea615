"""The table of processors: each row has a source, and each real name has at most one row."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from archspec.cpu import TARGETS
from pydantic import ValidationError
from tests.folders import ROOT

from proofmark.site.hardware_limits import (
    ProcessorLimits,
    Typical,
    is_product,
    processor,
    processors,
    product_name,
    same_processor,
)
from proofmark.site.node.cpu import read_cpuinfo

ROWS = processors()
BY_NAME = {row.name: row for row in ROWS}
BY_PRODUCT: dict[str, list[ProcessorLimits]] = {}
for _row in ROWS:
    for _product in {product_name(name) for name in (_row.name, *_row.also)}:
        BY_PRODUCT.setdefault(_product, []).append(_row)

# The line "model name" of /proc/cpuinfo, as public reports show it.
X86_NAMES = [
    "Intel(R) Xeon(R) CPU           X5570  @ 2.93GHz",
    "Intel(R) Xeon(R) CPU           X5550  @ 2.67GHz",
    "Intel(R) Xeon(R) CPU           E5520  @ 2.27GHz",
    "Intel(R) Xeon(R) CPU           X5650  @ 2.67GHz",
    "Intel(R) Xeon(R) CPU           X5690  @ 3.47GHz",
    "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
    "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz",
    "Intel(R) Xeon(R) CPU E5-2680 v2 @ 2.80GHz",
    "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz",
    "Intel(R) Xeon(R) CPU E5-2698 v3 @ 2.30GHz",
    "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
    "Intel(R) Xeon(R) CPU E5-2697A v4 @ 2.60GHz",
    "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
    "Intel(R) Xeon(R) Platinum 8160 CPU @ 2.10GHz",
    "Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz",
    "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz",
    "Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz",
    "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz",
    "Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz",
    "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz",
    "Intel(R) Xeon(R) Platinum 8480+",
    "Intel(R) Xeon(R) Gold 6430",
    "Intel(R) Xeon(R) CPU Max 9480",
    "INTEL(R) XEON(R) PLATINUM 8592+",
    "Intel(R) Xeon(R) Platinum 8592+",
    "Intel(R) Xeon(R) 6980P",
    "Intel(R) Xeon(R) 6972P",
    "Intel(R) Xeon Phi(TM) CPU 7230 @ 1.30GHz",
    "Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz",
    "Quad-Core AMD Opteron(tm) Processor 2356",
    "Quad-Core AMD Opteron(tm) Processor 8356",
    "Six-Core AMD Opteron(tm) Processor 2435",
    "AMD Opteron(tm) Processor 6172",
    "AMD EPYC 7551 32-Core Processor",
    "AMD EPYC 7742 64-Core Processor",
    "AMD EPYC 7H12 64-Core Processor",
    "AMD EPYC 7702P 64-Core Processor",
    "AMD EPYC 7763 64-Core Processor",
    "AMD EPYC 7773X 64-Core Processor",
    "AMD EPYC 7V73X 64-Core Processor",
    "AMD EPYC 9654 96-Core Processor",
    "AMD EPYC 9654P 96-Core Processor",
    "AMD EPYC 9684X 96-Core Processor",
    "AMD EPYC 9754 128-Core Processor",
    "AMD EPYC 9755 128-Core Processor",
    "AMD EPYC 9965 192-Core Processor",
]
OTHER_CPUINFO = [
    ("aarch64", ["CPU implementer\t: 0x41", "CPU part\t: 0xd0c"], "neoverse_n1"),
    ("aarch64", ["CPU implementer\t: 0x41", "CPU part\t: 0xd40"], "neoverse_v1"),
    ("aarch64", ["CPU implementer\t: 0x41", "CPU part\t: 0xd4f"], "neoverse_v2"),
    ("aarch64", ["CPU implementer\t: 0x46", "CPU part\t: 0x001"], "a64fx"),
    ("ppc64", ["cpu\t\t: POWER6 (raw), altivec supported"], "ppc64"),
    ("ppc64", ["cpu\t\t: POWER7 (architected), altivec supported"], "power7"),
    ("ppc64le", ["cpu\t\t: POWER8E (raw), altivec supported"], "power8le"),
    ("ppc64le", ["cpu\t\t: POWER8NVL (raw), altivec supported"], "power8le"),
    ("ppc64le", ["cpu\t\t: POWER9, altivec supported"], "power9le"),
    ("ppc64le", ["cpu\t\t: POWER10 (architected), altivec supported"], "power10le"),
]
UNKNOWN = [
    "AMD EPYC",
    "AMD EPYC 9654 96-Core Processor 2",
    "Intel(R) Xeon(R) Processor",
    "Intel(R) Xeon(R) Gold 61480 CPU @ 2.40GHz",
    "Intel(R) Xeon(R) Platinum 8480",
    "AMD Opteron(TM) Processor 6274",
    "POWER9 (architected)",
]

PLAUSIBLE = (5e9, 2e13)
"""The smallest and the largest peak of a socket in flop/s: 5 Gflop/s, and 20 Tflop/s."""


def rows_of(name: str) -> list[ProcessorLimits]:
    """Return the rows with the product `name`."""
    return BY_PRODUCT.get(product_name(name), [])


def declared() -> list[tuple[Path, dict[str, Any]]]:
    """Return the section ``node`` of each partition of the shipped inventories, with its file."""
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in sorted(ROOT.glob("inventory/*/group_vars/*/partition.yml")):
        text = path.read_text(encoding="utf-8")
        section = yaml.load(text, Loader=yaml.CSafeLoader)["partition"].get("node", {})
        if section.get("cpu_model"):
            found.append((path.relative_to(ROOT), section))
    return found


def test_the_table_has_many_models_of_all_vendors() -> None:
    assert len(ROWS) >= 60
    assert len(BY_NAME) == len(ROWS)
    assert sum(bool(row.checked) for row in ROWS) >= len(ROWS) / 2


def test_each_row_is_consistent() -> None:
    for row in ROWS:
        assert row.architecture in TARGETS, row.name
        assert row.source.strip() and row.date, row.name
        assert (row.channels is None) == (row.ddr is None), row.name
        if row.cores and row.base_hz and row.flop_per_cycle:
            peak = row.cores * row.base_hz * row.flop_per_cycle
            assert PLAUSIBLE[0] < peak < PLAUSIBLE[1], row.name
        if row.base_hz and row.turbo_hz:
            assert row.base_hz <= row.turbo_hz <= 2.5 * row.base_hz, row.name
        if row.avx_hz and row.turbo_hz:
            assert row.avx_hz <= row.turbo_hz, row.name
        if row.l3_bytes and row.cores:
            assert 2**18 <= row.l3_bytes / row.cores <= 2**27, row.name


def test_the_numbers_in_each_name_are_those_of_the_row() -> None:
    for row in ROWS:
        for name in (row.name, *row.also):
            if (gigahertz := re.search(r"@ (\d\.\d\d)GHz", name)) and row.base_hz:
                assert abs(float(gigahertz[1]) - row.base_hz / 1e9) <= 0.0051, name
            if cores := re.search(r"(\d+)-Core Processor", name):
                assert row.cores == int(cores[1]), name


def test_each_name_has_one_row() -> None:
    """Also in other spellings: with capitals, and as documents write them."""
    names = list(chain.from_iterable((row.name, *row.also) for row in ROWS))
    assert [name for name, number in Counter(map(product_name, names)).items() if number > 1] == []
    for name in names:
        short = re.sub(r"\(R\)|\(TM\)|\(tm\)| CPU| \d+-Core Processor| @ .*", "", name)
        for spelling in (name.upper(), f"2 x {name}", f"{short} (a remark)", product_name(name)):
            assert rows_of(spelling) == rows_of(name), spelling


FAMILIES = {"quad-core Intel Xeon (Nehalem)", "quad-core AMD Opteron (Barcelona)", "Example CPU"}
"""What inventories declare without the name of a product: papers and examples have no more."""


@pytest.mark.parametrize(
    "section", [section for _, section in declared()], ids=[str(path) for path, _ in declared()]
)
def test_a_shipped_inventory_names_a_row_of_the_table(section: dict[str, Any]) -> None:
    """Else a plan names limits as unknown that the run has."""
    name = section["cpu_model"]
    if name in FAMILIES:
        assert not is_product(name)
        return
    row = processor(name)
    assert row is not None, name
    assert row.architecture == section["architecture"]
    assert same_processor(name, row.name)


SAME = [
    ("AMD EPYC 9654", "AMD EPYC 9654 96-Core Processor", True),
    ("Intel Xeon Gold 6148", "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", True),
    ("Intel Xeon Gold 6148", "Intel(R) Xeon(R) Gold 6138 CPU @ 2.00GHz", False),
    ("AMD EPYC 9654", "AMD EPYC 9654P 96-Core Processor", False),
    ("Intel Xeon Platinum 8592+", "INTEL(R) XEON(R) PLATINUM 8592+", True),
    ("Xeon E5-2680v4", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", True),
    ("Intel Xeon E5-2680", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", False),
    ("Intel Xeon 6 6980P", "Intel(R) Xeon(R) 6980P", True),
    ("Intel Xeon Max 9480", "Intel(R) Xeon(R) CPU Max 9480", True),
    ("NVIDIA Grace CPU Superchip", "ARM part 0xd4f", True),
    ("NVIDIA Grace CPU Superchip", "ARM part 0xd0c", False),
    ("IBM POWER9", "POWER9 (architected)", True),
    ("IBM POWER10", "POWER9 (raw)", False),
    ("Intel Xeon of 2031", "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", None),
    ("Intel Xeon of 2031", "Intel(R) Xeon(R) of 2031", True),
]


@pytest.mark.parametrize(("stated", "found", "same"), SAME)
def test_two_spellings_of_a_name_are_one_processor(
    stated: str, found: str, same: bool | None
) -> None:
    assert same_processor(stated, found) is same


@pytest.mark.parametrize("name", X86_NAMES)
def test_a_real_name_has_one_row(name: str) -> None:
    """`read_cpuinfo` makes one blank of several."""
    read = read_cpuinfo([f"model name\t: {name}"], "x86_64").model_name
    (row,) = rows_of(name)
    assert processor(read) == processor(name) == row


@pytest.mark.parametrize(("machine", "lines", "architecture"), OTHER_CPUINFO)
def test_other_machines_have_a_row_by_what_the_kit_calls_the_processor(
    machine: str, lines: list[str], architecture: str
) -> None:
    name = read_cpuinfo(lines, machine).model_name
    (row,) = rows_of(name)
    assert processor(name) == row
    assert row.architecture == architecture


@pytest.mark.parametrize("name", UNKNOWN)
def test_another_name_has_no_row(name: str) -> None:
    assert processor(name) is None


@pytest.mark.parametrize(
    ("architecture", "flops"),
    [
        ("nehalem", {4}),
        ("westmere", {4}),
        ("sandybridge", {8}),
        ("ivybridge", {8}),
        ("haswell", {16}),
        ("broadwell", {16}),
        ("skylake_avx512", {16, 32}),
        ("cascadelake", {16, 32}),
        ("icelake", {32}),
        ("sapphirerapids", {32}),
        ("mic_knl", {32}),
        ("k10", {4}),
        ("zen", {8}),
        ("zen2", {16}),
        ("zen3", {16}),
        ("zen4", {16}),
        ("zen5", {32}),
        ("neoverse_n1", {8}),
        ("neoverse_v1", {16}),
        ("neoverse_v2", {16}),
        ("a64fx", {32}),
        ("power9le", {8}),
        ("power10le", {None}),
    ],
)
def test_the_flop_per_cycle_of_a_family(architecture: str, flops: set[int | None]) -> None:
    found = {row.flop_per_cycle for row in ROWS if row.architecture == architecture}
    assert found == flops


def test_the_hbm_of_a_xeon_max_is_in_the_table() -> None:
    """Without it, the ceiling of the memory would be below what the HBM reaches."""
    found = [row.fast_memory_bytes_per_s for row in ROWS if "Max" in row.name]
    assert found and all(found)


def test_each_typical_figure_has_its_conditions() -> None:
    """HPL can be above the nominal peak: the boost of Zen 4, and the turbo of Ivy Bridge."""
    triad = list(chain.from_iterable(row.triad for row in ROWS))
    hpl = list(chain.from_iterable(row.hpl for row in ROWS))
    assert triad and hpl
    assert all(each.ratio < 0.9 for each in triad)
    assert all(each.ratio < 1.02 for each in hpl)
    for each in chain(triad, hpl):
        assert each.ratio - each.tolerance > 0.4
        assert each.source and each.date and each.conditions.system


def test_a_triad_above_three_quarters_of_the_peak_has_streaming_stores() -> None:
    """Stores through the caches of x86-64 move 4/3 of the bytes that STREAM counts."""
    for row in ROWS:
        if row.triad and row.architecture in (
            "broadwell",
            "haswell",
            "zen",
            "zen2",
            "zen3",
            "zen4",
        ):
            for each in row.triad:
                assert each.conditions.streaming_stores is (each.ratio > 0.6)


def test_hpl_of_a_node_and_of_a_system_states_what_it_needs() -> None:
    for row in ROWS:
        for each in row.hpl:
            stated = each.conditions
            assert stated.nodes or stated.tcp is False
            assert stated.blas or "Xeon" not in row.name


@pytest.mark.parametrize(
    "wrong",
    [
        {"date": "2023/07"},
        {"date": ""},
        {"source": ""},
        {"name": ""},
        {"cores": 0},
        {"flops": 8},
        {"triad": [{"ratio": 0.8, "tolerance": 0.1}]},
    ],
)
def test_a_wrong_row_is_refused(wrong: dict[str, object]) -> None:
    fields = {"name": "X", "architecture": "zen", "source": "a data sheet", "date": "2023"}
    assert ProcessorLimits.model_validate(fields)
    with pytest.raises(ValidationError):
        ProcessorLimits.model_validate(fields | wrong)


def test_a_typical_figure_accepts_its_conditions() -> None:
    figure = Typical.model_validate(
        {
            "ratio": 0.8,
            "tolerance": 0.05,
            "conditions": {"system": "a node", "streaming_stores": True, "blas": ["mkl", "blis"]},
            "source": "a guide",
            "date": "2023-01-31",
        }
    )
    assert figure.conditions.threads is None and figure.conditions.blas == ("mkl", "blis")
