"""Which network carried the messages of a step between two virtual nodes with two links."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import Kit, execution, steps_of
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT
from tests.processes import namespace

from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.plan.step import Step
from proofmark.records.binding import HostNames
from proofmark.records.columns import Record
from proofmark.records.network import NetworkCheck, adapters_that_moved
from proofmark.runs.attempts import Attempt
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.site.fabric import Fabric, Network
from proofmark.site.inventory import Site

NODES = ("na1", "nb2")

LINKS = {"fast0": "10.91.1", "slow0": "10.91.2"}

BYTES = 80_000_000

LEAST = 64 << 20

MOVE = """
import socket, sys, time
role, address, count = sys.argv[1], (sys.argv[2], 7001), int(sys.argv[3])
if role == "receive":
    with socket.create_server(address) as server:
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 20):
                pass
else:
    for _ in range(600):
        try:
            connection = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
    with connection:
        connection.sendall(bytes(count))
"""

MOUNT = ["mount", "-t", "sysfs", "sysfs", "/sys"]

PRINTED = 'echo "size $1"; echo "rate 100"; echo END'

TREES = ROOT / "tests/data/sysfs"

MB = 10**6

START, END = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:03:00Z"

MISSING = "the counters of the networks were not recorded"

FAST = Network(kind="ethernet", interfaces=["fast0"])


@dataclass(frozen=True)
class Pair:
    """Two nodes in namespaces: their processes, and their folders for `PROBE_ROOT`."""

    processes: tuple[int, int]
    roots: tuple[Path, ...] = ()

    def enter(self, node: int) -> list[str]:
        return ["nsenter", f"--target={self.processes[node]}", "--net", "--uts", "--mount", "--"]

    def on_all(self) -> str:
        """Return the sh function that a scheduler writes into a job of several nodes."""
        lines = ["on_all() {"]
        for node in (0, 1):
            root = f"PROBE_ROOT={self.roots[node]}" if self.roots else "A=1"
            lines.append(f'{" ".join(self.enter(node))} env {root} sh "$@" &')
            lines.append(f"pid{node}=$!")
        # As srun: the job ends what waits on its nodes.
        lines.append('trap \'kill "$pid0" "$pid1" 2>/dev/null\' TERM')
        return "\n".join([*lines, 'wait "$pid0" && wait "$pid1"', "}", ""])


@contextmanager
def two_nodes(roots: Sequence[Path] = ()) -> Iterator[Pair]:
    """Start two nodes with a link for each of `LINKS`; each node sees only its own interfaces."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(namespace(name, "unshare", "--net")) for name in NODES]
        pair = Pair((nodes[0].pid, nodes[1].pid), tuple(roots))
        for number in (0, 1):  # sysfs shows the interfaces of the process that mounted it
            subprocess.run([*pair.enter(number), *MOUNT], check=True)
        for link, net in LINKS.items():
            ends = [f"name {link} netns {pid}" for pid in pair.processes]
            ip(pair.enter(0), f"link add {link} type veth peer {ends[1]}")
            for end in (0, 1):
                ip(
                    pair.enter(end),
                    f"addr add {net}.{end + 1}/24 dev {link}",
                    f"link set {link} up",
                )
        yield pair


