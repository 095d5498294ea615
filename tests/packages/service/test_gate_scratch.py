"""A node that cannot use the scratch directory is kept, and does not stop the others."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.kit import make_kit
from tests.unit.machine.test_preflight import site_with_firmware, with_partition

from proofmark.packages.service.gate import without_scratch
from proofmark.site.file_systems import Scratch


def test_only_the_node_with_the_broken_scratch_is_kept(tmp_path: Path) -> None:
    """The script of the kit runs for each node; on n1 its directory cannot be made."""
    folder = tmp_path / "pm"
    broken = f"sed 's#{folder}#/proc/none#g' | sh -s"
    shell = ["sh", "-c", f"case $1 in n1) {broken} ;; *) exec sh -s ;; esac", "shell", "{node}"]
    site = site_with_firmware(make_kit(tmp_path / "kit"), remote_shell=shell)
    site = with_partition(site, scratch=Scratch(path=f"{folder}"))
    decided = without_scratch(site, site.hosts, "")
    assert [*decided] == ["n1"]
    assert decided["n1"].action == "keep"
    assert decided["n1"].reason.startswith("scratch: ")
    assert folder.is_dir() and not [*folder.iterdir()]
    assert [*without_scratch(site, site.hosts, "/proc/none")] == [*site.hosts]
