"""The checkout has the same path on the nodes as on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, kit_with

from proofmark.cli.main import main
from proofmark.machine import preflight
from proofmark.machine.preflight import checkout_findings, only_here, other_hosts
from proofmark.site.inventory import Site

NFS = "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\nnone /run tmpfs rw 0 0\n"


kit = kit_with(folder="kit")


def site_with(kit: Kit, *, connection: str = "ssh", script: str = "") -> Site:
    """Return a site of two nodes; n2 runs `script` before the scripts of the kit."""
    command = ["sh", "-c", f"[ {{node}} = n2 ] && {{ {script or ':'}; }}; exec sh -s"]
    site = kit.site(hosts=("n1", "n2"))
    return site.model_copy(update={"connection": connection, "remote_shell": command})


def outcomes(site: Site, kit: Kit) -> dict[str, str]:
    """Return the first words of the findings' texts, by outcome."""
    findings = checkout_findings(site, kit.folder)
    return {finding.outcome: finding.text.partition(": ")[0] for finding in findings}


def test_nodes_that_see_the_checkout_are_ok(kit: Kit) -> None:
    """The control."""
    assert outcomes(site_with(kit), kit) == {"OK": "n[1-2]"}


@pytest.mark.fault("checkout-not-on-the-nodes")
@pytest.mark.parametrize(
    ("change", "outcome"),
    [("rm -r other/benchmarks", "NO_CHECKOUT"), ("date >other/benchmarks/suites.yml", "OTHER")],
)
def test_a_node_without_the_checkout_is_named(
    kit: Kit, tmp_path: Path, change: str, outcome: str
) -> None:
    """On n2 `test` and the shell see another folder at the path of the checkout."""
    shutil.copytree(kit.folder, tmp_path / "other")
    swap = f"cd {tmp_path}; {change}; mv kit kit.here; mv other kit"
    back = f"cd {tmp_path}; mv kit other; mv kit.here kit"
    site = site_with(kit, script=f"({swap}); sh -s; ({back}); exit")
    site = site.model_copy(update={"hosts": ("n2",)})
    (found,) = outcomes(site, kit)
    assert found.startswith(outcome)
    assert outcomes(site.model_copy(update={"hosts": ("n1",)}), kit) == {"OK": "n1"}


def test_a_site_of_this_machine_needs_no_check(kit: Kit) -> None:
    site = site_with(kit, connection="local")
    assert outcomes(site, kit) == {"NOT_NEEDED": "no other node than this machine"}
    assert other_hosts(site) == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/home/user/proofmark", ""),
        ("/opt/proofmark", ""),  # this machine may export it
        ("/run/proofmark", "on a file system in memory (tmpfs)"),
        ("/tmp/proofmark", "below /tmp"),
        ("/var/tmp/a/proofmark", "below /var/tmp"),
        ("/tmpfs/proofmark", ""),
    ],
)
def test_folders_that_only_one_machine_sees(path: str, reason: str) -> None:
    assert only_here(Path(path), NFS) == reason


@pytest.mark.fault("checkout-on-one-machine")
@pytest.mark.parametrize("connection", ["ssh", "local"])
@pytest.mark.parametrize("command", [["stage execute"], ["rerun", "1"]])
def test_a_run_in_a_folder_of_this_machine_is_not_executed(
    kit: Kit,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    connection: str,
) -> None:
    """The run may have been copied there. The control is a site of this machine."""
    monkeypatch.setattr(preflight, "OF_ONE_MACHINE", (f"{kit.folder}",))
    run = kit.run(site=site_with(kit, connection=connection))
    name, *steps = command
    main([*name.split(), f"{run.folder}", *steps])
    found = f"found a folder below {kit.folder}, which n[1-2] cannot see"
    refused = f"proofmark: {run.folder}/workdir: {found}"
    assert (refused in capsys.readouterr().err) == (connection == "ssh")
