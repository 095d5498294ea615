"""The nodes that each scheduler lists, from recorded outputs and from those of the manuals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import DATA

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import unfold
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import SCHEDULERS, Ask, QueueLimits
from proofmark.packages.survey.answers import ListedNode, kinds_of
from proofmark.packages.survey.listings import LISTINGS, in_order

FILES = DATA / "schedulers"
GIB = 2**30
NODE = "scontrol --all --oneliner show node"
PARTITIONS = "scontrol --all --oneliner show partition"
SWITCHES = "scontrol --oneliner show topology"


def recorded(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def answers(outputs: Mapping[str, str]) -> Ask:
    """Return an `Ask` that refuses every other command line, as the real programs do."""

    def ask(*command: str) -> str:
        if " ".join(command) not in outputs:
            raise NodeError(Outcome.UNEXPECTED, f"usage: {' '.join(command)}")
        return outputs[" ".join(command)]

    return ask


def nodes(scheduler: str, outputs: Mapping[str, str]) -> list[ListedNode]:
    return LISTINGS.get(scheduler)().nodes(answers(outputs))


class TestSlurm:
    def test_nodes_have_the_hardware_of_slurm_conf(self) -> None:
        listed = nodes("slurm", {NODE: recorded("slurm-nodes.txt")})
        assert listed[0] == ListedNode(
            name="knl0001",
            kind=("Sockets=1", "CoresPerSocket=68", "ThreadsPerCore=4"),
            memory_bytes=96 * GIB,
            groups=("knl",),
        )
        (kind,) = kinds_of(listed)
        assert (kind.name, kind.groups) == ("knl", ("knl",))
        assert kind.names == ["knl0001", "knl0002", "knl0003", "knl0004"]

    def test_a_reason_cannot_rename_a_node(self) -> None:
        first = recorded("slurm-nodes.txt").splitlines()[0]
        (node,) = nodes("slurm", {NODE: f"{first} Reason=NodeName=evil RealMemory=1 [root]\n"})
        assert (node.name, node.memory_bytes) == ("knl0001", 96 * GIB)

    def test_the_name_that_a_node_reports_is_an_alias(self) -> None:
        first = recorded("slurm-nodes.txt").splitlines()[0]
        changed = first.replace("NodeHostName=knl0001", "NodeHostName=c1")
        (node,) = nodes("slurm", {NODE: changed})
        assert node.alias == "c1"

    def test_partitions_have_their_limits(self) -> None:
        recorded_line = recorded("slurm-partitions.txt").strip()
        limited = recorded_line.replace("PartitionName=knl", "PartitionName=short")
        for old, new in (
            ("Default=YES", "Default=NO"),
            ("MaxNodes=UNLIMITED", "MaxNodes=16"),
            ("MaxTime=UNLIMITED", "MaxTime=1-12:30:05"),
        ):
            limited = limited.replace(old, new)
        ask = answers({PARTITIONS: f"{recorded_line}\n{limited}\n"})
        source = "scontrol show partition"
        assert SCHEDULERS.get("slurm")().queue_limits(ask) == {
            "knl": QueueLimits(default=True, source=source),
            "short": QueueLimits(max_walltime_s=131405, max_nodes=16, source=source),
        }

    def test_the_default_is_the_first_of_equal_partitions(self) -> None:
        printed = recorded("slurm-nodes.txt").replace("Partitions=knl", "Partitions=a,b,knl")
        listed = nodes("slurm", {NODE: printed})
        (kind,) = kinds_of(listed, {"knl": QueueLimits(default=True)})
        assert (kind.name, kind.groups) == ("knl", ("knl", "a", "b"))

    def test_switches_of_switches_have_no_nodes_of_their_own(self) -> None:
        listing = LISTINGS.get("slurm")()
        text = listing.fabric(answers({SWITCHES: recorded("slurm-topology.txt")}))
        assert text.splitlines() == [
            "SwitchName=leaf1 Nodes=knl[0001-0002]",
            "SwitchName=leaf2 Nodes=knl[0003-0004]",
            "SwitchName=spine Switches=leaf[1-2]",
        ]

    def test_a_cluster_without_switches_has_an_empty_fabric(self) -> None:
        assert LISTINGS.get("slurm")().fabric(answers({SWITCHES: ""})) == ""


class TestPbs:
    def test_virtual_nodes_of_a_host_are_added(self) -> None:
        listed = nodes("pbs", {"pbsnodes -a -F json": recorded("pbsnodes.json")})
        kinds = {kind.name: kind for kind in kinds_of(listed)}
        assert {name: kind.names for name, kind in kinds.items()} == {
            "workq": ["cn001", "cn002"],  # also the node that is down
            "smp": ["smp1"],
        }
        (smp,) = kinds["smp"].nodes
        assert smp.kind == ("CPUs=96",)
        assert smp.memory_bytes == 2 * 528482304 * 1024

    def test_queues_have_their_limits(self) -> None:
        queues = {
            "workq": {"queue_type": "Execution", "enabled": "True", "started": "True"},
            "night": {
                "queue_type": "Execution",
                "enabled": "True",
                "started": "False",
                "resources_max": {"walltime": "12:00:00", "nodect": 4},
            },
            "all": {"queue_type": "Route", "enabled": "True", "started": "True"},
        }
        most = {"walltime": "48:00:00", "ncpus": 64}
        server = {"pbs01": {"default_queue": "all", "resources_max": most}}
        outputs = {
            "qstat -Q -f -F json": json.dumps({"Queue": queues}),
            "qstat -B -f -F json": json.dumps({"Server": server}),
        }
        source = "qstat -Q -f"
        assert SCHEDULERS.get("pbs")().queue_limits(answers(outputs)) == {
            "workq": QueueLimits(max_walltime_s=172800, max_cpus=64, source=source),
            "night": QueueLimits(
                max_walltime_s=43200,
                max_nodes=4,
                max_cpus=64,
                closed="started=False",
                source=source,
            ),
            "all": QueueLimits(default=True, max_walltime_s=172800, max_cpus=64, source=source),
        }


class TestGridEngine:
    def test_execution_hosts_have_their_queues(self) -> None:
        outputs = {"qconf -sel": "knl0001\nknl0002\n", "qhost -q -xml": recorded("sge-qhost.xml")}
        listed = nodes("sge", outputs)
        assert [(node.name, node.groups) for node in listed] == [
            ("knl0001", ("all.q",)),
            ("knl0002", ("all.q",)),
        ]
        assert listed[0].kind == ("num_proc=2", "m_socket=1", "arch_string=lx-amd64")
        assert listed[0].memory_bytes == round(23.5 * GIB)
        (kind,) = kinds_of(listed)
        assert (kind.name, kind.groups) == ("all_q", ("all.q",))

    def test_queues_have_the_time_that_all_of_their_hosts_grant(self) -> None:
        form = "qname                 {}\nslots                 4\nh_rt                  {}\n"
        times = {"all.q": "36:00:00", "long.q": "INFINITY", "some.q": "1:0:0,[n1=9:0:0]"}
        printed = "".join(form.format(*each) for each in times.items())
        outputs = {"qconf -sql": "\n".join(times), "qconf -sq all.q,long.q,some.q": printed}
        assert SCHEDULERS.get("sge")().queue_limits(answers(outputs)) == {
            "all.q": QueueLimits(default=True, max_walltime_s=129600, source="qconf -sq"),
            "long.q": QueueLimits(source="qconf -sq"),
            "some.q": QueueLimits(source="qconf -sq"),
        }

    def test_a_host_that_only_administers_is_left_out(self) -> None:
        outputs = {"qconf -sel": "knl0002\n", "qhost -q -xml": recorded("sge-qhost.xml")}
        assert [node.name for node in nodes("sge", outputs)] == ["knl0002"]


def test_classes_of_loadleveler_have_their_wall_clock_limits() -> None:
    """In the form that two public clients read: NorduGrid ARC and gip."""
    form = (
        "=============== Class {0} ===============\n                Name: {0}\n"
        "            Priority: 50\n    Wall_clock_limit: {1}\n"
        "Def_wall_clock_limit: 0+00:10:00, 0+00:10:00 (600 seconds, 600 seconds)\n"
        "       Maximum_slots: 64\n{2}\n"
    )
    times = {
        "normal": "0+12:00:00, 0+11:50:00 (43200 seconds, 42600 seconds)",
        "long": "undefined, undefined",
    }
    printed = "".join(form.format(*each, "-" * 80) for each in times.items())
    assert SCHEDULERS.get("loadleveler")().queue_limits(answers({"llclass -l": printed})) == {
        "normal": QueueLimits(max_walltime_s=43200, source="llclass -l"),
        "long": QueueLimits(source="llclass -l"),
    }


class TestLsf:
    OUTPUTS = {
        "bhosts -X -w": recorded("lsf-bhosts.txt"),
        "lshosts -w": recorded("lsf-lshosts.txt"),
    }

    def test_queues_have_their_run_limits(self) -> None:
        queue = (
            "QUEUE: {}\n  -- For jobs.\n\nPARAMETERS/STATISTICS\n"
            "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV\n"
            " 30   20  {}       -    -    -    -     0     0     0     0     0    0\n\n{}"
        )
        limits = "DEFAULT LIMITS:\n RUNLIMIT\n 10.0 min\n\nMAXIMUM LIMITS:\n RUNLIMIT\n 90.0 min\n"
        limits += " TASKLIMIT\n 1 8 16\n"
        printed = f"{queue.format('normal', 'Open:Active', limits)}{'-' * 20}\n"
        printed += queue.format("night", "Open:Inact_Win", "")
        found = SCHEDULERS.get("lsf")().queue_limits(answers({"bqueues -l": printed}))
        assert found == {
            "normal": QueueLimits(max_walltime_s=5400, max_cpus=16, source="bqueues -l"),
            "night": QueueLimits(closed="Open:Inact_Win", source="bqueues -l"),
        }

    def test_hosts_with_slots_are_divided_by_their_model(self) -> None:
        groups = {"bmgroup -r -w": recorded("lsf-bmgroup.txt")}
        kinds = kinds_of(nodes("lsf", {**self.OUTPUTS, **groups}))
        assert {kind.name: kind.names for kind in kinds} == {
            "power": ["p9n01", "p9n02"],
            "x86n": ["x86n01"],
        }
        assert kinds[0].kind_texts == ("ncpus=44", "type=LINUXPPC64LE", "model=POWER9")

    def test_a_cluster_without_host_groups_is_listed(self) -> None:
        listed = nodes("lsf", self.OUTPUTS)
        assert [node.groups for node in listed] == [(), (), ()]


BROKEN: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    "flux": lambda text: {"flux resource R --states=all": text},
    "slurm": lambda text: {NODE: text},
    "pbs": lambda text: {"pbsnodes -a -F json": text},
    "sge": lambda text: {"qconf -sel": "n1\n", "qhost -q -xml": text},
    "lsf": lambda text: {"bhosts -X -w": text, "lshosts -w": ""},
}


@pytest.mark.parametrize("text", ["", "No nodes in the system", '{"nodes": [1]}', "<a>"])
@pytest.mark.parametrize("scheduler", sorted(BROKEN))
def test_an_output_of_another_form_is_reported_with_its_command(scheduler: str, text: str) -> None:
    if (scheduler, text) == ("sge", "<a>"):
        text = "<a"
    with pytest.raises(NodeError, match=LISTINGS.get(scheduler)().program):
        nodes(scheduler, BROKEN[scheduler](text))


def test_every_listing_is_tried() -> None:
    assert sorted(BROKEN) == LISTINGS.names()


@pytest.mark.fault("init-unknown-scheduler")
def test_an_unknown_scheduler_has_a_suggestion() -> None:
    with pytest.raises(BadInput, match=r"--scheduler: found 'slrum', did you mean 'slurm'\?"):
        LISTINGS.get("slrum")


@given(st.lists(st.integers(0, 200), min_size=1, max_size=30, unique=True))
def test_a_host_list_keeps_the_order_of_its_text(numbers: list[int]) -> None:
    names = [f"n{number}" for number in numbers]
    assert in_order(",".join(names)) == names
    assert in_order(f"n[{','.join(map(str, numbers))}]") == names
    assert sorted(in_order(f"n[{','.join(map(str, numbers))}]")) == sorted(unfold(names))


def test_a_host_list_has_ranges_in_any_order() -> None:
    assert in_order("r2,n[9,1-2]b[2,1],a[08-09]") == [
        *("r2", "n9b2", "n9b1", "n1b2", "n1b1", "n2b2", "n2b1", "a08", "a09")
    ]
    with pytest.raises(ValueError, match="no ascending range"):
        in_order("n[2-1]")
