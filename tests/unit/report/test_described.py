"""Each fact of a node on the page: as it was reported, as it was not, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.probes import node_facts
from tests.unit.report.test_head import with_model

from proofmark.common.message import Message
from proofmark.report.page import Block
from proofmark.report.run_data import gather
from proofmark.report.sections import main_figures
from proofmark.report.sections.node_provenance import described, module, section
from proofmark.site.hardware import StatedNode
from proofmark.site.node.parts import Dimm, MountedFileSystem, Nic, Port, ReportedDomain

HIDDEN = ("ext4", "tmpfs", "overlay", "squashfs", "hugetlbfs", "ramfs", "iso9660", "vfat")
DIMM = Dimm(locator="A1", bytes=2**34, rated=2666, configured=2666)
NIC = Nic(
    **dict.fromkeys(("driver", "firmware", "state", "megabits", "mtu", "link", "link_best")),
    name="eth0",
)
PORT = Port(adapter="mlx5_0", port="1", state=None, rate=None, layer=None)


def shown(**changes: Any) -> dict[str, str]:
    return dict(described(node_facts(**changes), StatedNode()))


def test_each_fact_of_a_node_has_its_row() -> None:
    assert shown() == {
        "Processor": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz (skylake_avx512, AVX-512)",
        "Processor ids": "GenuineIntel, family 6, model 85, stepping 4, microcode 0x2006a08",
        "Cores": "40 cores in 2 sockets, 1 thread per core",
        "Differs between CPUs": "microcode: 0x2000065 x 1, 0x2006a08 x 39",
        "SMT": "off",
        "NUMA": "2 × 20 CPUs with 93 GiB",
        "Memory": "186.9 GiB, swap 0 B",
        "Memory modules": (
            "11 × 16 GiB DDR4 Samsung M393A2K40BB2-CTD 2666 MT/s; "
            "1 × 16 GiB DDR4 Samsung M393A2K40BB2-CTD 2666 MT/s runs at 2400 MT/s; 4 slots empty"
        ),
        "Governor": "performance powersave",
        "Frequency": "nominal 2.4 GHz, maximum 3.7 GHz, turbo on, driver intel_pstate",
        "Rpeak nominal": "3072 GFlop/s",
        "Transparent huge pages": "madvise, defrag madvise",
        "Kernel": "3.10.0-1160.el7.x86_64 (x86_64), #1 SMP PREEMPT_DYNAMIC @0",
        "Kernel command line": (
            "BOOT_IMAGE=/vmlinuz-3.10.0-1160.el7.x86_64 root=LABEL=root ro intel_pstate=enable"
        ),
        "Operating system": "CentOS Linux 7 (Core)",
        "Virtual": "no, container no",
        "BIOS": "American Megatrends Inc. 3.1 04/25/2019",
        "Board": "Example X11DPT-B 1.02",
        "System": "Example X11DPT",
        "Network": (
            "ib0 firmware 16.28.2006 (MT_0000000008) 100000 Mb/s up; "
            "mlx5_0 MT4119 16.28.2006 100 Gb/sec (4X EDR) 4: ACTIVE"
        ),
        "File systems": "/ xfs, /scratch lustre, /home nfs4",
        "Settings": (
            "kernel/numa_balancing 1, kernel/perf_event_paranoid 2, kernel/randomize_va_space 2, "
            "vm/overcommit_memory 0, vm/swappiness 10, vm/zone_reclaim_mode 0"
        ),
    }


WHY = Message("absent-no-value", path="etc")
NONE = "not reported"
KNOWN = f"{NONE} ({WHY})"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"stepping": None, "microcode": ""}, {"Processor ids": f"stepping {NONE}, microcode"}),
        ({"differing": {}, "numa": ()}, {"Differs between CPUs": None, "NUMA": None}),
        ({"smt": None, "absent": {}}, {"SMT": NONE}),
        ({"smt": None, "absent": {"smt": WHY}}, {"SMT": KNOWN}),
        ({"smt": None, "absent": {"smt.control": WHY}}, {"SMT": KNOWN}),
        ({"swap_bytes": None}, {"Memory": "186.9 GiB, swap –"}),
        ({"dimms": (), "absent": {"dimms": WHY}}, {"Memory modules": KNOWN}),
        ({"governor": None, "absent": {"frequency": WHY}}, {"Governor": KNOWN}),
        ({"governor": None, "absent": {"frequency.governor": WHY}}, {"Governor": KNOWN}),
        ({"base_hz": None}, {"Frequency": f"nominal {NONE}, maximum 3.7"}),
        ({"max_hz": None}, {"Frequency": f"nominal 2.4 GHz, maximum {NONE}, turbo on"}),
        ({"turbo": False}, {"Frequency": "turbo off, driver"}),
        ({"turbo": None, "frequency_driver": None}, {"Frequency": f"3.7 GHz, turbo {NONE}"}),
        ({"thp": None}, {"Transparent huge pages": f"{NONE}, defrag madvise"}),
        ({"thp_defrag": None}, {"Transparent huge pages": f"madvise, defrag {NONE}"}),
        ({"cmdline": "", "absent": {"cmdline": WHY}}, {"Kernel command line": KNOWN}),
        ({"virtual": "kvm", "container": "lxc"}, {"Virtual": "kvm, container lxc"}),
        ({"firmware": {}, "absent": {}}, dict.fromkeys(("BIOS", "Board", "System"), NONE)),
        (
            {"firmware": {}, "absent": {"dmi": WHY}},
            dict.fromkeys(("BIOS", "Board", "System"), KNOWN),
        ),
        (
            {"firmware": {}, "absent": {"dmi.bios_version": WHY, "dmi.board_name": WHY}},
            {"BIOS": KNOWN, "Board": KNOWN, "System": NONE},
        ),
        (
            {"firmware": {}, "absent": {"dmi.product_name": WHY}},
            {"BIOS": NONE, "Board": NONE, "System": KNOWN},
        ),
        ({"firmware": {"bios_date": "1/2"}}, {"BIOS": "1/2", "Board": NONE, "System": NONE}),
        ({"nics": (), "ports": (), "absent": {"nics": WHY}}, {"Network": KNOWN}),
        ({"nics": (NIC,), "ports": ()}, {"Network": "eth0"}),
        (
            {
                "nics": (NIC.model_copy(update={"driver": "ice", "megabits": 25, "state": "up"}),),
                "ports": (PORT,),
            },
            {"Network": "eth0 ice 25 Mb/s up; mlx5_0"},
        ),
        ({"mounts": (), "absent": {"mounts": WHY}}, {"File systems": KNOWN}),
        ({"settings": {}}, {"Settings": None}),
        (
            {"unread": {"b": "x\x00", "a": "?"}},
            {"Not known: the value cannot be read": "a: '?'; b"},
        ),
        (
            {
                "numa": tuple(
                    ReportedDomain(index=number, cpus=cpus, memory_bytes=size, distances=())
                    for number, (cpus, size) in enumerate(
                        [((0,), 2**31 - 1), ((1,), 2**30), ((), 2**31), ((2, 3), 2**31)]
                    )
                )
            },
            {"NUMA": "2 × 1 CPU with 1 GiB, 1 × 0 CPUs with 2 GiB, 1 × 2 CPUs with 2 GiB"},
        ),
        ({"dimms": (DIMM,), "dimm_slots_empty": None}, {"Memory modules": "1 × 16 GiB 2666 MT/s"}),
        ({"dimms": (DIMM,), "dimm_slots_empty": 1}, {"Memory modules": "MT/s; 1 slot empty"}),
    ],
)
def test_a_fact_that_is_missing_is_said_or_left_out(
    changes: Mapping[str, Any], wanted: Mapping[str, str | None]
) -> None:
    control, found = shown(), shown(**changes)
    for name, text in wanted.items():
        row = found.get(name, "")
        assert (text in row) if text else name not in found, (name, row)
    rest = {name for name in control if control[name] != found.get(name)}
    assert rest - {"Rpeak nominal"} <= wanted.keys()


def test_the_end_of_a_row_has_no_driver_and_no_slots() -> None:
    assert shown(frequency_driver=None)["Frequency"].endswith("turbo on")
    assert shown(dimms=(DIMM,), dimm_slots_empty=0)["Memory modules"].endswith("MT/s")
    assert shown(differing={"b": ("2", "1"), "a": ("3",)})["Differs between CPUs"] == (
        "a: 3; b: 2, 1"
    )


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_file_system_of_the_system_is_listed_as_the_root_only(kind: str) -> None:
    def mounts(target: str) -> str:
        mount = MountedFileSystem(source="x", target=target, kind=kind, options="rw")
        return shown(mounts=(mount,), absent={})["File systems"]

    assert mounts("/") == f"/ {kind}"
    assert mounts("/boot") == NONE


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "16 GiB 2666 MT/s"),
        ({"bytes": None}, "unknown size 2666 MT/s"),
        ({"rated": None, "configured": None}, "16 GiB"),
        ({"rated": None}, "16 GiB runs at 2666 MT/s"),
        ({"kind": "DDR4", "manufacturer": "M", "part_number": "P"}, "16 GiB DDR4 M P 2666 MT/s"),
    ],
)
def test_a_module_is_one_line(changes: Mapping[str, Any], text: str) -> None:
    assert module(DIMM.model_copy(update=changes)) == text


def test_twenty_kinds_of_nodes_are_described_the_most_frequent_first(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, {f"n{number:02}": 100.0 + number for number in range(23)})
    data = gather(run, written_verdict(run))
    for kinds in (20, 21, 22):
        models = [f"model {number}" for number in range(kinds - 1)]
        models += ["most"] * (23 - len(models))
        nodes = [with_model(*each) for each in zip(data.nodes, models, strict=True)]
        blocks = section(replace(data, nodes=nodes)).blocks
        (first,) = blocks[0].titles
        assert first == f"n[{kinds - 1}-22] ({24 - kinds} nodes alike)"
        assert blocks[1].titles == ("n00",)
        assert [bool(each.tables) for each in blocks[:21]] == [True] * 20 + [kinds == 20]
        more = Block(
            paragraphs=(f"{kinds - 20} more kind{'s' * (kinds > 21)} of node: see nodes/.",)
        )
        assert (blocks[20] == more) is (kinds > 20)


@pytest.mark.parametrize(
    ("key", "unit", "value"),
    [("hpl", "GFlop/s", 0.66 * 20 * 32 * 2.4), ("triad", "GB/s", 0.705 * 6 * 2666 * 8e-3)],
)
def test_the_usual_value_of_a_processor_is_that_of_a_socket(
    key: str, unit: str, value: float
) -> None:
    shown, source = main_figures._of_processor(key, node_facts())
    number, _, of = shown.partition(" ")
    assert of == unit and float(number) == pytest.approx(value, rel=1e-3)
    in_part, of_part = main_figures._of_processor(key, node_facts(virtual="kvm", cores=4))
    assert in_part == shown
    assert of_part == f"{source}; this virtual machine has 4 of them"
