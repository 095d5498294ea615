"""Sites build the six packages, each with its own MPI; the first one's figures judge the others.

Needs the same variables as `test_install`, and the packages of ``requirements/debian-spack.txt``.
The folder has the sources of the six packages. It may have a ``packages.yaml``: what the sites ask
of Spack, such as another version of a package whose source is at hand.

The first site has the Open MPI of Debian; the others have its MPICH, and the MPI of the prefix
``PROOFMARK_SPACK_MPI``, which may be built from its source. ``-k prefix`` leaves out the other one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bars.judged import make_keys
from tests.fixtures.pages import plain
from tests.folders import ROOT
from tests.processes import running
from tests.roles.kit import Kit, Played, accept_disturbance, make_kit
from tests.spack.test_install import NEEDED

from proofmark.software.spack.lock_file import read_lock
from proofmark.software.target import guard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]

PROOFMARK = f"{Path(sys.executable).parent / 'proofmark'}"
LONGEST_S = 5400
"""The time limit of an acceptance with its builds."""
MOST_ROWS = 100
"""The limit of the rows of the page that are not folded. It has more than 300 figures."""
SUITE = "quick"
"""It runs all six packages."""
FIRST, OTHERS = "openmpi", ("mpich", "prefix")
"""The sites, by their MPI."""
HEADERS = {
    "openmpi": "lib/*/openmpi/include/mpi.h",
    "mpich": "include/*/mpich/mpi.h",
}
"""Those of Debian's MPIs, below /usr."""
STATING = {"openmpi": "ompi_info", "mpich": "mpichversion"}
"""The program that states how an MPI was built."""


@dataclass(frozen=True)
class BuiltSite:
    """A site whose packages were built, and measured.

    Attributes:
        minutes: the time of the lock, and of builds and measurements.
    """

    kit: Kit
    played: Played
    minutes: tuple[float, float]

    def __str__(self) -> str:
        of_lock, of_run = self.minutes
        name = self.kit.folder.parent.name
        return f"{name}: lock {of_lock:.1f} min, builds and suite {of_run:.1f} min"

    @property
    def packages(self) -> dict[str, Any]:
        """Return the packages of the run, by name."""
        software = json.loads((self.kit.run() / "software.json").read_text())
        packages: dict[str, Any] = software["packages"]
        return packages


def mpi_of(name: str, folder: Path) -> Path:
    """Return the prefix of the MPI of a site; skip the test if this machine lacks it.

    Of two MPIs of Debian /usr/bin/mpicc is only one, so each gets a prefix of links in `folder`.
    """
    if name == "prefix":
        if built := os.environ.get("PROOFMARK_SPACK_MPI"):
            return Path(built)
        pytest.skip("PROOFMARK_SPACK_MPI names no prefix")
    headers = [*Path("/usr").glob(HEADERS[name])]
    if not headers:
        pytest.skip(f"no {name} of Debian with its headers")
    programs = folder / f"mpi/{name}/bin"
    programs.mkdir(parents=True)
    (programs.parent / "include").symlink_to(headers[0].parent)
    for program in [*Path("/usr/bin").glob(f"mpi*.{name}"), Path("/usr/bin", STATING[name])]:
        (programs / program.name.removesuffix(f".{name}")).symlink_to(program)
    return programs.parent


