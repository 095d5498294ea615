"""What nobody chose of what decides a measurement: variants of a lock, drivers of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.software import mpi
from proofmark.software.spack.lock_check import read_spack_yaml
from proofmark.software.spack.lock_file import build_of, read_lock
from proofmark.software.spack.mpi_and_blas import lock_at, unchosen_variants
from proofmark.software.spack.site_choice import SiteParts, site_environment
from proofmark.software.spack.site_parts import find_file_systems

POWER10 = ROOT / "environments/power10/debian12/spack.lock"


def unchosen(path: Path) -> dict[tuple[str, str], str]:
    """Return the variants of the messages about a lock, by code and package."""
    found = {}
    for each in unchosen_variants(read_lock(path)):
        name = str(each.fields["part"]).partition("@")[0]
        found[(each.code, name)] = str(each.fields.get("variants", ""))
    return found


def test_a_default_of_a_recipe_is_named_and_a_requirement_is_not() -> None:
    text = unchosen(POWER10)[("variants-default", "openmpi")]
    assert "schedulers=none" in text and "~cuda" in text
    for required in ("fabrics", "romio", "lustre", "gpfs"):
        assert required not in text, "the environment requires it"
    assert ("drivers-generic", "openmpi") in unchosen(POWER10)


def test_the_kits_mpich_writes_by_the_driver_of_the_scratch() -> None:
    drivers = {}
    for path in (ROOT / "environments").glob("*/*/spack.lock"):
        for spec in read_lock(path).specs.values():
            if spec.name == "mpich":
                drivers[path] = spec.variants["romio-filesystem"]
    assert len(drivers) == 14
    for path, names in drivers.items():
        assert names == ["gpfs", "lustre", "nfs", "ufs"]
        found = unchosen(path)
        assert ("drivers-generic", "mpich") not in found
        assert "netmod" not in found[("variants-default", "mpich")]


def edited(folder: Path, parameters: dict[str, Any], require: str, *, external: bool) -> Path:
    """Write the lock of POWER10 with other variants and another requirement of its MPI."""
    lock = json.loads(POWER10.read_text())
    for spec in lock["concrete_specs"].values():
        if spec["name"] == "openmpi":
            spec["parameters"] = parameters
            if external:
                spec["external"] = {"path": "/usr", "module": None}
                spec["dependencies"] = []
    environment = read_spack_yaml(POWER10.parents[1] / "spack.yaml")
    environment["packages"]["mpi"] = {"require": [require]}
    path = folder / "locks/power10/debian12/spack.lock"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(lock))
    path.with_name("spack.yaml").write_text(yaml.safe_dump({"spack": environment}))
    return path


def test_what_nobody_read_of_an_mpi_of_the_site_is_unknown(tmp_path: Path) -> None:
    known = {"fabrics": ["ucx"], "romio": True}
    require = "openmpi@5.0.10 fabrics=ucx +romio"
    found = unchosen(edited(tmp_path, known, require, external=True))
    text = found[("variants-unknown", "openmpi")]
    assert {"schedulers", "lustre", "gpfs", "cuda"} <= set(text.split(", "))
    assert not {"fabrics", "romio", "romio-filesystem", "pmi"} & set(text.split(", "))
    assert ("variants-default", "openmpi") not in found


def test_a_default_that_spack_adds_to_an_external_is_not_known(tmp_path: Path) -> None:
    """The lock has each variant of the recipe: recipes of programs read some of them."""
    completed = {"fabrics": ["ucx"], "romio": True, "gpfs": False, "schedulers": ["none"]}
    path = edited(tmp_path, completed, "openmpi@5.0.10 fabrics=ucx", external=True)
    source = path.with_name("spack.yaml")
    environment = yaml.safe_load(source.read_text())
    spec = {"spec": "openmpi@5.0.10 fabrics=ucx ~gpfs", "prefix": "/usr"}
    environment["spack"]["packages"]["openmpi"] = {"externals": [spec]}
    source.write_text(yaml.safe_dump(environment))
    lock = read_lock(path)
    (mpi_of_site,) = (each for each in lock.specs.values() if each.name == "openmpi")
    assert mpi_of_site.variants == {"fabrics": ["ucx"], "gpfs": False}
    found = unchosen(path)
    assert {"romio", "schedulers"} <= set(found[("variants-unknown", "openmpi")].split(", "))
    assert ("variants-default", "openmpi") not in found
    text = build_of(lock, "ior")["mpi"]
    assert text == "openmpi@5.0.10 fabrics=ucx ~gpfs"


@pytest.mark.parametrize(
    ("drivers", "generic"),
    [
        (["nfs", "ufs"], True),
        (["nfs", "ufs", "gpfs"], False),
        (["lustre"], False),
        (["none"], True),
    ],
)
def test_an_mpi_of_the_kit_without_a_parallel_driver_is_named(
    tmp_path: Path, drivers: list[str], generic: bool
) -> None:
    known = {"romio": True, "romio-filesystem": drivers}
    made = edited(tmp_path, known, "openmpi@5.0.10", external=False)
    assert (("drivers-generic", "openmpi") in unchosen(made)) is generic


def test_the_lock_of_a_site_comes_before_that_of_the_kit(tmp_path: Path) -> None:
    edited(tmp_path, {"romio": False}, "openmpi@5.0.10", external=True)
    lock = lock_at(ROOT, tmp_path, "power10", "debian12")
    assert lock is not None and lock.source.is_relative_to(tmp_path)
    shutil.rmtree(tmp_path / "locks")
    of_kit = lock_at(ROOT, tmp_path, "power10", "debian12")
    assert of_kit is not None and of_kit.source.is_relative_to(ROOT / "environments")
    assert lock_at(ROOT, tmp_path, "power10", "rhel9") is None


LUSTRE = {
    "usr/include/lustre/lustreapi.h": "",
    "usr/include/lustre/lustre_ver.h": '#define LUSTRE_VERSION_STRING "2.15.4"\n',
}


@pytest.mark.parametrize(
    ("scratches", "headers", "expected"),
    [
        ({"lustre"}, LUSTRE, "+romio romio-filesystem=nfs,ufs,lustre ~gpfs +lustre"),
        ({"lustre"}, {}, "+romio romio-filesystem=nfs,ufs ~gpfs ~lustre"),
        ({"nfs"}, LUSTRE, "+romio romio-filesystem=nfs,ufs ~gpfs ~lustre"),
        (
            {"gpfs"},
            {"usr/include/gpfs.h": ""},
            "+romio romio-filesystem=nfs,ufs,gpfs +gpfs ~lustre",
        ),
    ],
)
def test_the_scratch_of_the_site_chooses_the_drivers_of_open_mpi(
    tmp_path: Path, scratches: set[str], headers: dict[str, str], expected: str
) -> None:
    for name, text in headers.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    parts = SiteParts(None, None, (), None, scratches, find_file_systems(tmp_path))
    kit = read_spack_yaml(ROOT / "environments/power10/spack.yaml")
    made = site_environment(kit, parts)
    assert made["packages"]["mpi"] == {"require": [f"openmpi fabrics=ucx {expected}"]}
    assert ("lustre" in made["packages"]) is ("+lustre" in expected)
    assert parts.without_headers == sorted(scratches - set(parts.drivers) - {"nfs"})
    kit = read_spack_yaml(ROOT / "environments/zen3/spack.yaml")
    kit_mpich, mpich = kit["packages"]["mpi"], site_environment(kit, parts)
    assert mpich["packages"]["mpi"] == kit_mpich


def test_the_driver_that_wrote_is_the_reported_one_or_the_only_one() -> None:
    ompio = "mca_fs_base_component mca_fs_ufs_component mca_io_ompio_component"
    both = mpi.file_drivers(f"{ompio} ADIOI_NFS_ ADIO_UFS_ ADIOI_GEN_")
    assert both == ("ompio:ufs", "romio:ufs", "romio:nfs")
    lustre = mpi.file_drivers(f"{ompio} mca_fs_lustre_component")
    assert lustre == ("ompio:lustre", "ompio:ufs")
    printed = (
        "key = romio_no_indep_rw         value = false     \n"
        "key = romio_filesystem_type     value = UFS: Generic ROMIO driver for all UNIX-like\n"
    )
    reported = mpi.reported_drivers(printed)
    assert reported == ("romio:ufs",)
    assert mpi.writing_drivers(reported, both) == ("romio:ufs",)
    assert mpi.writing_drivers((), both) == ("ompio:ufs",)
    assert mpi.writing_drivers((), lustre) == (), "one of two: nobody saw which"
    assert mpi.writing_drivers((), ("romio:ufs", "romio:nfs")) == ()
