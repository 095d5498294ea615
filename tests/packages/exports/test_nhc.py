"""The configuration of LBNL Node Health Check: its syntax, its nodes, and hostile facts."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.fixtures.nhc_conf import FUNCTIONS, Line, matches, read_conf
from tests.fixtures.probes import node_facts
from tests.fixtures.stated import sourced
from tests.folders import PROBES

from proofmark.cli.main import main
from proofmark.common.nodesets import NAME
from proofmark.packages.exports.nhc import MemorySizes, checks_of, match_expressions
from proofmark.runs.run import Run
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.parts import MountedFileSystem, Nic, Port

HOSTILE = (
    "$(touch pwned)", "`touch pwned`", "a; touch pwned", "a || touch pwned", "a && touch pwned",
    "x\ntouch pwned", "a\\", "'; touch pwned; '", '"', "a|b", "*", "[a]", "{a}", "!a", "~", "#", "",
    "-e", "한", "a\r", "a\x00b", "${IFS}touch${IFS}pwned", ">pwned",
)  # fmt: skip
names = st.from_regex(NAME, fullmatch=True).filter(lambda name: len(name) < 40) | st.builds(
    "{}{:0{}d}{}".format,
    st.sampled_from(["n", "rack1-node", "x1c0s0b0n", "7n"]),
    st.integers(0, 120),
    st.integers(1, 3),
    st.sampled_from(["", "-ib", ".site.org", "_x"]),
)


def conf(facts: NodeFacts, scratch: str = "/scratch", temporary: str = "") -> list[str]:
    """Return the checks of one node as NHC reads them."""
    sizes = MemorySizes.of([facts.memory_total_bytes])
    return [f"{each}" for each in checks_of(facts, sizes, scratch, temporary) if each.words]


def exported(run: Run, folder: Path) -> str:
    assert main(["export", str(run.folder), "--format", "nhc", "-o", str(folder)]) == 0
    return (folder / "nhc.conf").read_text(encoding="utf-8")


def checks_on(lines: list[Line], host: str) -> list[str]:
    return [shlex.join(line.words) for line in lines if matches(line.target, host)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the configuration of 20 nodes: n07 is slow, n03 has less memory."""
    folder = tmp_path_factory.mktemp("fleet")
    rates = {f"n{number:02d}": 100.0 + number / 10 for number in range(20)}
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    total = next(line for line in probe.splitlines() if line.startswith("| MemTotal"))
    less = {"n03": {total: "| MemTotal: 100000000 kB"}}
    partition = {"node": sourced(memory={"bytes": 100_000_000 << 10})}
    run = fleet_run(folder, rates | {"n07": 50.0}, changes=less, partition=partition)
    return exported(run, folder / "out")


def test_accepted_nodes_have_checks_and_a_bad_node_has_none(fleet: str) -> None:
    lines = read_conf(fleet)
    assert checks_on(lines, "n07") == []
    assert "# nodes without checks, because the run found a fault: 1 (n07)" in fleet
    for host in ("n00", "n06", "n08", "n19"):
        assert "check_hw_cpuinfo 2 40 40" in checks_on(lines, host)
    assert checks_on(lines, "n20") == checks_on(lines, "login") == []


@pytest.mark.core("the package works")
def test_one_line_has_all_nodes_of_a_class(fleet: str) -> None:
    lines = read_conf(fleet)
    memory = [line for line in lines if line.words[0] == "check_hw_physmem"]
    assert len(memory) == 2
    assert sorted(line.words[1] for line in memory)[0] == "100000000k"
    cores = [line for line in lines if line.words[0] == "check_hw_cpuinfo"]
    assert [line.target for line in cores] == ["{n[00-06],n[08-19]}"]


@pytest.mark.parametrize(
    "probe", ["skl-2x6148", "knl-7250-quadrant-flat", "power9-ppc64le", "spr-vm"]
)
def test_the_checks_of_all_probes_are_those_of_nhc(probe: str) -> None:
    lines = [f"{{n1}} || {check}" for check in conf(node_facts(probe))]
    read = read_conf("\n".join(lines))
    assert len(read) == len(lines)
    assert {"check_hw_cpuinfo", "check_hw_physmem", "check_hw_swap"} <= {
        line.words[0] for line in read
    }


def changed(facts: NodeFacts, **changes: Any) -> NodeFacts:
    return facts.model_copy(update=changes)


