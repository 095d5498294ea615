"""Programs: what is called, requirements/programs.yml and the lists of Debian packages agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from plugins.filter.kit import step_packages
from tests.fixtures.kit import Kit, make_kit
from tests.folders import ROOT
from tests.programs import in_python, in_shell
from tests.unit.jobs.test_launchers import ALIKE, launch

from proofmark.cli.nodes import programs as look_for_programs
from proofmark.cli.preflight import print_findings
from proofmark.common.errors import BadInput
from proofmark.jobs.launcher import LAUNCHERS, launcher
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.preflight import preflight
from proofmark.machine.programs import BOUND_MEMORY, Called, Place, called, plan_programs
from proofmark.machine.scheduler import SCHEDULERS, Request, scheduler
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site

Found = dict[str, set[str]]
"""The places that need a program, by its name."""

IN_STEPS = {"site/node/probe.sh", *(f"jobs/shell/{name}.sh" for name in ("each", "job", "step"))}
NO_PROGRAMS = {
    *("cases", "claims", "export", "fabric", "fetch", "guard", "init", "install", "latest"),
    *("mirror", "name", "nan", "plan", "sign", "validate", "verdict", "verify"),
}
"""First words of lists with an option that are no commands."""
TARGETS = {
    "controller": ("acceptance", "bundle ARCH=a OS=b", "clean", "lock ARCH=a OS=b"),
    "rehearsal": ("rehearsal",),
    "tests": ("bench", "relock", "test"),
}
LISTS = ("run", "rehearsal", "dev")


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def place(path: Path) -> str:
    """Return where what a file calls is needed."""
    name = str(path.relative_to(ROOT))
    if path.suffix == ".sh" and name.startswith("analysis/"):
        return "step" if name.removeprefix("analysis/proofmark/") in IN_STEPS else "node"
    if name.startswith("roles/"):
        return "node"
    if name.startswith(("tests/emulators/bmc/", "tests/rehearsal/", "tests/emulators/vcluster/")):
        return "rehearsal"
    return "tests" if name.startswith(("tests/", ".ci/")) else "controller"


def recipes(target: str) -> str:
    """Return what make would run for a target, without running it."""
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", *target.split()]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={**clean, "MAKEFLAGS": ""},
    )
    return done.stdout


def generated(folder: Path) -> list[str]:
    """Return what launchers, schedulers and copies write into the scripts of steps and jobs."""
    kit = make_kit(folder)
    kit.case(launch="mpi", copies=2, sweep={"size": 1, "memory": "ddr"})
    run = kit.run().folder
    steps = [path.read_text() for path in run.glob("steps/*/run.sh")]
    bound = launch(ALIKE)
    lines = [launcher(name).lines(bound) for name in LAUNCHERS.names()]
    asked = Request("job", ["n1", "n2"], 60, folder / "log", Queue())
    fans = [scheduler(name).fan_out(asked) for name in SCHEDULERS.names() if name != "none"]
    return [*steps, *("\n".join(each) for each in [*lines, *fans])]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return every program that is called, with the places that need it."""
    pairs: list[tuple[str, str]] = []
    for path in tracked("*.sh", "requirements/setup.sh", ".ci/run"):
        pairs += [(name, place(path)) for name in in_shell(path.read_text())]
    for path in tracked("analysis/*.py", "plugins/*.py", "tests/*.py"):
        text = path.read_text()
        pairs += [(name, place(path)) for name in in_python(text)]
        where = "node" if place(path) == "controller" else place(path)
        pairs += [(name, where) for name in in_python(text, sent=True)]
    for where, targets in TARGETS.items():
        pairs += [(name, where) for each in targets for name in in_shell(recipes(each))]
    for text in generated(tmp_path_factory.mktemp("kit")):
        pairs += [(name, "step") for name in in_shell(text)]
    places: Found = {}
    for name, where in pairs:
        places.setdefault(name, set()).add(where)
    return places


def packages(name: str) -> list[str]:
    """Return the choices of a list of Debian packages, without comments."""
    text = (ROOT / f"requirements/debian-{name}.txt").read_text()
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


def differences(found: Found, listed: Mapping[str, Called]) -> list[str]:
    """Return what calls and table do not agree on."""
    return [
        *(f"{name}: called, not in programs.yml" for name in sorted(found.keys() - listed.keys())),
        *(f"{name}: in programs.yml, not called" for name in sorted(listed.keys() - found.keys())),
        *(
            f"{name}: needed by {', '.join(sorted(found[name]))}"
            for name in sorted(found.keys() & listed.keys())
            if found[name] != set(listed[name].needed)
        ),
    ]


