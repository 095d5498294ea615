"""What a site asks in ``packages.yaml`` counts in its lock, or is refused, by a real Spack.

Needs Spack and its recipes at the pinned commits: their directories in ``PROOFMARK_SPACK`` and
``PROOFMARK_SPACK_PACKAGES``. The index of all recipes is that of the checkout.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli.install import ready
from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.software.spack.installation import SpackInstallation, unmarked
from proofmark.software.spack.lock_check import check
from proofmark.software.spack.lock_file import SiteRequest, read_lock
from proofmark.software.spack.lock_make import copied_environment, make

NEEDED = ("PROOFMARK_SPACK", "PROOFMARK_SPACK_PACKAGES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]
TOOLS = {"autoconf": "2.71", "automake": "1.16.5", "libtool": "2.4.7", "m4": "1.4.19"} | {
    **{"pkgconf": "1.8.1", "gmake": "4.3", "perl": "5.36.0", "mpich": "4.0.2"}
}
LUSTRE = "lustre: {buildable: false, externals: [{spec: lustre@2.15.0, prefix: /usr}]}"


@pytest.fixture(scope="module")
def checkouts() -> SpackInstallation:
    spack, packages = (Path(os.environ[name]) for name in NEEDED)
    return ready(Namespace(spack=spack, spack_packages=packages, prefixes=None), ROOT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a lock of a site with MPICH and tools, for IOR alone."""
    folder = tmp_path / "mysite/locks/local/debian12"
    folder.mkdir(parents=True)
    environment = yaml.safe_load((ROOT / "environments/local/spack.yaml").read_text())
    environment["spack"]["specs"] = ["ior target=x86_64_v3"]
    for name, version in TOOLS.items():
        external = {"spec": f"{name}@{version}", "prefix": "/usr"}
        entry = {"buildable": False, "require": f"@{version}", "externals": [external]}
        environment["spack"]["packages"][name] = entry
    environment["spack"]["packages"]["mpi"] = {"require": ["mpich@4.0.2"]}
    (folder / "spack.yaml").write_text(yaml.safe_dump(environment))
    return folder


def asks(folder: Path, asked: str) -> Path:
    """Write what the site asks; return the file."""
    choice = folder.parents[1] / "packages.yaml"
    choice.write_text(asked)
    return choice


