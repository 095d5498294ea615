"""The scratch directory on all nodes of a run: three nodes, each with its mounts and host name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.fixtures.kit import make_kit, until
from tests.folders import let_all_enter
from tests.processes import namespace

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import fold
from proofmark.common.rights import this_user
from proofmark.machine import node_commands
from proofmark.machine.node_commands import SCRIPTS, script_text
from proofmark.machine.scratch_stage import check, nodes_of, unmount, verify
from proofmark.runs.identity import write_identity
from proofmark.runs.journal import Journal, unverified
from proofmark.runs.run import Run, open_run, site_of
from proofmark.runs.state import begin
from proofmark.site.file_systems import FileSystem, Scratch
from proofmark.site.firmware import Firmware

pytestmark = [pytest.mark.root, pytest.mark.rest("each file system is mounted on three nodes")]
NODES = ("n1", "n2", "n3")
REACH = """#!/bin/sh
# Enters the namespace of a node; without its process the node is without power.
pid=$(cat {folder}/$1.pid) && [ -d /proc/$pid ] || {{ echo "no route to host" >&2; exit 255; }}
export PATH={folder}/bin:$PATH PROOFMARK_NOTES={folder}/notes-$1 NODE=$1
[ ! -e {folder}/$1.mounts ] || export PROOFMARK_MOUNTS={folder}/$1.mounts
echo $1 >>{folder}/starts
exec nsenter --mount --uts --net -t $pid {squash} sh -s
"""
SQUASHED = "setpriv --bounding-set=-dac_override,-dac_read_search,-chown,-fowner"
"""The command as root without the rights of root, as under root squash."""


@dataclass
class World:
    """Three nodes, and a run on them."""

    folder: Path
    holders: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, *, table: bool = False, squash: str = "", network: str = "") -> None:
        """Start the nodes.

        Args:
            table: whether a file is the table of mounts of each node.
            squash: a command before the shell of each node.
            network: the id of a process whose network they share.
        """
        (self.folder / "bin").mkdir()
        script = self.folder / "reach.sh"
        script.write_text(REACH.format(folder=self.folder, squash=squash))
        for node in NODES:
            enter = ["nsenter", "--net", "-t", network] if network else []
            holder = self.stack.enter_context(namespace(node, *enter))
            self.holders[node] = holder
            (self.folder / f"{node}.pid").write_text(f"{holder.pid}")
            if table:
                (self.folder / f"{node}.mounts").write_text("/dev/vda1 / ext4 rw 0 0\n")

    def tool(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def on(self, node: str, *command: str) -> None:
        enter = ["nsenter", "--mount", "--uts", "-t", f"{self.holders[node].pid}"]
        subprocess.run([*enter, *command], check=True)

    def starts(self) -> Counter[str]:
        """Return how often each node was started since the last call."""
        log = self.folder / "starts"
        counted = Counter(log.read_text().split())
        log.write_text("")
        return counted

    def kill(self, node: str) -> None:
        holder = self.holders.pop(node)
        holder.kill()
        holder.wait()

    def run(
        self,
        demand: Mapping[str, Any],
        sweep: Mapping[str, Any] | None = None,
        *,
        max_failures: int = 0,
        **facts: Any,
    ) -> Run:
        kit = make_kit(self.folder / "kit")
        sweep = {"size": [1], "nodes": 3, **(sweep or {})}
        kit.case(suites={"quick": {"scope": "job", "sweep": sweep}})
        site = kit.site(hosts=NODES)
        changes = {
            "scheduler": "slurm",
            "scratch": Scratch.model_validate(demand),
            "firmware": Firmware(back_end="manual", max_failures=max_failures),
            **facts,
        }
        partition = site.partition.model_copy(update=changes)
        reach = ["sh", f"{self.folder}/reach.sh", "{node}"]
        return kit.run(site=site.model_copy(update={"partition": partition, "remote_shell": reach}))

    def end(self) -> None:
        self.stack.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.stack:
        yield made


def act(verb: str, run: Run, **more: Any) -> list[str]:
    """Do what `proofmark scratch` does; return the nodes on which something changed."""
    state, site = begin(run), site_of(run)
    if verb == "unmount":
        return fold(sorted(unmount(state.folder, site)))
    nodes = nodes_of(run, state.folder, site, **more)
    return fold(sorted(set({"check": check, "verify": verify}[verb](nodes))))


@pytest.mark.core("one use of a scratch directory")
def test_a_directory_is_verified_on_all_nodes_and_left_empty(world: World) -> None:
    """Control: no fault is injected."""
    world.start()
    run = world.run({"path": f"{world.folder}/scratch"})
    assert act("check", run) == []
    assert not (world.folder / "scratch").exists()
    assert act("verify", run) == ["n1"], "the first node makes it for all"
    assert list((world.folder / "scratch").iterdir()) == []
    assert act("verify", run) == []
    text = run.files.scratch_probe.read_text()
    assert [f"| hostname: {node}" in text for node in NODES] == [True] * 3


@pytest.mark.core("the starts of nodes are the time of a large play")
def test_a_directory_that_is_ready_needs_one_start_of_each_node(world: World) -> None:
    """One that is not ready needs two: nothing is made before all nodes have looked."""
    world.start()
    scratch = world.folder / "scratch"
    run = world.run({"path": f"{scratch}"}, max_failures=1)
    act("verify", run)
    made = world.starts()
    assert (made["n2"], made["n3"]) == (2, 2)
    scratch.chmod(0o755)  # as a site that has made it
    act("verify", run)
    ready = world.starts()
    assert (ready["n2"], ready["n3"]) == (1, 1)
    assert ready["n1"] <= 4, "it also writes the file that the others read, and removes it"
    world.kill("n1")
    assert act("verify", run) == []
    assert world.starts()["n3"] == 2, "the first node has failed, so all look"
    assert list(scratch.iterdir()) == []


@pytest.mark.fault("another-file-system")
def test_a_node_of_another_file_system_writes_nothing(world: World) -> None:
    """It also starts once if the directory is ready on the first node."""
    world.start()
    point = world.folder / "scratch"
    point.mkdir()
    run = world.run({"path": f"{point}"})
    world.on("n3", "mount", "-t", "tmpfs", "none", f"{point}")
    world.on("n3", "mount", "-o", "remount,ro", f"{point}")
    text = refusal(run)
    assert "one file system on all nodes" in text
    assert "Read-only" not in text, "it has not tried"
    assert world.starts()["n3"] == 1


def refusal(run: Run, **more: Any) -> str:
    with pytest.raises(BadInput) as refused:
        act("verify", run, **more)
    return str(refused.value)


@pytest.mark.fault("another-file-system")
def test_one_node_sees_another_file_system(world: World) -> None:
    """A tmpfs on each node: type, source and size are equal, but the file of n1 is missing."""
    world.start()
    point = world.folder / "scratch"
    point.mkdir()
    for node in NODES:
        world.on(node, "mount", "-t", "tmpfs", "none", f"{point}")
    run = world.run({"path": f"{point}"})
    text = refusal(run)
    assert "on n[2-3]: found" in text and "one file system on all nodes" in text


@pytest.mark.fault("scratch-root-squash")
@pytest.mark.parametrize("user", [None, "nobody"])
def test_a_directory_that_squashes_root_is_refused_for_root(world: World, user: str | None) -> None:
    """Root must not write there; the owner may."""
    world.start(squash=SQUASHED)
    point = world.folder / "scratch"
    point.mkdir(mode=0o755)
    world.folder.chmod(0o755)
    let_all_enter(world.folder)
    subprocess.run(["chown", "nobody", point], check=True)
    run = world.run({"path": f"{point}"}, run_user=user)
    if user:
        assert act("verify", run) == []
    else:
        text = refusal(run)
        assert "not writable by root" in text and f"{point} belongs to nobody" in text
        assert "token" not in text, "a consequence"


@pytest.mark.fault("scratch-full")
@pytest.mark.parametrize("how", ["room", "full"])
def test_a_directory_without_space_is_refused(world: World, how: str) -> None:
    world.start()
    point = world.folder / "scratch"
    point.mkdir()
    for node in NODES:
        world.on(node, "mount", "-t", "tmpfs", "-o", "size=1m", "none", f"{point}")
    if how == "full":
        world.on("n2", "dd", "if=/dev/zero", f"of={point}/x", "bs=1M", "count=1", "status=none")
    run = world.run({"path": f"{point}"})
    totals = run.plan.totals.model_copy(update={"scratch_peak_bytes": 500_000})
    altered = run.plan.model_copy(update={"totals": totals})
    (run.folder / "plan.json").write_text(json.dumps(altered.model_dump(mode="json")))
    write_identity(run.folder, this_user().name)
    text = refusal(open_run(run.folder))
    assert ("on n2: found 0 B available" in text) == (how == "full")
    assert ("one file system on all nodes" in text) == (how == "room"), "that much was free"


@pytest.mark.fault("scratch-read-only")
def test_a_read_only_directory_is_refused(world: World) -> None:
    world.start()
    point = world.folder / "scratch"
    point.mkdir()
    world.on("n3", "mount", "--bind", f"{point}", f"{point}")
    world.on("n3", "mount", "-o", "remount,bind,ro", f"{point}")
    text = refusal(world.run({"path": f"{point}"}))
    assert "on n3: found not writable by root" in text and "Read-only file system" in text


LUSTRE_MOUNT = """
folder=${0%/bin/*}
[ "$1 $2" = "-t lustre" ] || { echo "mount: $*: what?" >&2; exit 32; }
if [ -e "$folder/broken-$NODE" ]; then
    mkdir -p "$6"
    echo "mount.lustre: No such target" >&2
    exit 5
fi
# The nodes share a root disk: another one may have removed the directory; now none may.
until mkdir -p "$6" && : >"$6/.fs-$NODE"; do :; done 2>/dev/null
echo "$5 $6 lustre rw,$4 0 0" >>"$PROOFMARK_MOUNTS"
"""
UMOUNT = """
rm -f "$1/.fs-$NODE"
grep -v " $1 " "$PROOFMARK_MOUNTS" >"$PROOFMARK_MOUNTS.new"
mv "$PROOFMARK_MOUNTS.new" "$PROOFMARK_MOUNTS"
"""
LFS = """
case $1 in
setstripe) [ "$2 $4" = "-c -S" ] || exit 22; echo "stripe_count: $3 stripe_size: $5" >"$6.layout" ;;
getstripe) [ "$2" = -d ] || exit 22; cat "$3.layout" 2>/dev/null || echo "stripe_count: 1" ;;
esac
"""


def lustre(world: World) -> dict[str, Any]:
    world.tool("mount", LUSTRE_MOUNT)
    world.tool("umount", UMOUNT)
    world.tool("lfs", LFS)
    return {
        "path": f"{world.folder}/pfs/runs",
        "type": "lustre",
        "source": "mgs@o2ib:/fs",
        "mount": {"point": f"{world.folder}/pfs", "options": ["flock"]},
        "layout": {"stripe_count": 8, "stripe_size": "1M"},
    }


def tables(world: World) -> list[bool]:
    return ["lustre" in (world.folder / f"{node}.mounts").read_text() for node in NODES]


def test_lustre_is_mounted_striped_and_unmounted(world: World) -> None:
    world.start(table=True)
    demand = lustre(world)
    table = world.folder / "n3.mounts"
    table.write_text(table.read_text() + f"mgs@o2ib:/fs {world.folder}/pfs lustre rw 0 0\n")
    (world.folder / "pfs").mkdir()
    (world.folder / "pfs/.fs-n3").touch()
    run = world.run(demand)
    assert act("check", run) == ["n[1-2]"]
    assert tables(world) == [False, False, True]
    assert act("verify", run) == ["n[1-2]"]
    assert tables(world) == [True] * 3
    reports = run.files.scratch_probe.read_text()
    assert reports.count("| stripe_count: 8 stripe_size: 1M") == 3
    assert world.starts()["n3"] == 3, "check, and a look before the layout is set"
    assert act("verify", run) == []
    assert world.starts()["n3"] == 1, "the layout is set"
    assert act("unmount", run) == ["n[1-2]"], "on n3 another user had mounted it"
    assert tables(world) == [False, False, True]
    assert act("unmount", run) == []


SHOWN = "10.73.20.11@o2ib:10.73.20.12@o2ib:/scratch"


@pytest.mark.fault("mount-of-other-name")
@pytest.mark.parametrize(
    ("named", "shown", "answers", "kind"),
    [
        pytest.param("mgs1@o2ib:mgs2@o2ib:/scratch", SHOWN, True, "lustre", id="control"),
        pytest.param("mgs1@o2ib0:mgs2@o2ib:/scratch/", SHOWN, True, "lustre", id="network-0"),
        pytest.param(
            "mgs1,mgs2:/x", "10.73.20.11@tcp,10.73.20.12@tcp:/x", True, "lustre", id="tcp"
        ),
        pytest.param("mgs1@o2ib:mgs2@o2ib:/scratch", SHOWN, False, "lustre", id="no-address"),
        pytest.param("mgs2@o2ib:mgs1@o2ib:/scratch", SHOWN, True, "lustre", id="other-hosts"),
        pytest.param("mgs1@o2ib:/scratch", SHOWN, True, "lustre", id="one-server"),
        pytest.param("mgs1@tcp:mgs2@tcp:/scratch", SHOWN, True, "lustre", id="other-network"),
        pytest.param("mgs1@o2ib:mgs2@o2ib:/home", SHOWN, True, "lustre", id="other-system"),
        pytest.param("mgs1@o2ib:mgs2@o2ib:/scratch", SHOWN, True, "nfs4", id="other-type"),
    ],
)
def test_the_kernel_shows_addresses_where_a_site_names_hosts(
    world: World, named: str, shown: str, answers: bool, kind: str, request: Any
) -> None:
    """The accepted mounts are there; any other one is undone, and the text says what to declare."""
    accepted = request.node.callspec.id in ("control", "network-0", "tcp")
    world.start(table=True)
    demand = {**lustre(world), "source": named}
    world.tool("mount", LUSTRE_MOUNT.replace("$5 $6 lustre", f"{shown} $6 {kind}"))
    answer = "mgs1) echo 10.73.20.11 STREAM ;; mgs2) echo 10.73.20.12 STREAM" if answers else "x) :"
    world.tool("getent", f'[ "$1" = ahosts ] || exit 1\ncase $2 in {answer} ;; *) exit 2 ;; esac')
    run = world.run(demand)
    if accepted:
        assert act("verify", run) == ["n[1-3]"]
        assert act("verify", run) == [], "it is there"
        assert act("unmount", run) == ["n[1-3]"]
        return
    text = refusal(run)
    assert f"mounted {kind} {shown}; accepted: lustre {named}" in text
    assert "scratch.source to what /proc/mounts shows" in text and "unmounted again" in text
    for node in NODES:
        assert shown not in (world.folder / f"{node}.mounts").read_text()
        assert list((world.folder / f"notes-{node}").iterdir()) == []
    assert not (world.folder / "pfs/runs").exists()


@pytest.mark.parametrize(("kind", "shown"), [("nfs", "nfs4"), ("nfs4", "nfs4"), ("nfs4", "nfs")])
def test_nfs_is_shown_as_nfs4(world: World, kind: str, shown: str) -> None:
    world.start(table=True)
    demand = {**lustre(world), "type": kind, "source": "nas1:/export", "layout": {}}
    mount = LUSTRE_MOUNT.replace("-t lustre", f"-t {kind}").replace(
        "$5 $6 lustre", f"$5 $6 {shown}"
    )
    world.tool("mount", mount)
    run = world.run(demand)
    if (kind, shown) == ("nfs4", "nfs"):
        assert "mounted nfs nas1:/export; accepted: nfs4 nas1:/export" in refusal(run)
    else:
        assert act("verify", run) == ["n[1-3]"]
        assert act("unmount", run) == ["n[1-3]"]
    assert [shown in (world.folder / f"{node}.mounts").read_text() for node in NODES] == [False] * 3


@pytest.mark.fault("mount-of-other-name")
@pytest.mark.parametrize("how", ["elsewhere", "exit-code", "stays"])
def test_what_a_mount_command_did_is_undone(world: World, how: str) -> None:
    """It mounts another point, or fails after the mount; a mount that stays is named."""
    reach = world.folder / "reach.sh"
    world.start(table=True)
    reach.write_text(reach.read_text().replace("export PATH", "export PROOFMARK_WAIT_S=1 PATH"))
    demand = lustre(world)
    lines = {
        "elsewhere": LUSTRE_MOUNT.replace("$5 $6 lustre", "$5 /other lustre"),
        "exit-code": f"{LUSTRE_MOUNT}\necho no quota >&2; exit 1",
        "stays": f"{LUSTRE_MOUNT}\nexit 1",
    }
    world.tool("mount", lines[how])
    if how == "stays":
        world.tool("umount", "echo target is busy >&2; exit 32")
    text = refusal(world.run(demand))
    stays = how != "exit-code"
    assert tables(world) == [stays] * 3
    assert ("cannot be undone" in text) is stays
    assert ("mounted is lustre (mgs@o2ib:/fs) on /other" in text) is (how == "elsewhere")
    assert ("target is busy" in text) is (how == "stays")
    assert ("no quota; it is unmounted again" in text) is (how == "exit-code")


def test_a_file_system_that_the_site_mounts_by_name(world: World) -> None:
    """Without `mount` the declared source is compared in the same way."""
    world.start(table=True)
    demand = {key: value for key, value in lustre(world).items() if key not in ("mount", "layout")}
    world.tool("getent", 'case $2 in mgs) echo "10.1.1.1 STREAM" ;; *) exit 2 ;; esac')
    (world.folder / "pfs").mkdir()
    for node, shown in zip(NODES, ("10.1.1.1", "mgs", "10.1.1.1"), strict=True):
        table = world.folder / f"{node}.mounts"
        table.write_text(table.read_text() + f"{shown}@o2ib:/fs {world.folder}/pfs lustre rw 0 0\n")
    run = world.run(demand)
    assert act("verify", run) == ["n1"], "it makes the directory"
    table.write_text(table.read_text().replace("10.1.1.1", "10.1.1.2"))
    assert "on n3: found source 10.1.1.2@o2ib:/fs (lustre)" in refusal(run)


def test_a_node_mounts_again_after_a_reset(world: World) -> None:
    """A reset empties the table of mounts, and /run with the note."""
    world.start(table=True)
    run = world.run(lustre(world))
    act("verify", run)
    (world.folder / "n2.mounts").write_text("/dev/vda1 / ext4 rw 0 0\n")
    subprocess.run(["rm", "-r", world.folder / "notes-n2"], check=True)
    assert act("verify", run, mode="current") == ["n2"]
    assert act("unmount", run) == ["n[1-3]"]


@pytest.mark.fault("mount-fails")
def test_a_failed_mount_that_leaves_a_directory_is_refused(world: World) -> None:
    """On n2 nothing is mounted; the directory that the tool left on the root disk is not used."""
    world.start(table=True)
    run = world.run(lustre(world))
    (world.folder / "broken-n2").touch()
    text = refusal(run)
    assert "on n2: UNEXPECTED: found " in text and "No such target" in text
    assert not (world.folder / "pfs/runs").exists(), "nothing was written anywhere"


@pytest.mark.fault("node-without-scratch")
@pytest.mark.parametrize("how", ["dead", "broken"])
def test_a_node_within_the_budget_is_left_out(world: World, how: str) -> None:
    """No step runs on it until its scratch is verified; the others are verified."""
    world.start(table=True)
    (world.folder / "pfs").mkdir()  # else the nodes, with their one root disk, race for it
    run = world.run(lustre(world), max_failures=1)
    for node in NODES:
        Journal(begin(run).folder, node).result("verified", mode="m", seen={})
    if how == "dead":
        world.kill("n1")
    else:
        (world.folder / "broken-n1").touch()
    assert act("verify", run) == ["n[2-3]"]
    assert list(unverified(begin(run).folder, NODES, "m")) == ["n1"]
    assert "no scratch" in unverified(begin(run).folder, NODES, "m")["n1"]
    if how == "broken":
        (world.folder / "broken-n1").unlink()
        assert act("verify", run) == ["n1"]
        assert unverified(begin(run).folder, NODES, "m") == {}


def test_without_a_budget_a_dead_node_is_refused(world: World) -> None:
    """Control: no fault is injected."""
    world.start()
    run = world.run({"path": f"{world.folder}/scratch"})
    world.kill("n2")
    assert "on n2: UNREACHABLE: found no route to host" in refusal(run)
    assert not (world.folder / "scratch").exists()


@pytest.mark.fault("another-block-size")
@pytest.mark.parametrize("real", [524288, 262144])
def test_two_block_sizes_of_gpfs_are_two_file_systems(world: World, real: int) -> None:
    """As P4 uses them: the steps of the plan name both, and each has the declared size."""
    world.start(table=True)
    small, large = (f"{world.folder}/{name}" for name in ("small", "large"))
    Path(small).mkdir()
    for node in NODES:
        table = world.folder / f"{node}.mounts"
        table.write_text(table.read_text() + f"fs2 {small} gpfs rw 0 0\n")
    world.tool("mmmount", 'echo "$1 $2 gpfs rw 0 0" >>"$PROOFMARK_MOUNTS"')
    world.tool("mmumount", f"set -- {large}\n{UMOUNT}")
    size = f"case $1 in fs1) echo ' -B 1048576 Block size' ;; fs2) echo ' -B {real} x' ;; esac"
    world.tool("mmlsfs", f'[ "$2" = -B ] || exit 1\necho "flag value description"\n{size}')
    demand = {"path": f"{large}/runs", "type": "gpfs", "source": "fs1", "mount": {"point": large}}
    systems = [
        FileSystem(name="gpfs-1m", path=f"{large}/runs", block_bytes=1048576),
        FileSystem(name="gpfs-512k", path=f"{small}/runs", block_bytes=524288),
    ]
    run = world.run(demand, {"file_system": "{file_systems}"}, file_systems=systems)
    sizes = {step.parameters["fs_block_bytes"] for step in run.plan.steps()}
    assert sizes == {1048576, 524288}
    if real == 524288:
        assert act("verify", run) == ["n[1-3]"]
        assert run.files.scratch_probe.read_text().count("-B 1048576") == 3
        assert act("unmount", run) == ["n[1-3]"], "the site mounts the other one"
    else:
        text = refusal(run)
        assert "-B 262144" in text and "accepted: a block size of 524288" in text


GLUSTER = """
set -e
hostname server
ip link set lo up
ip addr add 10.99.0.1/32 dev lo
for folder in /var/lib/glusterd /var/log/glusterfs /run; do mount -t tmpfs none $folder; done
mkdir -p /run/gluster
glusterd
until gluster volume list >/dev/null 2>&1; do sleep 0.1; done
for name in pfs squashed; do
    mkdir -p "$1/$name"
    gluster --mode=script volume create $name 10.99.0.1:"$1/$name" force
    gluster --mode=script volume set $name features.shard on
    gluster --mode=script volume set $name features.shard-block-size 4MB
done
chmod 0755 "$1/squashed"
gluster --mode=script volume set squashed server.root-squash on
gluster --mode=script volume start pfs
gluster --mode=script volume start squashed
echo up
exec sleep 600
"""
"""Two volumes of one brick each. GlusterFS refuses a loopback address, so it has a network."""


@pytest.fixture
def gluster(world: World) -> Iterator[World]:
    """Serve GlusterFS to the three nodes."""
    log = world.folder / "gluster.log"
    spaces = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc"]
    command = [*spaces, "--kill-child", "sh", "-c", GLUSTER, "sh", f"{world.folder}/bricks"]
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as server:
        try:
            until(lambda: log.read_text().endswith("up\n") or server.poll() is not None, 120)
            assert server.poll() is None, log.read_text()
            (inside,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            world.start(network=inside)
            yield world
        finally:
            for node in world.holders:  # or the daemons of its mounts stay
                world.on(node, "sh", "-c", f"umount -l {world.folder}/pfs 2>/dev/null || :")
            world.end()
            server.kill()


def gluster_demand(world: World, volume: str) -> dict[str, Any]:
    return {
        "path": f"{world.folder}/pfs/runs",
        "type": "fuse.glusterfs",
        "source": f"10.99.0.1:/{volume}",
        "off_root": True,
        "mount": {"point": f"{world.folder}/pfs"},
    }


@pytest.mark.slow
@pytest.mark.fault("scratch-root-squash")
def test_glusterfs_is_mounted_verified_and_unmounted(gluster: World) -> None:
    """One node writes and all read; then a volume that squashes root is refused."""
    (gluster.folder / "pfs").mkdir()
    run = gluster.run(gluster_demand(gluster, "pfs"))
    assert act("check", run) == ["n[1-3]"]
    assert act("verify", run) == ["n[1-3]"]
    reports = run.files.scratch_probe.read_text()
    assert reports.count("fuse.glusterfs") == 3 and reports.count("=== layout") == 3
    assert act("verify", run) == []
    assert act("unmount", run) == ["n[1-3]"]
    assert list((gluster.folder / "pfs").iterdir()) == []

    shutil.rmtree(gluster.folder / "kit")
    text = refusal(gluster.run(gluster_demand(gluster, "squashed")))
    assert "on n1: found no such directory" in text and "Permission denied" in text


def test_a_node_that_hangs_is_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_commands, "TIMEOUT_S", 6.0)  # a loaded machine meets it
    world.start(table=True)
    run = world.run(lustre(world), max_failures=1)
    world.tool("mount", f'[ "$NODE" != n3 ] || sleep 30\n{LUSTRE_MOUNT}')
    assert act("verify", run) == ["n[1-2]"]
    assert list(unverified(begin(run).folder, ["n3"], "m")) == ["n3"]


@pytest.mark.fault("link-in-shared-scratch")
@pytest.mark.parametrize("linked", [True, False])
def test_a_link_of_another_user_is_not_followed(tmp_path: Path, linked: bool) -> None:
    """The control has no link."""
    target = tmp_path / "target"
    target.write_text("precious")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if linked:
        (scratch / ".proofmark-known").symlink_to(target)
    probe = ["sh", f"{SCRIPTS / 'scratch-probe.sh'}", "-k", "known", f"{scratch}"]
    subprocess.run(probe, capture_output=True, check=False)
    assert target.read_text() == "precious"
    assert (scratch / ".proofmark-known").is_symlink() == linked
    assert (scratch / ".proofmark-known").exists()


@pytest.mark.fault("scratch-of-another-user")
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["folder", "link", "own"])
def test_a_folder_of_another_user_among_those_of_all_users_is_refused(
    tmp_path: Path, kind: str, shared: bool
) -> None:
    """The controls: a folder of the user, and a parent in which only its owner writes."""
    parent = tmp_path / "parent"
    parent.mkdir()
    (tmp_path / "target").mkdir()
    scratch = parent / "scratch"
    if kind == "link":
        scratch.symlink_to(tmp_path / "target")
    else:
        scratch.mkdir()
    os.chown(scratch, 65534 if kind == "own" else 4711, -1, follow_symlinks=False)
    parent.chmod(0o1777 if shared else 0o755)
    for option in ([], ["-w"]):
        words = ["-u", "nobody", *option, f"{scratch}"]
        probe = ["sh", f"{SCRIPTS / 'scratch-probe.sh'}", *words]
        done = subprocess.run(probe, capture_output=True, text=True, check=True)
        refused = f"| result: {scratch} belongs to UNKNOWN, and other users can write in {parent}"
        assert (refused in done.stdout) == (shared and kind != "own"), done.stdout


@pytest.mark.parametrize("user", [0, 65533])
def test_a_folder_that_is_made_is_private(user: int) -> None:
    """The second user has no entry in the user database."""
    with TemporaryDirectory(prefix="proofmark-test-", dir="/tmp") as folder:
        os.chown(folder, user, -1)
        made = Path(folder) / "made"
        done = subprocess.run(
            ["sh", "-s", "--", "-c", "-w", made],
            input=script_text("scratch-probe.sh"),
            user=user,
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stderr, "| result: ok" in done.stdout) == ("", True), done.stdout
        assert (made.stat().st_mode, made.stat().st_uid) == (0o40700, user)


@pytest.mark.fault("link-in-shared-scratch")
def test_the_file_that_is_written_has_a_random_name(tmp_path: Path) -> None:
    """Links with the name of an earlier version, for all process ids, are not followed."""
    target = tmp_path / "target"
    target.write_text("precious")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    node = os.uname().nodename
    code = (
        "import os, sys\n"
        f"os.symlink({f'{target}'!r}, f'{scratch}/.proofmark-{node}-{{os.getpid()}}')\n"
        "os.execvp('sh', ['sh', '-c', sys.argv[1]])"
    )
    text = probe_text("write_text")
    done = subprocess.run(
        [sys.executable, "-c", code, text],
        env={**os.environ, "path": f"{scratch}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert target.read_text() == "precious"
    assert len(list(scratch.iterdir())) == 1  # the link


def probe_text(name: str) -> str:
    """Return the text of scratch-probe.sh that USER runs under the name `name`."""
    script = (SCRIPTS / "scratch-probe.sh").read_text()
    return script.partition(f"{name}='")[2].partition("'\n")[0]