def missing_packages(listed: Mapping[str, Called], lists: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the packages of the table that the lists of their places do not have."""
    missing = []
    for name, each in listed.items():
        if not each.debian:
            continue
        enough = set(LISTS)
        if not each.only and "rehearsal" in each.needed:
            enough = {"run", "rehearsal"}
        if not each.only and {"controller", "node", "step"} & set(each.needed):
            enough = {"run"}
        known = {choice for one in enough for line in lists[one] for choice in line.split("|")}
        if each.debian not in known:
            missing.append(f"{name}: {each.debian} is not in {', '.join(sorted(enough))}")
    return missing


@pytest.mark.lint
def test_the_table_and_the_calls_agree(found: Found) -> None:
    assert sorted(NO_PROGRAMS - found.keys()) == []
    calls = {name: where for name, where in found.items() if name not in NO_PROGRAMS}
    assert differences(calls, called()) == []


@pytest.mark.lint
def test_the_table_and_the_lists_agree() -> None:
    assert missing_packages(called(), {name: packages(name) for name in LISTS}) == []


@pytest.mark.lint
def test_a_package_without_a_program_states_its_reason() -> None:
    provided = {each.debian for each in called().values()}
    for name in LISTS:
        for line in (ROOT / f"requirements/debian-{name}.txt").read_text().splitlines():
            choices, _, reason = line.partition("#")
            if choices.strip() and not reason.strip():
                assert provided & set(choices.strip().split("|")), line


def test_a_difference_is_found() -> None:
    script = "f() { nosuch -x; }\ncat <a | xargs -0 other 'b'\nf && exec setsid third\n"
    program = (
        "import subprocess, shutil\nPREFIX = ['setpriv', '--pdeathsig', 'TERM']\n"
        "def f(x):\n    both = [*PREFIX, 'fourth', x]\n    subprocess.run(both)\n"
        "    return shutil.which('fifth'), ['sixth', '-v'], ['sh', '-c', f'seventh {x}']\n"
    )
    assert set(in_shell(script)) == {"nosuch", "cat", "xargs", "other", "setsid", "third"}
    found = {name: {"tests"} for name in in_python(program)}
    expected = ["setpriv", "fourth", "fifth", "sixth", "sh", "seventh"]
    assert sorted(found) == sorted(expected)
    listed = {name: Called(essential="x", needed=("tests",)) for name in expected}
    assert differences(found, listed) == []
    assert differences(found | {"eighth": {"step"}}, listed) == [
        "eighth: called, not in programs.yml"
    ]
    nobody = Called(essential="x", needed=("tests",))
    assert differences(found, listed | {"nobody": nobody}) == [
        "nobody: in programs.yml, not called"
    ]
    assert differences(found | {"sh": {"step"}}, listed) == ["sh: needed by step"]


@pytest.mark.parametrize(
    ("needed", "only", "held", "expected"),
    [
        ("tests", "", "dev", []),
        ("tests", "", "", ["p: pkg is not in dev, rehearsal, run"]),
        ("rehearsal", "", "dev", ["p: pkg is not in rehearsal, run"]),
        ("step", "", "rehearsal", ["p: pkg is not in run"]),
        ("step", "memory is bound", "rehearsal", []),
        ("controller", "", "run", []),
    ],
)
def test_a_package_that_is_in_no_list_is_found(
    needed: Place, only: str, held: str, expected: list[str]
) -> None:
    listed = {"p": Called(debian="pkg", needed=(needed,), only=only)}
    lists = {name: ["other", "choice|pkg"] if name == held else [] for name in LISTS}
    assert missing_packages(listed, lists) == expected


@pytest.mark.lint
def test_conditions_of_steps_are_those_that_are_asked() -> None:
    """Preflight asks for a program without a condition, and where memory is bound."""
    conditions = {each.only for each in called().values() if "step" in each.needed and each.package}
    assert conditions == {"", BOUND_MEMORY, "Grid Engine", "Slurm", "ssh", "topology"}


def test_packages_have_the_programs() -> None:
    """By the word of dpkg, on a machine that has all the lists installed."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    owners: dict[str, str] = {}
    listed = {name: each for name, each in called().items() if each.package}
    places = {name: shutil.which(name, path=path) or "" for name in listed}
    spelt = {
        name: {form for there in (place, os.path.realpath(place)) for form in (there, there[4:])}
        for name, place in places.items()
        if place
    }
    assert sorted(listed.keys() - spelt.keys()) == []
    command = ["dpkg-query", "-S", *(form for forms in spelt.values() for form in forms)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        owner, _, file = line.rpartition(": ")
        if not owner.startswith("diversion"):
            owners[file] = owner.partition(":")[0].partition(",")[0]
    for name, forms in spelt.items():
        owned = {owners[form] for form in forms if form in owners}
        assert owned, name
        assert owned & accepted(listed[name].package), (name, owned)


def accepted(package: str) -> set[str]:
    """Return the installed choices of a package's line, and what those depend on."""
    line = next(
        (line for each in LISTS for line in packages(each) if package in line.split("|")), package
    )
    command = ["dpkg-query", "-W", "-f", "${Package} ${Depends}\n", *line.split("|")]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"[a-z0-9][a-z0-9+.-]+", text))


