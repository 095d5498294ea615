"""``probe.sh`` in several shells, with and without root, on constructed nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fixtures.kit import until
from tests.fixtures.machine_probe import parse_counters
from tests.folders import HWLOC, PACKAGE

from proofmark.common.errors import BadInput
from proofmark.site.installed_parts import VIRTUAL_MEMORY_TOLERANCE, parts_of
from proofmark.site.machines import Machine
from proofmark.site.node.counters import counter_differences, disturbance
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.parts import read_nics
from proofmark.site.node.probe_text import ProbeStream, Unread, read_stream
from proofmark.site.node.provenance import node_provenance

PROBE = PACKAGE / "site/node/probe.sh"
SHELLS = (["dash"], ["busybox", "sh"], ["bash", "--posix"])
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
CPU = "sys/devices/system/cpu"

SMALL_NODE = {
    "proc/sys/kernel/hostname": "node1",
    "proc/sys/kernel/random/boot_id": "first",
    "proc/sys/kernel/osrelease": "5.14.0",
    "proc/sys/kernel/arch": "x86_64",
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: sse2\n",
    "proc/meminfo": "MemTotal:       1000 kB\n",
    "proc/uptime": "100.00 1.0\n",
    "proc/self/status": "Cpus_allowed_list:\t0-3\n",
    f"{CPU}/cpu0/topology/physical_package_id": "0",
    f"{CPU}/cpu0/topology/core_id": "0",
    f"{CPU}/cpu0/topology/thread_siblings_list": "0",
}


SOCKET = r"""printf 'Processor Information\n\tStatus: Populated, Enabled\n'
printf '\tMax Speed: 3700 MHz\n\tCurrent Speed: 2400 MHz\n'"""
"""A dmidecode that prints one structure of type 4."""


def make_node(root: Path, files: Mapping[str, str], tools: Mapping[str, str] | None = None) -> Path:
    """Write a constructed node: files of /proc and /sys, and tools as shell scripts."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text.endswith("\n") else text + "\n")
    for name, text in ({"id": "echo 0"} | dict(tools or {})).items():
        path = root / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return root


