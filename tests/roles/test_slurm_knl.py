"""The job that sets a mode, with the knl_generic of Slurm, outside the default partition."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.slurm import KNL
from tests.fixtures.kit import until
from tests.fixtures.shells import remote_shell

from proofmark.machine.bmc.back_end import (
    BackEndContext,
    Credentials,
    FirmwareState,
    Host,
    back_end,
)
from proofmark.machine.outcome import NodeError
from proofmark.site.execution import Queue
from proofmark.site.firmware import Firmware

pytestmark = pytest.mark.root

SYSCFG = """#!/bin/sh
# The answers of Intel's syscfg about a node in the mode quad, flat.
case $3 in
'Cluster Mode') printf 'Current Value : Quadrant\\nPossible Values\\nSNC-4 : 04\\n' ;;
'Memory Mode') printf 'Current Value : Flat\\nPossible Values\\nCache : 00\\nFlat : 01\\n' ;;
esac
"""
WANTED = {"quad": True, "flat": True}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """Slurm with the nodes knl0001 and knl0002; the default partition has only the second one."""
    with Cluster(tmp_path / "cluster", 2, shared=[tmp_path]) as cluster:
        folder = cluster.folder / "slurm"
        folder.mkdir()
        syscfg = folder / "syscfg"
        syscfg.write_text(SYSCFG)
        syscfg.chmod(0o755)
        conf = folder / "knl_generic.conf"
        conf.write_text(f"SyscfgPath={syscfg}\nSystemType=Intel\nSyscfgTimeout=10000\nForce=1\n")
        settings = {
            "NodeFeaturesPlugins": "node_features/knl_generic",
            "RebootProgram": "/bin/false",
        }
        default = "PartitionName=open Nodes=knl0002 Default=YES OverSubscribe=EXCLUSIVE State=UP"
        hardware = {**KNL, "Features": "quad,snc4,flat,cache"}
        with Slurm(cluster, settings=settings, hardware=hardware, lines=[default]) as made:
            monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
            yield made


def reset(node: str, **queue: object) -> FirmwareState:
    shell = remote_shell(["true"], 1)
    firmware = Firmware(back_end="knl_generic")
    context = BackEndContext(firmware, Credentials(), shell, queue=Queue.model_validate(queue))
    chosen, host = back_end(context), Host(node, "")
    state = chosen.read(host, WANTED)
    chosen.reset(host, state, WANTED)
    return state


@pytest.mark.parametrize("reservation", ["", "acceptance"])
def test_the_job_of_a_mode_runs_on_its_node(slurm: Slurm, reservation: str) -> None:
    create = ("scontrol", "create", "reservation", "StartTime=now", "Duration=60")
    if reservation:
        slurm.call(*create, f"ReservationName={reservation}", "Users=root", "Nodes=knl0001")
    state = reset("knl0001", name="knl", reservation=reservation)
    assert state.current == WANTED
    assert state.offers is not None and {"quad", "snc4", "flat", "cache"} <= set(state.offers)
    form = "--format=%T|%P|%N|%v"
    ended = f"COMPLETED|knl|knl0001|{reservation or '(null)'}"
    until(lambda: slurm.call("squeue", "--noheader", "--states=all", form).split() == [ended], 60)


def test_without_the_partition_of_the_site_slurm_refuses_the_job(slurm: Slurm) -> None:
    """Control: the default partition lacks the node."""
    with pytest.raises(NodeError, match="Requested node configuration is not available"):
        reset("knl0001")