def ip(inside: Sequence[str], *lines: str) -> None:
    subprocess.run(
        [*inside, "ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True
    )


def site_with_network(kit: Kit, network: Network | None, origin: str = "measured") -> Site:
    changes: dict[str, Any] = {"origin": origin, "scheduler": "slurm"}
    site = kit.site(hosts=NODES, fabric=Fabric(network=network), **changes)
    return site.model_copy(update={"aliases": {}})


def finished_run(kit: Kit, pair: Pair, at: Site) -> Run:
    """Run the job of both nodes on the first one."""
    run = kit.run(site=at)
    (script,) = (run.folder / "workdir/jobs").glob("*/job.sh")
    text = script.read_text(encoding="utf-8")
    assert "\nCOUNTED='" in text  # the function of these nodes replaces that of Slurm
    script.write_text(text.replace("\nCOUNTED='", f"\n{pair.on_all()}COUNTED='", 1))
    command = [*pair.enter(0), "sh", str(script)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300)
    return run


def records(kit: Kit, run: Run, at: Site) -> dict[int, Record]:
    """Return the records by the parameter `size`."""
    found = kit.records(run, at)
    return {int(dict(each.parameters)["size"]): each for each in found}


def case(kit: Kit, sizes: Sequence[int], **changes: Any) -> None:
    kit.case(sweep={"size": list(sizes), "nodes": 2}, network_bytes=LEAST, **changes)


def mover(kit: Kit, pair: Pair, count: int = BYTES) -> None:
    """Write a program that sends `count` bytes over the link with the number of its argument."""
    script = kit.folder / "move.py"
    script.write_text(MOVE, encoding="utf-8")
    move = shlex.join([sys.executable, str(script)])
    receive = f"{' '.join(pair.enter(1))} {move} receive"
    kit.program(
        f"case $1 in 1) to={LINKS['fast0']}.2 ;; *) to={LINKS['slow0']}.2 ;; esac\n"
        f'{receive} "$to" 0 &\n{move} send "$to" {count} && wait "$!" || exit 1\n{PRINTED}'
    )


@pytest.mark.root
@pytest.mark.fault("another-network-carried-the-messages")
def test_two_links_between_two_nodes(kit: Kit) -> None:
    """Size 1 uses the link that the inventory names (control), size 2 the other one (fault)."""
    case(kit, [1, 2])
    at = site_with_network(kit, Network(kind="ethernet", interfaces=["fast*"]))
    with two_nodes() as pair:
        mover(kit, pair)
        run = finished_run(kit, pair, at)
    found = records(kit, run, at)
    assert (found[1].valid, found[1].reason) == (True, "")
    assert not found[2].valid
    first, second = (found[2].reason or "").split("; ")
    for node, reason in zip(NODES, (first, second), strict=True):
        assert reason.startswith(f"{node}: slow0 (ethernet) carried 8")
        assert ", and ethernet (fast*) 0.0 MB, of at least 67.1 MB to and from" in reason
    emulated = site_with_network(kit, Network(kind="ethernet", interfaces=["fast*"]), "emulated")
    assert not records(kit, run, emulated)[2].valid


@pytest.mark.root
@pytest.mark.parametrize("network", [None, Network(kind="ethernet")])
def test_without_a_named_link_any_ethernet_is_valid(kit: Kit, network: Network | None) -> None:
    case(kit, [2])
    at = site_with_network(kit, network)
    with two_nodes() as pair:
        mover(kit, pair)
        run = finished_run(kit, pair, at)
    assert records(kit, run, at)[2].valid
    # The counters name the link that moved, also if the inventory names no network.
    moved = adapters_that_moved(run.files, run.plan.steps(), HostNames())
    assert moved == {node: {"slow0"} for node in NODES}
    (after,) = run.folder.glob(f"workdir/jobs/*/attempt-1/network/1-*/{NODES[0]}.after")
    after.write_text("end\n", encoding="utf-8")
    moved = adapters_that_moved(run.files, run.plan.steps(), HostNames())
    assert moved == {NODES[0]: set(), NODES[1]: {"slow0"}}


def program_of_tree(kit: Kit, roots: Sequence[Path], counters: Sequence[str], rise: int) -> None:
    """Write a program after which each of `counters` of both nodes is higher by `rise`."""
    lines = [
        f"read -r was <{path}; echo $((was + {rise})) >{path}"
        for root in roots
        for path in (root / "sys/class" / counter for counter in counters)
    ]
    kit.program("; ".join([*lines, PRINTED]))


@pytest.mark.root
@pytest.mark.fault("tcp-fallback-beside-fabric")
@pytest.mark.parametrize(
    ("tree", "how"),
    [
        *((tree, "control") for tree in ("infiniband", "infiniband-old-kernel", "omni-path")),
        *((tree, "fault") for tree in ("infiniband", "infiniband-old-kernel", "omni-path")),
        *((tree, "ip-over-infiniband") for tree in ("infiniband", "omni-path")),
    ],
)
def test_adapters_of_a_tree_of_sysfs(kit: Kit, tree: str, how: str) -> None:
    """Not tried on hardware. In the faults, TCP carries the messages over eth0, or over ib0."""
    roots = [kit.folder / name for name in NODES]
    for root in roots:
        shutil.copytree(TREES / tree, root)
    (adapter,) = (roots[0] / "sys/class/infiniband").iterdir()
    extended = "_ext" if tree == "infiniband-old-kernel" else ""
    unit = 8 if tree == "omni-path" else 4
    port = f"infiniband/{adapter.name}/ports/1/counters{extended}/port_xmit_data"
    port += "_64" if extended else ""
    kind: Any = "omni-path" if tree == "omni-path" else "infiniband"
    case(kit, [1])
    at = site_with_network(kit, Network(kind=kind))
    with two_nodes(roots) as pair:
        if how == "control":
            program_of_tree(kit, roots, [port], BYTES // unit)
        else:
            name = "eth0" if how == "fault" else "ib0"
            program_of_tree(kit, roots, [f"net/{name}/statistics/tx_bytes"], BYTES)
        run = finished_run(kit, pair, at)
    record = records(kit, run, at)[1]
    assert record.valid is (how == "control")
    carrier = "eth0 (ethernet)" if how == "fault" else "ib0 (ip-over-infiniband)"
    expected = (
        f"na1: {carrier} carried 80.0 MB, and {kind} 0.0 MB, of at least 67.1 MB to and from "
        "the node"
    )
    assert how == "control" or (record.reason or "").split("; ")[0] == expected


@pytest.mark.root
class TestSamples:
    """The samples of a run whose program raised the counters of Omni-Path."""

    @pytest.fixture
    def run(self, kit: Kit) -> Run:
        roots = [kit.folder / name for name in NODES]
        for root in roots:
            shutil.copytree(TREES / "omni-path", root)
        case(kit, [1])
        port = "infiniband/hfi1_0/ports/1/counters/port_xmit_data"
        program_of_tree(kit, roots, [port], BYTES // 8)
        with two_nodes(roots) as pair:
            return finished_run(kit, pair, site_with_network(kit, Network(kind="omni-path")))

    @pytest.mark.fault("network-counters-missing")
    def test_missing_and_damaged_samples(self, kit: Kit, run: Run) -> None:
        at = site_with_network(kit, Network(kind="omni-path"))
        emulated = site_with_network(kit, Network(kind="omni-path"), "emulated")
        assert records(kit, run, at)[1].valid  # the control
        (folder,) = run.folder.glob("workdir/jobs/*/attempt-1/network/1-*")
        damaged = folder / "nb2.after"
        whole = damaged.read_text(encoding="utf-8")
        damaged.write_text(whole.replace("end\n", ""), encoding="utf-8")
        reason = records(kit, run, at)[1].reason
        assert reason == "nb2: the counters of its networks cannot be read: no line 'end'"
        damaged.unlink()
        reason = records(kit, run, at)[1].reason
        assert reason == "nb2: the counters of its networks were not recorded"
        assert records(kit, run, emulated)[1].valid
        shutil.rmtree(folder.parent)
        assert records(kit, run, at)[1].reason == "the counters of the networks were not recorded"
        assert records(kit, run, emulated)[1].valid

    def test_samples_of_another_time_are_not_used(self, kit: Kit, run: Run) -> None:
        """A job may execute a step several times: the samples around the execution count."""
        at = site_with_network(kit, Network(kind="omni-path"))
        (folder,) = run.folder.glob("workdir/jobs/*/attempt-1/network/1-*")
        late = folder.with_name(folder.name.replace("1-", "2-", 1))
        folder.rename(late)
        shutil.copytree(late, folder)
        for path in folder.iterdir():  # the first execution ended a year before
            text = path.read_text(encoding="utf-8").replace("sample 2", "sample 1")
            path.write_text(text.replace("hfi1_0", "mlx5_0"), encoding="utf-8")
        assert records(kit, run, at)[1].valid
        shutil.rmtree(late)
        assert records(kit, run, at)[1].reason == "the counters of the networks were not recorded"

    def test_an_execution_by_hand_has_no_samples(self, kit: Kit, run: Run) -> None:
        (step,) = steps_of(run)
        command = ["unshare", "--uts", "sh", "-c", f"hostname {NODES[0]}; sh {step}/run.sh"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300)
        assert execution(step, 2).exists()
        at = site_with_network(kit, Network(kind="omni-path"))
        found = list(kit.records(run, at))
        assert [each.valid for each in found] == [True, True]


def test_a_step_that_moves_little_is_not_checked(kit: Kit) -> None:
    for least, checked in ((LEAST, LEAST), (LEAST - 1, 0)):
        kit.case(sweep={"size": 1, "nodes": 2}, network_bytes=least)
        (step,) = kit.plan(site=site_with_network(kit, Network(kind="infiniband"))).steps()
        assert step.network_bytes == checked
    kit.case(sweep={"size": 1}, network_bytes=LEAST)
    (step,) = kit.plan(site=site_with_network(kit, Network(kind="infiniband"))).steps()
    assert step.network_bytes == 0


def test_cases_between_nodes_state_their_bytes() -> None:
    cases = shipped_benchmarks().cases
    assert {name for name, each in cases.items() if each.network_bytes} == {
        *("hpl", "hpcc", "imb-collectives", "osu-bibw"),
        *("osu-bw", "osu-latency", "osu-mbw-mr", "osu-collectives", "osu-contention"),
    }


def sample(date: str, **megabytes: int) -> str:
    """Return the counters of interfaces, without the line ``end``; no time passes."""
    lines = [
        f"interface {name} 1 {count * MB} 0 -" for name, count in {"fast0": 0, **megabytes}.items()
    ]
    return "\n".join([f"sample {date} 1.0", *lines, ""])


def a_step(**changes: Any) -> Step:
    """Return a step that moves at least 100 MB."""
    return Step.model_construct(**{"id": "0001-fake", "network_bytes": 100 * MB, **changes})


def an_execution(**changes: Any) -> Attempt:
    fields: dict[str, Any] = {
        "number": 1,
        "path": "",
        "rc": 0,
        "host": "n1",
        "start": START,
        "end": END,
        "timed_out": False,
        "seconds": 60.0,
        "binding": b"",
        "job_attempt": "j1/attempt-1",
    }
    return Attempt(**{**fields, **changes})


class Job:
    """The samples of an attempt of a job."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.samples = run / "workdir/jobs/j1/attempt-1/network"

    def write(
        self,
        name: str = "1-0001-fake",
        host: str = "n1",
        dates: tuple[str, str] = (START, END),
        **megabytes: int,
    ) -> Path:
        """Write the samples before and after a step; `megabytes` moved meanwhile."""
        folder = self.samples / name
        folder.mkdir(parents=True, exist_ok=True)
        none = dict.fromkeys(megabytes, 0)
        (folder / f"{host}.before").write_text(sample(dates[0], **none) + "end\n")
        (folder / f"{host}.after").write_text(sample(dates[1], **megabytes) + "end\n")
        return folder

    def reason(
        self,
        step: Step | None = None,
        nodes: Sequence[str] = ("n1",),
        names: HostNames | None = None,
        *,
        required: bool = True,
        network: Network = FAST,
        **execution: Any,
    ) -> str:
        check = NetworkCheck(RunFiles(self.run), network, names or HostNames(), required=required)
        return check.invalid_reason(step or a_step(), nodes, an_execution(**execution))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def carried(node: str = "n1") -> str:
    return (
        f"{node}: slow0 (ethernet) carried 80.0 MB, and ethernet (fast0) 0.0 MB, of at least "
        "100.0 MB to and from the node"
    )


class TestShare:
    def test_the_intended_network(self, job: Job) -> None:
        """Control: every condition holds."""
        job.write(fast0=100)
        assert job.reason() == ""

    @pytest.mark.parametrize(("slow", "invalid"), [(49, False), (50, True), (80, True)])
    def test_another_network_carried_half_of_the_least_bytes(
        self, job: Job, slow: int, invalid: bool
    ) -> None:
        job.write(slow0=slow)
        assert bool(job.reason()) is invalid

    @pytest.mark.parametrize(("slow", "invalid"), [(99, False), (100, True)])
    def test_another_network_carried_a_tenth_of_the_intended_one(
        self, job: Job, slow: int, invalid: bool
    ) -> None:
        job.write(fast0=1000, slow0=slow)
        assert bool(job.reason()) is invalid

    def test_the_other_networks_count_together_and_the_largest_is_named(self, job: Job) -> None:
        job.write(a0=20, b0=30, c0=10)
        assert job.reason() == (
            "n1: b0 (ethernet) carried 30.0 MB, and ethernet (fast0) 0.0 MB, of at least "
            "100.0 MB to and from the node"
        )

    def test_the_bytes_of_the_intended_network_are_named(self, job: Job) -> None:
        job.write(fast0=70, slow0=60)
        assert ", and ethernet (fast0) 70.0 MB, of at least 100.0 MB" in job.reason()

    def test_each_node_is_named(self, job: Job) -> None:
        job.write(host="n1", slow0=80)
        job.write(host="n2", slow0=80)
        job.write(host="n3", fast0=80)
        nodes = ("n1", "n2", "n3")
        assert job.reason(nodes=nodes) == f"{carried('n1')}; {carried('n2')}"


class TestUnchecked:
    def test_a_step_whose_least_bytes_are_not_known(self, job: Job) -> None:
        job.write(slow0=80)
        assert job.reason() == carried()
        assert job.reason(a_step(network_bytes=0)) == ""

    @pytest.mark.parametrize("attempt", [None, ""])
    def test_an_execution_by_hand(self, job: Job, attempt: str | None) -> None:
        job.write(slow0=80)
        assert job.reason(job_attempt=attempt) == ""

    @pytest.mark.parametrize("attempt", ["j1/attempt-2", "j2/attempt-1"])
    def test_an_attempt_without_samples(self, job: Job, attempt: str) -> None:
        job.write(slow0=80)
        assert job.reason(job_attempt=attempt) == MISSING
        assert job.reason(job_attempt=attempt, required=False) == ""

    @pytest.mark.parametrize("attempt", ["../jobs/j1/attempt-1", "j1/attempt-1/x", "j1/attempt-x"])
    def test_a_name_that_is_no_attempt(self, job: Job, attempt: str) -> None:
        job.write(slow0=80)
        (job.run / "workdir/jobs/j1/attempt-x").symlink_to(job.run / "workdir/jobs/j1/attempt-1")
        assert job.reason(job_attempt=attempt) == MISSING

    def test_a_file_in_the_place_of_the_folder(self, job: Job) -> None:
        job.samples.parent.mkdir(parents=True)
        job.samples.write_text("")
        assert job.reason() == MISSING


class TestAround:
    """The samples around an execution: a job may execute a step several times."""

    @pytest.mark.parametrize(
        ("before", "after", "found"),
        [
            (START, END, True),
            (EARLY, LATE, True),
            (END, LATE, False),
            (EARLY, START, False),
            (LATE, EARLY, False),
        ],
    )
    def test_the_execution_is_between_the_samples(
        self, job: Job, before: str, after: str, found: bool
    ) -> None:
        job.write(dates=(before, after), slow0=80)
        assert job.reason() == (carried() if found else MISSING)

    def test_the_last_sample_before_the_step_counts(self, job: Job) -> None:
        folder = job.write(slow0=80)
        path = folder / "n1.before"
        late = sample(END, slow0=0).replace("1.0", "2.0")
        path.write_text(sample(EARLY, slow0=0) + late + "end\n")
        assert job.reason() == MISSING

    def test_the_last_sample_after_the_step_counts(self, job: Job) -> None:
        folder = job.write(slow0=80)
        path = folder / "n1.after"
        path.write_text(sample(EARLY, slow0=0) + sample(LATE, slow0=80) + "end\n")
        assert job.reason() == carried()

    def test_the_first_folder_by_number_is_used(self, job: Job) -> None:
        job.write("10-0001-fake", slow0=80)
        job.write("9-0001-fake", fast0=80)
        assert job.reason() == ""

    @pytest.mark.parametrize("name", ["1-0002-fake", "x-0001-fake", "0001-fake", "10001-fake"])
    def test_folders_of_other_steps_are_not_used(self, job: Job, name: str) -> None:
        job.write(name, slow0=80)
        assert job.reason() == MISSING
        job.write("2-0001-fake", fast0=80)
        assert job.reason() == ""

    def test_a_folder_without_samples_of_the_node_is_passed_over(self, job: Job) -> None:
        job.write("1-0001-fake", host="n2", fast0=80)
        assert job.reason() == MISSING
        job.write("2-0001-fake", slow0=80)
        assert job.reason() == carried()

    def test_samples_of_a_step_on_other_nodes_are_those_of_the_host(self, job: Job) -> None:
        """The clock is that of the node that started the ranks."""
        job.write(host="n1", dates=(EARLY, START), fast0=80)
        job.write(host="n2", dates=(START, END), slow0=80)
        assert job.reason(nodes=("n2",), host="n2") == carried("n2")
        assert job.reason(nodes=("n2",), host="n1") == MISSING


class TestHosts:
    def test_a_node_may_report_another_name(self, job: Job) -> None:
        job.write(host="login7", slow0=80)
        assert job.reason() == MISSING
        assert job.reason(names=HostNames({"n1": ["login7"]})) == carried()

    def test_a_node_without_samples(self, job: Job) -> None:
        folder = job.write(fast0=80)
        (folder / "n2.before").write_text("")
        reason = "n2: the counters of its networks were not recorded"
        assert job.reason(nodes=("n1", "n2")) == reason
        assert job.reason(nodes=("n1", "n2"), required=False) == ""


class TestDamage:
    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("required", [True, False])
    def test_samples_of_the_first_node(self, job: Job, moment: str, required: bool) -> None:
        (job.write(fast0=80) / f"n1.{moment}").write_text("sample")
        reason = "the counters of the networks cannot be read: no line 'end'"
        assert job.reason(required=required) == reason

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("required", [True, False])
    def test_samples_of_another_node(self, job: Job, moment: str, required: bool) -> None:
        job.write(fast0=80)
        (job.write(host="n2", fast0=80) / f"n2.{moment}").write_text("sample")
        reason = "n2: the counters of its networks cannot be read: no line 'end'"
        assert job.reason(nodes=("n1", "n2"), required=required) == reason

    def test_a_long_reason_is_cut(self, job: Job) -> None:
        deep = Job(job.run / ("x" * 200))
        (deep.write(fast0=80) / "n1.before").unlink()
        start = "the counters of the networks cannot be read: "
        assert deep.reason().startswith(f"{start}[Errno 2] No such file or directory: ")
        assert len(deep.reason()) == len(start) + 200

    def test_a_file_that_is_too_large(self, job: Job) -> None:
        path = job.write(fast0=80) / "n1.after"
        path.write_text(path.read_text().replace("end\n", "\n" * MAX_PROBE_BYTES + "end\n"))
        assert job.reason().startswith("the counters of the networks cannot be read: ")