def probe(
    kind: str = "facts",
    root: Path | None = None,
    shell: Sequence[str] = ("sh",),
    path: str = "",
    **limits: str,
) -> str:
    """Return the output of the probe, which must succeed and print nothing on stderr."""
    environment = {"PATH": path or os.environ["PATH"], **limits}
    if root is not None:
        environment |= {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "PROBE_ROOT": str(root)}
    done = subprocess.run(
        [*shell, "-s", kind],
        input=PROBE.read_text(encoding="utf-8"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def assert_same_memory(one: NodeFacts, other: NodeFacts) -> None:
    """Compare two readings of this machine: a hypervisor may change its memory between them."""
    assert [each.cpus for each in one.numa] == [each.cpus for each in other.numa]
    tolerance = VIRTUAL_MEMORY_TOLERANCE if one.virtual else 0
    assert one.memory_total_bytes == pytest.approx(other.memory_total_bytes, rel=tolerance)


def stream_of(text: str) -> ProbeStream:
    return read_stream(text, "probe", "facts", "before", "after")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_every_shell_reports_the_same_facts(shell: list[str]) -> None:
    facts, reference = (parse_probe(probe(shell=each), "live") for each in (shell, ["sh"]))
    same = {"cores", "sockets", "cpu_model", "features", "caches"}
    assert facts.model_dump(include=same) == reference.model_dump(include=same)
    assert_same_memory(facts, reference)
    assert facts.absent.keys() == reference.absent.keys()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_probe_that_is_stopped_leaves_no_folder(shell: list[str], tmp_path: Path) -> None:
    """A scheduler sends its signal to all processes of a job."""
    root = make_node(tmp_path, {"proc/cpuinfo": "processor : 0"}, {"lscpu": "exec sleep 300"})
    environment = {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "PROBE_ROOT": str(root)}
    with subprocess.Popen(
        [*shell, str(PROBE), "facts"],
        env=environment,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        folders = [Path(top) / f"proofmark-probe.{process.pid}" for top in ("/dev/shm", "/run")]
        until(lambda: any(list(each.glob("*.pid")) for each in folders if each.exists()))
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(30) == 143
    assert not any(each.exists() for each in folders)


def test_cores_are_those_that_python_may_use() -> None:
    facts = parse_probe(probe(), "live")
    assert set(facts.cpus) == os.sched_getaffinity(0)
    assert 1 <= facts.cores <= len(os.sched_getaffinity(0))


def test_a_binding_of_the_probe_binds_its_cores() -> None:
    first = min(os.sched_getaffinity(0))
    facts = parse_probe(probe(shell=["taskset", "-c", str(first), "sh"]), "live")
    assert (facts.cpus, facts.cores) == ((first,), 1)


def test_no_section_is_silently_empty() -> None:
    stream = stream_of(probe())
    absent = {name.partition(".")[0] for name in stream.absent}
    assert [
        name for name, lines in stream.sections.items() if not lines and name not in absent
    ] == []


def test_tools_of_busybox_are_enough(tmp_path: Path) -> None:
    for applet in subprocess.check_output(["busybox", "--list"], text=True).split():
        if "[" not in applet:
            (tmp_path / applet).symlink_to("/bin/busybox")
    facts = parse_probe(probe(path=str(tmp_path), shell=[str(tmp_path / "sh")]), "live")
    reference = parse_probe(probe(), "live")
    assert facts.absent["topology"] == "lstopo is not installed"
    assert (facts.cpus, facts.caches) == (reference.cpus, reference.caches)
    assert_same_memory(facts, reference)


@pytest.mark.root
def test_without_root_the_reason_is_that_root_is_needed() -> None:
    facts = parse_probe(probe(shell=[*NOBODY, "sh"]), "live")
    assert not facts.root
    assert facts.absent["dimms"] in ("needs root", "dmidecode is not installed")
    assert facts.cores == parse_probe(probe(), "live").cores


@pytest.mark.root
def test_a_serial_number_that_only_root_may_read() -> None:
    # Not in tmp_path, which only its owner may enter.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        node = make_node(Path(folder), SMALL_NODE | {"sys/class/dmi/id/product_serial": "S1"})
        (node / "sys/class/dmi/id/product_serial").chmod(0o400)
        assert parse_probe(probe(root=node), "root").firmware["product_serial"] == "S1"
        make_node(node, {}, {"id": "echo 65534"})
        facts = parse_probe(probe(root=node, shell=[*NOBODY, "sh"]), "nobody")
    assert facts.firmware == {}
    assert facts.absent["dmi.product_serial"] == "needs root: /sys/class/dmi/id/product_serial"


@pytest.mark.parametrize(
    ("files", "tools", "hertz", "source"),
    [
        ({f"{CPU}/cpu0/acpi_cppc/nominal_freq": "2400"}, {}, 2_400_000_000, "ACPI CPPC"),
        ({f"{CPU}/cpu0/acpi_cppc/nominal_freq": "0"}, {}, None, ""),
        ({}, {"dmidecode": SOCKET}, 2_400_000_000, "SMBIOS"),
        ({}, {"dmidecode": "echo 'Memory Device'"}, None, ""),
        ({}, {}, None, ""),
    ],
)
def test_the_nominal_frequency_of_a_node_without_cpufreq(
    tmp_path: Path, files: dict[str, str], tools: dict[str, str], hertz: int | None, source: str
) -> None:
    facts = parse_probe(probe(root=make_node(tmp_path, SMALL_NODE | files, tools)), "node1")
    assert (facts.base_hz, facts.base_source) == (hertz, source)
    if not tools:
        assert facts.absent["sockets"] == "dmidecode is not installed"
    elif hertz is None:
        assert facts.absent["sockets"] == "dmidecode reports no processor"


def test_a_second_line_of_a_value_is_left_out(tmp_path: Path) -> None:
    tools = {
        "systemd-detect-virt": "echo kvm; echo 'could not open a lock'",
        "dmidecode": "echo first >&2; echo second >&2; exit 1",
        "chronyc": "printf 'System time     : 0,001 seconds fast of NTP time\\n'",
    }
    facts = parse_probe(probe(root=make_node(tmp_path, SMALL_NODE, tools)), "two lines")
    assert (facts.virtual, facts.clock_offset_s) == ("kvm", None)
    assert facts.absent["dimms"] == "dmidecode: exit code 1: 'first'"
    assert facts.unread == {"clock.System time": "0,001"}


@pytest.mark.fault("clock-free")
@pytest.mark.parametrize(
    ("reference", "stratum", "leap", "known"),
    [
        ("C0A80001 (ntp1)", "3", "Normal", True),
        ("C0A80001 (ntp1)", "3", "Insert second", True),
        ("00000000 ()", "0", "Not synchronised", False),
        ("C0A80001 (ntp1)", "3", "Not synchronised", False),
        ("C0A80001 (ntp1)", "16", "Normal", False),
        ("7F7F0101 ()", "10", "Normal", False),
        ("127.127.1.1 ()", "10", "Normal", False),
    ],
)
def test_a_clock_without_a_server_has_no_offset(
    tmp_path: Path, reference: str, stratum: str, leap: str, *, known: bool
) -> None:
    lines = (
        f"Reference ID    : {reference}",
        f"Stratum         : {stratum}",
        "System time     : 0.000000000 seconds fast of NTP time",
        f"Leap status     : {leap}",
    )
    tools = {"chronyc": f"cat <<'E'\n{chr(10).join(lines)}\nE"}
    facts = parse_probe(probe(root=make_node(tmp_path, SMALL_NODE, tools)), "node1")
    assert facts.clock_offset_s == (0.0 if known else None)
    assert ("clock" in facts.absent) != known and not facts.unread
    if not known:
        reason = f"leap status {leap}, stratum {stratum}, reference {reference}"
        assert facts.absent["clock"] == f"the clock is not synchronised: {reason}"


@pytest.mark.parametrize(
    ("hours", "interval", "known"),
    [(1, 64, True), (72, 64, False), (72, 65536, True), (-72, 64, False)],
)
def test_a_clock_that_lost_its_servers_has_no_offset(
    tmp_path: Path, hours: int, interval: int, *, known: bool
) -> None:
    """A clock that was set back has no offset either."""
    last = f"{datetime.now(UTC) - timedelta(hours=hours):%a %b %d %H:%M:%S %Y}"
    lines = (
        f"Ref time (UTC)  : {last}",
        "Stratum         : 3",
        "System time     : 0.000000000 seconds fast of NTP time",
        f"Update interval : {interval}.1 seconds",
        "Leap status     : Normal",
    )
    tools = {"chronyc": f"cat <<'E'\n{chr(10).join(lines)}\nE"}
    facts = parse_probe(probe(root=make_node(tmp_path, SMALL_NODE, tools)), "node1")
    assert facts.clock_offset_s == (0.0 if known else None)
    assert (last in str(facts.absent.get("clock"))) != known


def test_content_cannot_forge_a_marker(tmp_path: Path) -> None:
    evil = "quiet\n=== end\nproofmark-probe 1 facts\n! dimms: stolen\x0b=== host\u2028| hostname: x"
    text = probe(root=make_node(tmp_path, SMALL_NODE | {"proc/cmdline": evil}))
    facts = parse_probe(text, "evil")
    assert facts.cmdline == evil
    assert facts.hostname == "node1"
    assert facts.absent["dimms"] == "dmidecode is not installed"


def test_adapters_have_their_numa_domain_and_their_slot(tmp_path: Path) -> None:
    device, port = "sys/devices/pci0000:80/0000:81:00.1", "sys/class/infiniband/mlx5_1/ports/1"
    hca, nic = "sys/class/infiniband/mlx5_1", "sys/class/net/hsn0"
    files = {
        f"{device}/numa_node": "3",
        f"{hca}/board_id": "MT_1",
        f"{port}/state": "1: DOWN",
        f"{port}/rate": "10 Gb/sec (4X SDR)",
        f"{port}/link_layer": "InfiniBand",
        f"{nic}/operstate": "up",
        f"{nic}/speed": "200000",
        f"{nic}/device/numa_node": "-1",
        f"{nic}/device/current_link_speed": "Unknown",
        f"{nic}/device/current_link_width": "0",
        f"{nic}/device/max_link_speed": "16.0 GT/s PCIe",
        f"{nic}/device/max_link_width": "255",
    }
    make_node(tmp_path, SMALL_NODE | files)
    (tmp_path / hca / "device").symlink_to(tmp_path / device)
    facts = parse_probe(probe(root=tmp_path), "probe")
    (found,) = facts.ports
    assert (found.numa, found.slot, found.state) == (3, "0000:81:00.1", "1: DOWN")
    (only,) = facts.nics
    assert (only.name, only.numa, only.link, only.link_best) == ("hsn0", None, None, None)


@pytest.mark.parametrize("words", ["N/A", "[N/A]", "unknown", "", "Not Specified"])
def test_a_word_that_stands_for_no_value_is_none(words: str) -> None:
    (nic,) = read_nics({"eth0": {"firmware": words, "speed": "-1"}}, Unread())
    assert (nic.firmware, nic.megabits) == (None, None)
    (known,) = read_nics({"eth0": {"firmware": "22.31.1014 (MT_1)"}}, Unread())
    assert known.firmware == "22.31.1014 (MT_1)"


DF = """echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'
echo '10.0.0.1@o2ib:/fs 2000000 1 1 1% /scratch'
echo "$*" >"$PROBE_ROOT/asked"
exit 1"""
"""A df that can read one of two file systems."""


def test_sizes_of_file_systems_that_store_data(tmp_path: Path) -> None:
    mounts = [
        "proc /proc proc rw 0 0",
        "tmpfs /dev/shm tmpfs rw 0 0",
        "auto /home autofs rw 0 0",
        "10.0.0.1@o2ib:/fs /scratch lustre rw 0 0",
        "nas:/stale /stale nfs4 rw 0 0",
        "/dev/sdb1 /with\\040blank xfs rw 0 0",
    ]
    files = {"proc/mounts": "\n".join(mounts)}
    make_node(tmp_path, SMALL_NODE | files, {"df": DF})
    facts = parse_probe(probe(root=tmp_path), "probe")
    assert (tmp_path / "asked").read_text() == "-P -k /scratch /stale\n"
    sizes = {mount.target: mount.bytes for mount in facts.mounts if mount.kind != "tmpfs"}
    assert sizes == {"/scratch": 2000000 * 1024, "/stale": None, "/with blank": None}


def test_versions_of_the_drivers(tmp_path: Path) -> None:
    nic, module = "sys/class/net/hsn0", "sys/module"
    files = {
        "proc/modules": "mlx5_core 1 0 - Live 0x0\nlustre 1 0 - Live 0x0\nfloppy 1 0 - Live 0x0\n",
        f"{nic}/operstate": "up",
        f"{nic}/device/numa_node": "0",
        f"{module}/mlx5_core/version": "24.10-0.7.0",
        f"{module}/mlx5_core/srcversion": "5B2E",
        f"{module}/ice/srcversion": "AA11",
        f"{module}/floppy/version": "1.0",
        "sys/bus/pci/drivers/ice/bind": "x",
    }
    make_node(tmp_path, SMALL_NODE | files, {"ofed_info": "echo OFED-internal-24.10-0.7.0:"})
    (tmp_path / nic / "device/driver").symlink_to(tmp_path / "sys/bus/pci/drivers/ice")
    facts = parse_probe(probe(root=tmp_path), "probe")
    assert facts.drivers == {
        "ice": "source AA11",
        "mlx5_core": "24.10-0.7.0 source 5B2E",
        "OFED": "OFED-internal-24.10-0.7.0",
    }
    assert "drivers.lustre" in facts.absent


SMI = """[ "$1" = --query-gpu=pci.bus_id,ecc.mode.current ] || exit 1
echo '00000000:17:00.0, Enabled'; echo '00000000:2A:00.0, Disabled'"""


def gpu(slot: str, **values: str) -> dict[str, str]:
    """Return the files of one PCI device, an NVIDIA H100 behind a port of Gen4."""
    usual = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330", "numa_node": "1"}
    usual |= {"current_link_width": "16", "current_link_speed": "2.5 GT/s PCIe"}
    usual |= {"max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}
    port = f"sys/devices/port-{slot}"
    files = {f"{port}/{slot}/{key}": value for key, value in (usual | values).items()}
    return files | {f"{port}/max_link_speed": "16.0 GT/s PCIe"}


def test_accelerators_and_their_links(tmp_path: Path) -> None:
    slots: dict[str, dict[str, str]] = {
        "0000:17:00.0": {},
        "0000:2a:00.0": {"current_link_width": "8"},
        "0000:3d:00.0": {"current_link_width": "63", "current_link_speed": "Unknown"},
        "0000:03:00.0": {"class": "0x030000", "vendor": "0x1a03", "device": "0x2000"},
        "0000:c1:00.0": {"class": "0x120000", "vendor": "0x1002", "device": "0x74a1"},
        "0000:c1:00.1": {"class": "0x120000", "vendor": "0x1002", "physfn/class": "0x120000"},
        "0000:00:1f.0": {"class": "0x060100"},
    }
    files: dict[str, str] = {}
    for slot, values in slots.items():
        files |= gpu(slot, **values)
    files["sys/bus/pci/drivers/nvidia/bind"] = "x"
    files["proc/driver/nvidia/gpus/0000:17:00.0/information"] = "Model: \t\t NVIDIA H100 80GB HBM3"
    files["sys/devices/port-0000:c1:00.0/0000:c1:00.0/ras/umc_err_count"] = "ue: 0"
    make_node(tmp_path, SMALL_NODE | files, {"nvidia-smi": SMI})
    devices = tmp_path / "sys/bus/pci/devices"
    devices.mkdir()
    for slot in slots:
        (devices / slot).symlink_to(tmp_path / f"sys/devices/port-{slot}/{slot}")
    for slot in ("0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0"):
        (devices / slot / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers/nvidia")
    facts = parse_probe(probe(root=tmp_path), "probe")
    assert facts.accelerators is not None and not facts.unread
    found = {each.slot: each for each in facts.accelerators}
    assert list(found) == ["0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0", "0000:c1:00.0"]
    first, narrow, lost, amd = found.values()
    assert (first.kind, first.driver, first.numa) == ("NVIDIA H100 80GB HBM3", "nvidia", 1)
    assert (first.lanes, first.gt_per_s, first.ecc) == (16, 16.0, True)
    assert (narrow.kind, narrow.lanes, narrow.ecc) == ("10de:2330", 8, False)
    assert (first.answers, lost.answers) == (True, False)
    assert (amd.kind, amd.driver, amd.ecc) == ("1002:74a1", None, True)
    parts = parts_of(facts)
    assert (parts.accelerators, parts.lanes, parts.accelerator_ecc) == (3, (16, 16, 8), 2)


def test_a_node_without_accelerators_and_an_older_probe(tmp_path: Path) -> None:
    text = probe(root=make_node(tmp_path, SMALL_NODE))
    facts = parse_probe(text, "probe")
    assert (facts.accelerators, parts_of(facts).accelerators) == ((), 0)
    older = text.replace("=== accelerators\n!no-accelerator accelerators\n", "")
    facts = parse_probe(older, "probe")
    assert (facts.accelerators, parts_of(facts).accelerators) == (None, None)


LOG = """echo '[    0.100000] EDAC MC0: Giving out device to module'
echo '[   50.000000] EDAC MC0: 1 UE memory read error on DIMM_A1'
echo '[  150.000000] mlx5_core 0000:17:00.0 ib0: Link down'
echo '[  151.000000] usb 1-1: new device'
echo 'without a time: mce'"""


@pytest.mark.parametrize(
    ("second", "lines"),
    [
        ("first", ["[  150.000000] mlx5_core 0000:17:00.0 ib0: Link down"]),
        ("second", ["[    0.100000]", "[   50.000000]", "[  150.000000]"]),
    ],
)
def test_messages_of_the_kernel_in_the_time_of_a_job(
    tmp_path: Path, second: str, lines: list[str]
) -> None:
    """The job began 100 s after the start of the node; or the node was restarted during it."""
    make_node(tmp_path, SMALL_NODE, {"dmesg": LOG})
    before = probe(root=tmp_path)
    assert "=== kernel" not in before
    make_node(tmp_path, {"proc/sys/kernel/random/boot_id": second, "proc/uptime": "200.00 1.0"})
    found = node_provenance(before, probe("after", root=tmp_path), "p").kernel
    assert len(found) == len(lines)
    assert all(line.startswith(begin) for line, begin in zip(found, lines, strict=True))
    assert node_provenance(before, None, "p").kernel == ()
    make_node(tmp_path, {}, {"dmesg": "echo denied >&2; exit 1"})
    silent = probe("after", root=tmp_path)
    assert "!tool-said kernel: dmesg 1 denied" in silent
    assert node_provenance(before, silent, "p").kernel == ()


def test_an_unknown_kind_is_refused() -> None:
    done = subprocess.run(["sh", PROBE, "later"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "accepted: facts, before, after" in done.stderr


def test_control_groups_limit_cores_and_memory(tmp_path: Path) -> None:
    many = {
        f"{CPU}/cpu{n}/topology/{name}": text
        for n in range(4)
        for name, text in {
            "physical_package_id": "0",
            "core_id": str(n),
            "thread_siblings_list": str(n),
        }.items()
    }
    limited = {
        "proc/self/cgroup": "0::/batch/job7",
        "sys/fs/cgroup/batch/job7/memory.max": "max",
        "sys/fs/cgroup/batch/job7/cpu.max": "max 100000",
        "sys/fs/cgroup/batch/memory.max": "524288",
        "sys/fs/cgroup/batch/cpu.max": "250000 100000",
    }
    free = parse_probe(probe(root=make_node(tmp_path / "free", SMALL_NODE | many)), "free")
    held = parse_probe(
        probe(root=make_node(tmp_path / "held", SMALL_NODE | many | limited)), "held"
    )
    assert (free.cores, free.cpu_quota, free.memory_bytes) == (4, None, 1000 * 1024)
    assert (held.cores, held.cpu_quota, held.memory_bytes) == (2, 2.5, 524288)
    assert held.memory_total_bytes == 1000 * 1024


def test_limits_of_control_groups_version_1(tmp_path: Path) -> None:
    groups = {
        "proc/self/cgroup": "4:memory:/job\n1:cpu,cpuacct:/job",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4096",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
    }
    facts = parse_probe(probe(root=make_node(tmp_path, SMALL_NODE | groups)), "v1")
    assert (facts.cores, facts.cpu_quota, facts.memory_bytes) == (1, 0.5, 4096)


def test_a_kernel_without_topology_in_sys(tmp_path: Path) -> None:
    old = {name: text for name, text in SMALL_NODE.items() if not name.startswith("sys/")}
    blocks = [
        f"processor\t: {n}\nphysical id\t: {n // 2}\ncore id\t\t: {n % 2}\n" for n in range(4)
    ]
    old["proc/cpuinfo"] = "\n".join(blocks)
    old["proc/self/status"] = "Name:\tsh\nCpus_allowed:\t00000000,00000007"
    facts = parse_probe(probe(root=make_node(tmp_path, old)), "old")
    assert (facts.sockets, facts.cores, facts.cores_online, facts.cpus) == (2, 3, 4, (0, 1, 2))
    assert [domain.memory_bytes for domain in facts.numa] == [1000 * 1024]


COUNTING = {
    "sys/devices/system/edac/mc/mc0/ue_count": "0",
    "sys/devices/system/edac/mc/mc0/ce_count": "7",
    "sys/devices/system/edac/mc/mc0/dimm1/dimm_label": "CPU0_B1",
    "sys/devices/system/edac/mc/mc0/dimm1/dimm_ue_count": "0",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "2",
    "proc/interrupts": " CPU0 CPU1\nMCE: 0 0 Machine check exceptions\nTRM: 1 2 Thermal events",
}


def test_counters_that_rose_during_a_job_are_reported(tmp_path: Path) -> None:
    node = make_node(tmp_path, SMALL_NODE | COUNTING)
    before = parse_counters(probe("before", node), "before")
    make_node(
        node,
        {
            "sys/devices/system/edac/mc/mc0/dimm1/dimm_ue_count": "1",
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "5",
            "proc/interrupts": " CPU0 CPU1\nMCE: 0 0 Machine check exceptions\nTRM: 4 2 Thermal",
        },
    )
    changes = counter_differences(before, parse_counters(probe("after", node), "after"))
    rises = [(change.name, change.difference, change.invalid, change.place) for change in changes]
    assert rises == [
        ("edac/mc0/dimm1/dimm_ue_count", 1, True, "CPU0_B1"),
        ("thermal/core_throttle_count", 3, True, None),
        ("interrupts/TRM", 3, False, None),
    ]


def test_unchanged_counters_are_not_reported(tmp_path: Path) -> None:
    node = make_node(tmp_path, SMALL_NODE | COUNTING)
    readings = [parse_counters(probe(kind, node), kind) for kind in ("before", "after")]
    assert counter_differences(*readings) == []


@pytest.mark.fault("tool-slow")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_tool_that_hangs_is_killed_at_its_time_limit(
    tmp_path: Path, shell: Sequence[str]
) -> None:
    """The control is `test_event_log_and_evictions`."""
    hangs = "echo half an answer; exec sleep 3600"
    node = make_node(tmp_path, SMALL_NODE, {"ipmitool": hangs, "lctl": hangs})
    reading = parse_counters(probe("before", node, shell, PROBE_SKIP_S="1"), "before")
    assert reading.absent["counters.ipmi"] == "ipmitool did not answer within 1 s"
    assert reading.absent["counters.lustre"] == "lctl did not answer within 1 s"
    assert not any(name.startswith("lustre/") for name in reading.values)


SLOW = "sleep 6; exec cat '{}'"
BROKEN = "echo '<topology>'; echo >&2; echo 'no such object' >&2; echo more >&2; exit 5"
XML = HWLOC / "knl_quad_flat.xml"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        pytest.param(
            {"lstopo-no-graphics": SLOW},
            "lstopo-no-graphics did not answer within 3 s on node node1",
            marks=pytest.mark.fault("tool-slow"),
        ),
        pytest.param(
            {},
            "lstopo is not installed on node node1",
            marks=pytest.mark.fault("tool-missing"),
        ),
        pytest.param(
            {"lstopo": BROKEN},
            "lstopo: exit code 5: 'no such object' on node node1",
            marks=pytest.mark.fault("tool-fails"),
        ),
        pytest.param(
            {"lstopo": "exit 0"},
            "lstopo printed nothing on node node1",
            marks=pytest.mark.fault("tool-fails"),
        ),
    ],
    ids=["slow", "missing", "fails", "silent"],
)
def test_the_reason_for_a_missing_topology(
    tmp_path: Path, shell: Sequence[str], tools: Mapping[str, str], reason: str
) -> None:
    node = make_node(tmp_path, SMALL_NODE, {name: text.format(XML) for name, text in tools.items()})
    facts = parse_probe(probe(root=node, shell=shell, PROBE_LIMIT_S="3"), "probe")
    with pytest.raises(BadInput) as error:
        Machine.from_facts(facts, 1)
    assert str(error.value).startswith(
        f"probe.sh: topology: found {reason}; accepted: the XML that"
    )


def test_a_slow_tool_is_waited_for(tmp_path: Path) -> None:
    """The control: the same slow lstopo, within the default limit."""
    node = make_node(tmp_path, SMALL_NODE, {"lstopo-no-graphics": SLOW.format(XML)})
    machine = Machine.from_facts(parse_probe(probe(root=node), "probe"), 1)
    assert len(machine.topology.cores) == 68


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    quick = dict.fromkeys(("lscpu", "lstopo", "dmidecode", "chronyc", "lctl", "ipmitool"), "echo x")
    node = make_node(tmp_path, SMALL_NODE, quick)
    for _ in range(5):
        probe(root=node)
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"PROBE_ROOT={node}".encode() in (process / "environ").read_bytes().split(b"\0"):
                left.append((process / "cmdline").read_bytes())
        except OSError:
            continue  # the process ended, or belongs to another user
    assert left == []


def test_event_log_and_evictions(tmp_path: Path) -> None:
    state = "cat <<'X'\nstate_history:\n - [ 1700000001, FULL ]\n - [ 1700000555, EVICTED ]\nX"
    node = make_node(tmp_path, SMALL_NODE, {"ipmitool": "echo 'Entries   : 12'", "lctl": state})
    values = parse_counters(probe("before", node), "before").values
    assert values["ipmi/sel_entries"] == "12"
    assert values["lustre/newest_eviction"] == "1700000555"


def test_a_busy_process_is_named(tmp_path: Path) -> None:
    stat = "77 (hog (x) y) R 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 5 1 1"
    node = make_node(tmp_path, SMALL_NODE | {"proc/77/stat": stat.format(100)})
    # While the probe sleeps between its samples, the process and the clock advance.
    burn = f"cd '{node}/proc'; echo '{stat.format(190)}' >77/stat; echo 101.00 1 >uptime"
    make_node(node, {}, {"sleep": burn})
    reading = parse_counters(probe("before", node), "before")
    assert [(p.pid, p.percent, p.command) for p in reading.busy] == [(77, 90, "hog (x) y")]
    assert "hog (x) y (90 %)" in str(disturbance(reading))


def test_an_idle_process_is_not_named(tmp_path: Path) -> None:
    stat = "77 (idle) S 1 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0 1 0 5 1 1"
    node = make_node(tmp_path, SMALL_NODE | {"proc/77/stat": stat})
    make_node(node, {}, {"sleep": f"echo 101.00 1 >'{node}/proc/uptime'"})
    reading = parse_counters(probe("before", node), "before")
    assert (reading.busy, disturbance(reading)) == ((), "")
