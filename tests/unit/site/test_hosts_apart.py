"""Hosts whose names cannot be told apart are refused before anything happens."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.folders import BENCHMARKS

from proofmark.cli.main import main
from proofmark.site.inventory import load_site


def inventory(folder: Path, hosts: list[str], aliases: dict[str, str] | None = None) -> Path:
    """Write an inventory with a partition of `hosts`."""
    own = {host: {"proofmark_aliases": name} for host, name in (aliases or {}).items()}
    tree = {"knl": {"hosts": {host: own.get(host) for host in hosts}}}
    facts = {
        "node": {
            "cpu_model": "test",
            "architecture": "zen2",
            "clock_hz": 2.4e9,
            "flop_per_cycle": 16,
            "topology": "pack:1 numa:1(memory=17179869184) l3:1(size=1048576) core:4 pu:1",
        },
        "environment": "zen4",
        "provision_from": "spack",
        "scheduler": "slurm",
        "scratch": {"path": "/scratch/proofmark"},
        "facts": {"stream_array_size": 64000000, "threaded_blas": 1, "hpl_nb": 192},
    }
    (folder / "group_vars/knl").mkdir(parents=True)
    (folder / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"children": {"compute": {"children": tree}}}})
    )
    (folder / "group_vars/knl/partition.yml").write_text(yaml.safe_dump({"partition": facts}))
    return folder


@pytest.mark.fault("hosts-with-one-name")
@pytest.mark.parametrize("command", ["check", "plan", "adopt"])
@pytest.mark.parametrize(
    ("hosts", "aliases", "named"),
    [
        (["n1", "n1.racka"], {}, "n1, n1.racka: one host name"),
        (["n1.racka", "n1.rackb"], {}, "n1.racka, n1.rackb: one host name"),
        (["n1.racka", "N1.RackA"], {}, "N1.RackA, n1.racka: one host name"),
        (["n1", "n2"], {"n1": "ib", "n2": "ib.x"}, "n1, n2: one host name"),
        (["n1", "n2"], {"n2": "n1"}, "n1, n2: one host name"),
    ],
)
def test_hosts_with_one_name_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    hosts: list[str],
    aliases: dict[str, str],
    named: str,
) -> None:
    site = inventory(tmp_path / "site", hosts, aliases)
    (tmp_path / "outputs").mkdir()
    rest = {
        "check": [],
        "plan": ["-l", "knl", "--suite", "node"],
        "adopt": [str(tmp_path / "outputs"), "--case", "stream=*", "-l", "knl"],
    }
    assert main([command, "-i", str(site), *rest[command]]) == 3
    error = capsys.readouterr().err
    assert named in error
    assert "hosts-alike: " in error


@pytest.mark.parametrize(
    "hosts", [["n1", "n2"], ["n1.racka", "n2.rackb"], ["10.0.0.5", "10.0.0.6"], ["0001", "0002"]]
)
def test_hosts_with_names_of_their_own_are_accepted(tmp_path: Path, hosts: list[str]) -> None:
    site = load_site(inventory(tmp_path / "site", hosts), "knl")
    assert list(site.hosts) == hosts
    assert [site.host_of(host) for host in hosts] == hosts


def adopt(tmp_path: Path, folders: list[str], *options: str) -> int:
    sample = next((BENCHMARKS / "samples").glob("stream*.txt"))
    for name in folders:
        (tmp_path / "vendor" / name).mkdir(parents=True)
        (tmp_path / "vendor" / name / "stream.log").write_bytes(sample.read_bytes())
    words = [
        str(tmp_path / "vendor"),
        "--case",
        "stream=*/stream.log",
        "--node",
        r"(?P<node>[^/]+)/",
    ]
    return main(["adopt", *words, "--runs", str(tmp_path / "runs"), *options])


def test_outputs_of_another_address_are_not_those_of_a_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = inventory(tmp_path / "site", ["10.0.0.5", "10.0.0.6"])
    assert adopt(tmp_path, ["10.0.0.5", "10.0.0.99"], "-i", str(site), "-l", "knl") == 3
    assert "does not select: 10.0.0.99" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_outputs_of_addresses_are_those_of_two_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adopt(tmp_path, ["10.0.0.5", "10.0.0.6"]) == 0
    assert "adopted: 2 files of 2 nodes" in capsys.readouterr().out


def test_outputs_of_nodes_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adopt(tmp_path, ["n1", "n1.racka"]) == 3
    files = "in n1/stream.log, in n1.racka/stream.log"
    assert f"n1, n1.racka: one host name, {files}" in capsys.readouterr().err
    assert main(["adopt", str(tmp_path / "vendor"), "--node", r"(?P<node>[^/]+)/"]) == 3
    assert "n1, n1.racka: one host name" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