def proofmark(kit: Kit, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command in the folder of `kit`, and return what it prints."""
    done = subprocess.run([PROOFMARK, *words], cwd=kit.folder, capture_output=True, text=True)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def kit_of(folder: Path) -> Kit:
    """Return a kit with the cases, environments and recipes of the checkout."""
    folder.mkdir(parents=True)
    kit = make_kit(folder)
    for part in ("benchmarks", "environments", "spack-repo", "requirements"):
        shutil.rmtree(kit.folder / part, ignore_errors=True)
        shutil.copytree(ROOT / part, kit.folder / part)
    shared = folder.parent / ".provision"  # Spack reads all recipes once
    shared.mkdir(exist_ok=True)
    (kit.folder / ".provision").symlink_to(shared)
    accept_disturbance(kit)
    for path in (kit.folder / "benchmarks").glob("*.yml"):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "references" in case:  # the first site judges nothing: other work may run beside it
            case["references"] = []
        path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")
    settings = ROOT / "inventory/local-spack/group_vars/local/partition.yml"
    facts = yaml.safe_load(settings.read_text(encoding="utf-8"))["partition"]["facts"]
    array = max(facts["stream_array_size"], smallest_array())
    kit.partition(provision_from="spack", facts=facts | {"stream_array_size": array})
    names = ("provision_spack_root", "provision_spack_packages", "provision_sources")
    kit.settings(**{name: os.environ[of] for name, of in zip(names, NEEDED, strict=True)})
    asked = Path(os.environ[NEEDED[2]]) / "packages.yaml"
    (kit.folder / "inventory/local/locks").mkdir()
    if asked.exists():
        shutil.copy(asked, kit.folder / "inventory/local/locks")
    return kit


def smallest_array() -> int:
    """Return the elements of an array of STREAM that has four times the bytes of all caches."""
    words = ("lscpu", "--bytes", "--json", "--caches=ALL-SIZE")
    caches = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["caches"]
    return max(int(each["all-size"]) for each in caches) * 4 // 8


def build(folder: Path, mpi: Path, contract: str) -> BuiltSite:
    """Build the packages of a site with the MPI of the prefix `mpi`, and measure them.

    Args:
        contract: its items; empty for a site without one.
    """
    kit = kit_of(folder)
    checkouts = ["--spack", os.environ[NEEDED[0]], "--spack-packages", os.environ[NEEDED[1]]]
    times = [time.monotonic()]
    words = ("lock", "local", "-i", "inventory/local", "--find", f"--mpi={mpi}")
    proofmark(kit, *words, *checkouts)
    times.append(time.monotonic())
    if contract:
        (kit.folder / "inventory/local/contract.yml").write_text(contract)
    variables = f"suite={SUITE} repeats=1 accept_unjudged={not contract}"
    with running(kit.start("acceptance.yml", "-e", variables)) as process:
        output, _ = process.communicate(timeout=LONGEST_S)
    times.append(time.monotonic())
    minutes = ((times[1] - times[0]) / 60, (times[2] - times[1]) / 60)
    return BuiltSite(kit, Played(process.returncode, output), minutes)


TARGETS = ("mic_knl", "skylake_avx512", "zen3", "k10")
"""Targets of other locks; zen3 has no instruction that the target of the site lacks."""


def check_site(site: BuiltSite, mpi: Path) -> None:
    """The six packages were built with `mpi` for the target alone, and each step was measured."""
    assert site.played.code in (0, 2), site.played.output  # 2: a figure is missing or worse
    assert (site.kit.run() / "verdict.json").exists(), site.played.output
    packages = site.packages
    results = site.kit.verdict()["results"]
    invalid = {each["reason"] for each in results if each["verdict"] == "INVALID"}
    assert not invalid, invalid
    built = read_lock(next((site.kit.folder / "inventory/local/locks").glob("*/*/spack.lock")))
    assert {*packages} == {*built.roots}, site.played.output
    assert len(packages) == 6
    for name, package in packages.items():
        programs = [Path(each["path"]) for each in package["programs"].values()]
        assert [*guard(package["target"], programs)] == []
        for other in TARGETS:
            assert {sign.file for sign in guard(other, programs)} == {*map(str, programs)}, name
    (family,) = (name for name, program in STATING.items() if (mpi / "bin" / program).exists())
    home = Path("/usr") if (mpi / "include").is_symlink() else mpi
    for name in {*packages} - {"stream"}:
        stated = [each["mpi"] for each in packages[name]["programs"].values()]
        assert {each["family"] for each in stated} == {family}, name
        assert all(Path(each["library"]).is_relative_to(home) for each in stated), name


def accepted_figures(kit: Kit, keys: Path) -> str:
    """Accept the run of a site, and return its figures as a contract."""
    run = f"{kit.run()}"
    proofmark(kit, "sign", run, "--key", f"{keys / 'key'}")
    words = ("--signers", f"{keys / 'signers'}", "--reason", "the first site has no limits")
    proofmark(kit, "baseline", "accept", run, *words)
    proofmark(kit, "baseline", "export", run, "-o", "items.yml")
    exported = yaml.safe_load((kit.folder / "items.yml").read_text(encoding="utf-8"))["items"]
    parties = {"buyer": "the second site", "supplier": "the first site"}
    return yaml.safe_dump({"title": "its figures", "parties": parties, "items": exported})


def check_judged(verdict: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> None:
    """Each accepted figure was compared with one of the second site."""
    limits = {each["number"]: each for each in verdict["limits"] if "number" in each}
    assert {*limits} == {each["number"] for each in items}
    assert [each for each in limits.values() if not each["compared"]] == []


def check_differences(first: BuiltSite, second: BuiltSite) -> None:
    """The differences of the programs are named, on one page that has a row for each metric."""
    runs = [f"{each.kit.run()}" for each in (first, second)]
    changes = [line for line in proofmark(first.kit, "trend", *runs).splitlines() if " → " in line]
    of_mpi = {*second.packages} - {"stream"}
    for name in of_mpi:
        assert [line for line in changes if name in line and "MPI" in line], changes
    proofmark(first.kit, "trend", *runs, "-o", "page.html")
    page = plain((first.kit.folder / "page.html").read_text(encoding="utf-8"))
    for folded in re.findall(r"(?s)<details.*?</details>", page):
        page = page.replace(folded, "")
    rows = [re.sub("<[^>]*>", " ", row) for row in re.findall(r"(?s)<tr.*?</tr>", page)]
    results = second.kit.verdict()["results"]
    for named in {(each["case"], each["metric"]) for each in results if each["case"] != "stream"}:
        assert [row for row in rows if {*named} <= {*row.split()}], named
    (difference,) = [row for row in rows if " openmpi " in row and " → " not in row]
    assert all(name in difference for name in of_mpi), difference
    assert len(rows) < MOST_ROWS


@pytest.fixture(scope="module")
def first() -> Iterator[tuple[BuiltSite, str]]:
    """Return the first site, and its accepted figures as a contract."""
    with tempfile.TemporaryDirectory(prefix="kit-") as folder:  # a short path, for Spack
        top = Path(folder)
        make_keys(top)
        mpi = mpi_of(FIRST, top)
        site = build(top / FIRST, mpi, "")
        check_site(site, mpi)
        yield site, accepted_figures(site.kit, top)


@pytest.mark.parametrize("name", OTHERS)
def test_a_site_is_judged_by_the_figures_of_the_first(
    first: tuple[BuiltSite, str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One test, because each site takes longer than all that is asked of it."""
    site, contract = first
    top = site.kit.folder.parents[1]
    mpi = mpi_of(name, top)
    other = build(top / name, mpi, contract)
    with capsys.disabled():
        print(site, other, sep="\n")
    check_site(other, mpi)
    check_judged(other.kit.verdict(), yaml.safe_load(contract)["items"])
    check_differences(site, other)