def nic(**changes: Any) -> Nic:
    fields: dict[str, Any] = dict.fromkeys(Nic.model_fields)
    return Nic(**{**fields, "name": "ib0", "state": "up", **changes})


def port(**changes: Any) -> Port:
    fields: dict[str, Any] = dict.fromkeys(Port.model_fields)
    base = {"adapter": "mlx5_0", "port": "1", "state": "4: ACTIVE", "rate": "100 Gb/sec (4X EDR)"}
    return Port(**{**fields, **base, **changes})


def test_links_clocks_and_mounts_have_checks() -> None:
    facts = changed(
        node_facts("skl-2x6148"),
        modules=("ib_umad",),
        ports=(port(), port(port="2", state="1: DOWN")),
        nics=(nic(megabits=100000, link="x16 at 8.0 GT/s PCIe"), nic(name="eth1", state="down")),
        mounts=(
            MountedFileSystem(
                source="10.0.0.1@o2ib:/fs", target="/scratch", kind="lustre", options="rw"
            ),
            MountedFileSystem(source="nfs:/apps", target="/apps", kind="nfs4", options="ro,nosuid"),
            MountedFileSystem(source="/dev/sda1", target="/boot", kind="ext4", options="rw"),
        ),
        governor="performance",
        max_hz=2_400_000_000,
        turbo=False,
        clock_offset_s=1e-5,
    )
    checks = conf(facts)
    for check in (
        "check_hw_ib 100 mlx5_0:1",
        "check_hw_eth ib0",
        "check_file_contents /sys/class/net/ib0/speed 100000",
        "check_file_contents /sys/class/net/ib0/device/current_link_speed '8.0 GT/s PCIe'",
        "check_fs_mount_rw -t lustre -s 10.0.0.1@o2ib:/fs -f /scratch",
        "check_fs_mount_ro -t nfs4 -s nfs:/apps -f /apps",
        "check_file_contents /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor performance",
        "check_file_contents /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq 2400000",
        "check_cmd_output -m '/^Leap status *: Normal$/' chronyc -n tracking",
    ):
        assert check in checks
    assert not any("/boot" in check or "eth1" in check or ":2" in check for check in checks)
    assert not any("/scratch" in check for check in conf(facts, temporary="/scratch"))


def mount(source: str, target: str, kind: str, options: str = "rw") -> MountedFileSystem:
    return MountedFileSystem(source=source, target=target, kind=kind, options=options)


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        pytest.param(
            [
                mount("systemd-1", "/lustre", "autofs", "rw,fd=44,direct"),
                mount("mgs@tcp:/fs", "/lustre", "lustre"),
            ],
            ["check_fs_mount_rw -t lustre -s mgs@tcp:/fs -F /lustre"],
            id="systemd automount",
        ),
        pytest.param(
            [
                mount("/etc/auto.direct", "/apps/sw", "autofs", "rw,direct"),
                mount("nfs:/sw", "/apps/sw", "nfs4", "ro,hard"),
                mount("nfs:/data", "/apps", "nfs4"),
            ],
            [
                "check_fs_mount_ro -t nfs4 -s nfs:/sw -F /apps/sw",
                "check_fs_mount_rw -t nfs4 -s nfs:/data -f /apps",
            ],
            id="direct map",
        ),
        pytest.param(
            [
                mount("/etc/auto.home", "/home", "autofs", "rw,indirect"),
                mount("nfs:/home/all", "/home/all", "nfs"),
                mount("nfs:/homes", "/homes", "nfs"),
            ],
            [
                "check_fs_mount_rw -t nfs -s nfs:/home/all -F /home/all",
                "check_fs_mount_rw -t nfs -s nfs:/homes -f /homes",
            ],
            id="indirect map",
        ),
        pytest.param(
            [
                mount("/dev/sda2", "/", "ext4"),
                mount("systemd-1", "/scratch", "autofs", "rw,direct"),
            ],
            ["check_fs_mount_rw -t ext4 -s /dev/sda2 -f /"],
            id="not mounted now",
        ),
    ],
)
def test_nhc_lets_the_automounter_mount(
    mounts: list[MountedFileSystem], expected: list[str]
) -> None:
    """The option -F of NHC uses the folder first; an idle node has only the autofs there."""
    text = "\n".join(f"{m.source} {m.target} {m.kind} {m.options} 0 0" for m in mounts)
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    begin = probe.index("=== mounts\n") + len("=== mounts\n")
    lines = "".join(f"| {line}\n" for line in text.splitlines())
    probed = parse_probe(f"{probe[:begin]}{lines}{probe[probe.index('===', begin) :]}", "n1")
    for facts in (changed(FACTS, mounts=tuple(mounts)), probed):
        checks = [check for check in conf(facts) if check.startswith("check_fs_mount")]
        assert sorted(checks) == sorted(expected)