COUNTS = {
    "require": ('{ior: {require: "@4.0.0 +lustre"}, %s}', "lustre", True),
    "list": ('{ior: {require: ["@4.0.0", "+lustre"]}, %s}', "lustre", True),
    "prefer": ("{ior: {prefer: [+lustre]}, %s}", "lustre", True),
    "variants": ("{ior: {variants: +lustre}, %s}", "lustre", True),
    "all": ('{all: {"prefer:": [+lustre]}, %s}', "lustre", True),
    "range": ('{ior: {require: "@3.2:3.9"}, %s}', "version", "3.3.0"),
    "replaced": ('{ior: {"require:": ["@3.3.0"]}, %s}', "version", "3.3.0"),
    "package replaced": ('{"ior:": {require: "@3.3.0"}, %s}', "version", "3.3.0"),
    "one of": ('{ior: {require: [{one_of: ["@3.3.0", "@3.2.1"]}]}, %s}', "version", "3.3.0"),
    "either MPI": ("{mpi: {require: [{any_of: [mpich, openmpi]}]}, %s}", "version", "4.0.0"),
    "any of": ('{ior: {require: [{any_of: ["@3.3.0", "@3.2.1"]}]}, %s}', "version", "3.3.0"),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_what_a_site_asks_counts(folder: Path, checkouts: SpackInstallation, kind: str) -> None:
    text, key, expected = COUNTS[kind]
    asks(folder, f"packages: {text % LUSTRE}\n")
    make(ROOT, folder / "spack.yaml", folder, checkouts)
    ior = read_lock(folder / "spack.lock").root("ior")
    assert (ior.version if key == "version" else ior.variants[key]) == expected
    assert check(ROOT, "local", "debian12", folder.parents[1]) == []
    made = read_json(folder / "packages.json", SiteRequest)
    asks(folder, "packages: {ior: {require: '@4.0.0'}}\n")
    (mistake,) = check(ROOT, "local", "debian12", folder.parents[1])
    assert (mistake.key, mistake.found) == ("inputs", made.inputs[:12])


REFUSED = {
    "unknown package": ('{iro: {require: "+lustre"}}', "iro: found no recipe has this name"),
    "unknown key": ('{ior: {requires: "x"}}', r"'requires' was unexpected"),
    "not packages": ("{}\ninclude: [other.yaml]", r"'include' was unexpected"),
    "twice": ("{}\npackages: {ior: {require: '@3'}}", r"packages: found ==> Error: "),
    "version": ('{ior: {version: ["3.3.0"]}}', r"ior\.version: found @3\.3\.0, but .* ior@4\.0\.0"),
    "preference": ('{ior: {prefer: ["@3.3.0"]}}', r"ior\.prefer: found @3\.3\.0, but .*@4\.0\.0"),
    "provider": ("{all: {providers: {mpi: [openmpi]}}}", r"providers\.mpi: found openmpi, but"),
    "target": ("{all: {target: [zen4]}}", r"all\.target: found target=zen4, but the solver gives"),
    "no such variant": ('{ior: {require: "+nosuch"}}', "spack concretize: found no solution"),
    "both MPIs": ("{mpi: {require: [mpich, openmpi]}}", "spack concretize: found no solution"),
    "all replaced": (
        '{"all:": {prefer: [+x]}}',
        r"all\.require: found nothing",
    ),
    "two": ("{mpi: {require: [openmpi]}}", "spack concretize: found no solution"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_not_count_is_refused(
    folder: Path, checkouts: SpackInstallation, kind: str
) -> None:
    asked, words = REFUSED[kind]
    choice = asks(folder, f"packages: {asked}\n")
    with pytest.raises(BadInput, match=words) as raised:
        make(ROOT, folder / "spack.yaml", folder, checkouts)
    assert f"{choice}" in str(raised.value) or f"{folder}" in str(raised.value)
    assert [path.name for path in folder.iterdir()] == ["spack.yaml"]


WISHES = """
ior: {require: ["@4.0.0", +lustre], prefer: [~lustre], variants: +hdf5}
openblas: {version: ["0.3.33", "0.3.32"], variants: threads=none}
mpi: {require: [mpich device=ch4, openmpi]}
hpl: {require: [{any_of: ["@2.2", "@2.3"]}, {one_of: [+openmp]}, {spec: "@9", when: "@1"}]}
blis: {require: "@9"}
all: {target: [zen4], prefer: [target=x86_64_v3], providers: {mpi: [openmpi], blas: [openblas]}}
"""
UNMET = {
    *("ior.require +lustre", "ior.variants +hdf5", "openblas.version @0.3.33 or @0.3.32"),
    *("mpi.require openmpi", "hpl.require +openmp", "all.target target=zen4"),
    "all.providers.mpi openmpi",
}


def test_the_specs_of_a_lock_say_which_wishes_do_not_count(checkouts: SpackInstallation) -> None:
    """A package that the lock lacks is of another environment of the site."""
    folder = ROOT / "environments/local/debian12"
    with copied_environment(ROOT, folder.parent / "spack.yaml", folder, checkouts) as copied:
        (copied.folder / "spack.lock").write_bytes((folder / "spack.lock").read_bytes())
        found = json.loads(copied.output_of("unmet", yaml.safe_load(WISHES)))
    assert {f"{each['key']} {each['asked']}" for each in found} == UNMET
    of_ior = next(each["found"] for each in found if each["key"] == "ior.require")
    assert of_ior.startswith("ior@4.0.0~aio") and of_ior.endswith(" target=x86_64_v3")


@pytest.mark.parametrize("kind", [*COUNTS, "include"])
def test_the_emulated_configuration_is_that_of_spack(
    folder: Path, checkouts: SpackInstallation, kind: str
) -> None:
    """`tests/emulators/spack_config.py` stands for Spack in the tests of the command."""
    asked = COUNTS[kind][0] % LUSTRE if kind in COUNTS else "{openblas: {require: '@0.3.33'}}"
    asks(folder, f"packages: {asked}\n")
    with copied_environment(ROOT, folder / "spack.yaml", folder, checkouts) as copied:
        merged = copied.packages()
        words = [sys.executable, ROOT / "tests/emulators/spack_config.py", *copied.words[1:]]
        words += ["-e", copied.folder, "config", "get", "packages"]
        printed = subprocess.check_output([*map(str, words)], text=True)
    emulated = unmarked(yaml.safe_load(printed))["packages"]
    for name in emulated.keys() - {"all"}:
        assert emulated[name] == merged[name], shlex.join(map(str, words))
    assert emulated["all"].keys() <= merged["all"].keys()
