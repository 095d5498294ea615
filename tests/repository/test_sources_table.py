"""The table of sources in docs/spack.md has the values of the committed locks."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
from tests.folders import ROOT

from proofmark.software.spack.lock_file import read_lock
from proofmark.software.spack.mirror import SourceFile, read_sources

LOCKS = sorted(ROOT.glob("environments/*/*/spack.lock"))
COMMITTED: dict[str, tuple[SourceFile, ...]] = {
    label: files for lock in LOCKS for label, files in read_sources(read_lock(lock)).items()
}
PAGE = (ROOT / "docs/spack.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip(" `"): [cell.strip() for cell in cells[2:]]
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
    if "@" in cells[1]
}


@pytest.mark.parametrize("label", ROWS)
def test_a_row_has_checksum_and_host_of_the_recipe(label: str) -> None:
    checksum, host, *_ = ROWS[label]
    files = [file for file in COMMITTED[label] if (file.sha256 or "").startswith(checksum)]
    assert [urlsplit(file.addresses[0]).hostname for file in files] == [host]


def test_each_root_each_mpi_and_each_blas_of_the_locks_has_a_row() -> None:
    wanted = set()
    for path in LOCKS:
        lock = read_lock(path)
        wanted |= {lock.specs[root].label for root in lock.roots.values()}
        for spec in json.loads(path.read_text())["concrete_specs"].values():
            for edge in spec.get("dependencies", []):
                if {"mpi", "blas"} & set(edge["parameters"]["virtuals"]):
                    wanted.add(lock.specs[edge["hash"]].label)
    assert sorted(wanted - ROWS.keys()) == []
