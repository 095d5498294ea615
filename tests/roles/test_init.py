"""`proofmark init` on a virtual cluster with a real Slurm: nodes, switches, and a node by ssh."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.site.inventory import load_sites

pytestmark = pytest.mark.root

TOPOLOGY = """SwitchName=leaf1 Nodes=knl[0001-0002]
SwitchName=leaf2 Nodes=knl[0003-0004]
SwitchName=spine Switches=leaf[1-2]
"""


def test_the_inventory_of_a_slurm_cluster_gives_a_plan_and_its_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    site = tmp_path / "mysite"
    words = ["init", str(site), "--from-node", "knl0001", "--scheduler", "slurm"]
    cluster = Cluster(tmp_path / "cluster", 4, shared=[tmp_path])
    slurm = Slurm(cluster, settings={"TopologyPlugin": "topology/tree"})
    slurm.folder.mkdir(parents=True)
    (slurm.folder / "topology.conf").write_text(TOPOLOGY)
    with cluster, slurm:
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        assert main(words) == 0
        printed, said = capsys.readouterr()
        assert "partition knl: knl[0001-0004]\n" in printed
        assert "proofmark: knl0001: probe.sh\n" in said
        hosts = site / "hosts.yml"
        assert "            knl[0001:0004]:\n" in hosts.read_text()

        # The nodes have no parallel file system: the only required answer.
        assert main(["plan", "-i", str(site), "-l", "knl", "--suite", "node"]) == 3
        questions = capsys.readouterr().err.splitlines()
        assert [re.findall(r"partition\.([a-z_.]+): found", line) for line in questions] == [
            ["scratch.path"]
        ]
        facts = site / "group_vars/knl/partition.yml"
        facts.write_text(re.sub(r"path: .*QUESTION.*", "path: /var/tmp", facts.read_text()))
        assert main(["plan", "-i", str(site), "-l", "knl", "--suite", "node"]) == 0
        (made,) = load_sites(site, "knl")
        assert (made.partition.scheduler, made.partition.queue.name) == ("slurm", "knl")
        assert [made.location(host)["switches-1"] for host in made.hosts] == [
            *("leaf1", "leaf1"),
            *("leaf2", "leaf2"),
        ]
        assert made.partition.fabric.top == "switches-3"

        capsys.readouterr()
        assert main(["init", "--diff", str(site), "--from-node", "knl0001"]) == 0
        assert capsys.readouterr().out == "differences: 0\n"
        hosts.write_text(hosts.read_text().replace("knl[0001:0004]", "knl[0001:0005]"))
        assert main(["init", "--diff", str(site), "--from-node", "knl0001"]) == 1
        assert capsys.readouterr().out == (
            f"{hosts}: knl.hosts: declared knl[0001-0005]; found knl[0001-0004] "
            "(scontrol show node)\ndifferences: 1\n"
        )