HOSTILE_FACTS: dict[str, Callable[[NodeFacts, str], NodeFacts]] = {
    "mount point": lambda facts, text: changed(
        facts, mounts=(MountedFileSystem(source="fs", target=f"/{text}", kind="nfs", options="rw"),)
    ),
    "source": lambda facts, text: changed(
        facts, mounts=(MountedFileSystem(source=text, target="/scratch", kind="nfs", options="rw"),)
    ),
    "scratch type": lambda facts, text: changed(
        facts, mounts=(MountedFileSystem(source="fs", target="/", kind=text, options="rw"),)
    ),
    "interface": lambda facts, text: changed(facts, nics=(nic(name=text),)),
    "link": lambda facts, text: changed(facts, nics=(nic(link=f"x16 at {text}"),)),
    "adapter": lambda facts, text: changed(facts, ports=(port(adapter=text),)),
    "rate": lambda facts, text: changed(facts, ports=(port(rate=f"{text} Gb/sec"),)),
    "governor": lambda facts, text: changed(facts, governor=text),
    "driver": lambda facts, text: changed(facts, frequency_driver=text),
}


@pytest.mark.fault("nhc-hostile-fact")
@pytest.mark.parametrize("fact", HOSTILE_FACTS)
def test_bash_executes_no_fact(fact: str, tmp_path: Path) -> None:
    """Bash reads and evaluates the lines as NHC does, with functions that do nothing."""
    sound = changed(node_facts("skl-2x6148"), modules=(), ports=(), nics=(), mounts=())
    lines = ["{n1} || check_hw_eth reached"]
    for text in HOSTILE:
        # A node with such a fact keeps its other checks.
        checks = conf(HOSTILE_FACTS[fact](sound, text))
        assert "check_hw_cpuinfo 2 40 40" in checks
        lines += [f"{{n1}} || {check}" for check in checks]
    text = "\n".join(lines) + "\n"
    read_conf(text)
    functions = "\n".join(f"{name}() {{ echo {name} >> ran; }}" for name in FUNCTIONS)
    script = f"set -f\n{functions}\nwhile read LINE; do eval ${{LINE#*||}}; done < nhc.conf\n"
    (tmp_path / "nhc.conf").write_text(text, encoding="utf-8")
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nhc.conf", "ran"]
    assert len((tmp_path / "ran").read_text().splitlines()) == len(lines)


@given(st.text())
def test_any_fact_keeps_the_syntax(text: str) -> None:
    sound = changed(FACTS, modules=(), ports=(), nics=(), mounts=())
    for change in HOSTILE_FACTS.values():
        read_conf("\n".join(f"{{n1}} || {check}" for check in conf(change(sound, text))))


FACTS = node_facts("skl-2x6148")


@given(st.sets(names, min_size=1, max_size=30), st.sets(names, max_size=10))
def test_a_match_expression_matches_exactly_its_nodes(chosen: set[str], others: set[str]) -> None:
    targets = match_expressions(chosen)
    assert len(targets) <= 2
    for host in chosen | others:
        assert sum(matches(target, host) for target in targets) == (host in chosen)


def test_ranges_have_one_width() -> None:
    assert match_expressions(f"n{number}" for number in range(8, 13)) == ["{n[8-9],n[10-12]}"]
    assert match_expressions(["login", "a.b1"]) == ["/^(a[.]b1|login)$/"]


def test_like_memory_is_one_class_and_a_lost_module_another() -> None:
    sizes = MemorySizes.of([1_000_000, 1_001_000, 1_004_000, 1_006_000, 984_000]).like
    assert sizes[1_001_000] == (1_000_000, 1_004_000)
    assert sizes[1_006_000] == (1_006_000, 1_006_000)
    assert sizes[984_000] == (984_000, 984_000)


def test_a_run_without_facts_of_nodes_has_no_configuration(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, {"n00": 100.0, "n01": 101.0})
    shutil.rmtree(run.folder / "workdir/jobs")
    assert main(["export", str(run.folder), "--format", "nhc", "-o", str(tmp_path / "out")]) == 3