def test_essential_packages_are_essential() -> None:
    names = sorted({each.essential for each in called().values()} - {""})
    command = ["dpkg-query", "-W", "-f", "${Package} ${Essential} ${Priority}\n", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # apt is of priority important in some releases; without it nothing could be installed.
    others = [
        line
        for line in text.splitlines()
        if " yes " not in line and "required" not in line and not line.startswith("apt ")
    ]
    assert others == []


def test_python_programs_are_in_the_virtual_environment() -> None:
    folder = Path(sys.executable).parent
    names = [name for name, each in called().items() if each.python]
    assert [name for name in names if not (folder / name).exists()] == []


def own_paths(kit: Kit, removed: Mapping[str, str]) -> Site:
    """Return two nodes. The PATH of each has the programs of the table without `removed`."""
    for node in ("n1", "n2"):
        folder = kit.folder / "path" / node
        folder.mkdir(parents=True)
        for name in called():
            place = shutil.which(name)
            if place and name != removed.get(node):
                (folder / name).symlink_to(place)
    set_path = f"PATH={kit.folder}/path/{{node}}; export PATH; exec sh -s"
    reach = ["sh", "-c", set_path]
    return kit.site(hosts=("n1", "n2")).model_copy(update={"remote_shell": reach})


def bound(kit: Kit, binds: bool) -> None:
    kit.case(sweep={"size": 1, **({"memory": "ddr"} if binds else {})})


REMOVED = [
    ("numactl", "numactl", True),
    ("awk", "mawk", False),
    ("setsid", "util-linux", False),
    ("taskset", "util-linux", False),
    ("cksum", "coreutils", False),
]
LACKING = pytest.mark.parametrize(("program", "package", "binds"), REMOVED)


@pytest.mark.fault("node-program-missing")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
@LACKING
def test_preflight_names_what_a_node_lacks(
    tmp_path: Path, program: str, package: str, binds: bool, injected: bool
) -> None:
    kit = make_kit(tmp_path)
    bound(kit, binds)
    site = own_paths(kit, {"n2": program} if injected else {})
    findings = preflight(site, kit.plan(site=site), Credentials(), None, "root")
    said = {(each.outcome, each.text) for each in findings if each.what.startswith("programs")}
    if injected:
        lack = f"n2: no such program: {program} (Debian: {package})"
        assert said == {("OK", "n1"), ("NO_PROGRAM", lack)}
        assert print_findings(findings, lambda line: None) == 1
    else:
        assert said == {("OK", "n[1-2]")}
        assert print_findings(findings, lambda line: None) == 0


@pytest.mark.fault("node-program-missing")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
@LACKING
def test_a_run_does_not_begin_where_a_node_lacks_a_program(
    tmp_path: Path, program: str, package: str, binds: bool, injected: bool
) -> None:
    kit = make_kit(tmp_path)
    bound(kit, binds)
    run = kit.run(site=own_paths(kit, {"n1": program} if injected else {}))
    options = Namespace(folder=run.folder, program=[])
    if not injected:
        assert look_for_programs(options) == 0
        return
    wanted = re.escape(f"on n1: found UNEXPECTED: no such program: {program} (Debian: {package})")
    with pytest.raises(BadInput, match=wanted):
        look_for_programs(options)


def test_numactl_is_asked_for_only_where_memory_is_bound(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    bound(kit, False)
    run = kit.run(site=own_paths(kit, {"n1": "numactl", "n2": "numactl"}))
    assert look_for_programs(Namespace(folder=run.folder, program=[])) == 0
    assert "numactl" not in plan_programs(run.plan)


@pytest.mark.parametrize("membind", [[], [0]])
def test_the_package_of_numactl_is_provided_where_memory_is_bound(membind: list[int]) -> None:
    plan = {"groups": [{"jobs": [{"steps": [{"membind": membind}, {}]}]}]}
    assert step_packages(plan) == (["numactl"] if membind else [])
