"""Calls of programs, requirements/programs.yml and the lists of Debian packages agree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import yaml
from tests.fixtures.kit import Kit, make_kit
from tests.folders import ROOT, repository_files
from tests.programs import functions_of, in_python, in_shell
from tests.unit.jobs.test_launchers import ALIKE, launch

from proofmark.cli.check import print_findings
from proofmark.cli.plan import plan_summary
from proofmark.common.errors import BadInput
from proofmark.jobs.launcher import LAUNCHERS, launcher
from proofmark.machine.bmc.back_end import Credentials
from proofmark.machine.node_commands import (
    BOUND_MEMORY,
    CalledProgram,
    Place,
    called,
    check_programs,
    step_programs,
)
from proofmark.machine.preflight import preflight
from proofmark.machine.scheduler import SCHEDULERS, Request, scheduler
from proofmark.runs.run import site_of
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site

Calls = dict[str, set[str]]
"""The places that need a program, by its name."""

STEP_PARTS = (
    "each",
    "files",
    "job",
    "layout",
    "load",
    "network",
    "noise",
    "scratch",
    "step",
    "telemetry",
)
IN_STEPS = {
    "site/node/probe.sh",
    *(f"jobs/shell/{name}.sh" for name in STEP_PARTS),
}
HOME = "common/home.sh"
"""It runs on the controller only."""
NO_PROGRAMS = {
    *("acceptance", "adopt", "baseline", "cases", "check", "export", "modes"),
    *("add", "commit", "fetch", "ticks", "x"),
    *("external", "ior", "lock", "other"),
    *(
        "gate",
        "init",
        "install",
        "latest",
        "mirror",
        "name",
        "nan",
        "plan",
        "report",
    ),
    *("sign", "stage", "status", "telemetry", "trend", "twin", "verdict", "verify"),
    *("conclude", "hold", "next"),  # verbs of the command gate
    *("judge", "measure", "waive"),  # verbs of the command acceptance
    "check_dmi_data_match",  # a check of NHC
    "configure",  # a script of a source that was unpacked
    "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt",  # a sample with an option of its program
}
"""First words of lists with an option that are not commands."""
TARGETS = {
    "controller": "acceptance bundle clean lock ARCH=a OS=b",
    "rehearsal": "rehearsal",
    "tests": "bench docs relock test",
}
"""The targets of the Makefile by the place at which their programs are needed."""
ALTERNATIVES = "/etc/alternatives/"
"""Links of Debian to the package that the machine chose (update-alternatives(1))."""
LISTS = ("run", "rehearsal", "dev")


def place(path: Path) -> str:
    """Return the place at which the programs of a file are needed."""
    name = str(path.relative_to(ROOT))
    if path.suffix == ".sh" and name.startswith("analysis/"):
        if name.removeprefix("analysis/proofmark/") == HOME:
            return "controller"
        return "step" if name.removeprefix("analysis/proofmark/") in IN_STEPS else "node"
    if name.startswith("roles/"):
        return "node"
    if name.startswith(("tests/emulators/bmc/", "tests/rehearsal/", "tests/emulators/vcluster/")):
        return "rehearsal"
    return "tests" if name.startswith(("tests/", ".ci/")) else "controller"


def recipes(*words: str) -> str:
    """Return the commands that make would run for `words`, without running them."""
    return made("--dry-run", "--always-make", *words)


def made(*words: str) -> str:
    """Return what make prints, with the variables of no make that runs this test."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={**clean, "MAKEFLAGS": ""},
    )
    return done.stdout


def generated(folder: Path) -> list[str]:
    """Return the text that launchers, schedulers and copies write into the scripts of a run."""
    kit = make_kit(folder, mcdram=True)
    kit.case(launch="mpi", copies=2, sweep={"size": 1, "memory": "ddr"})
    run = kit.run().folder
    steps = [path.read_text() for path in run.glob("workdir/steps/*/run.sh")]
    bound = launch(ALIKE)
    lines = [launcher(name).lines(bound) for name in LAUNCHERS.names()]
    request = Request("job", ["n1", "n2"], 60, folder / "log", Queue())
    fans = [scheduler(name).fan_out(request) for name in SCHEDULERS.names() if name != "none"]
    return [*steps, *("\n".join(each) for each in [*lines, *fans])]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Return every program that is called, with the places that need it."""
    pairs: list[tuple[str, str]] = []
    for path in repository_files("*.sh", "requirements/setup.sh", ".ci/run"):
        # The kit joins the files of a folder to one script.
        beside = {
            name for each in path.parent.glob("*.sh") for name in functions_of(each.read_text())
        }
        pairs += [(name, place(path)) for name in in_shell(path.read_text(), beside)]
    for path in repository_files("analysis/*.py", "plugins/*.py", "tests/*.py"):
        text = path.read_text()
        pairs += [(name, place(path)) for name in in_python(text)]
        where = "node" if place(path) == "controller" else place(path)
        pairs += [(name, where) for name in in_python(text, sent=True)]
    for where, targets in TARGETS.items():
        pairs += [(name, where) for name in in_shell(recipes(*targets.split()))]
    for text in generated(tmp_path_factory.mktemp("kit")):
        pairs += [(name, "step") for name in in_shell(text)]
    places: Calls = {}
    for name, where in pairs:
        places.setdefault(name, set()).add(where)
    return places


def packages(name: str) -> list[str]:
    """Return the choices of a list of Debian packages, without comments."""
    text = (ROOT / f"requirements/debian-{name}.txt").read_text()
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


def differences(calls: Calls, table: Mapping[str, CalledProgram]) -> list[str]:
    """Return the differences between calls and table."""
    return [
        *(f"{name}: called, not in programs.yml" for name in sorted(calls.keys() - table.keys())),
        *(f"{name}: in programs.yml, not called" for name in sorted(table.keys() - calls.keys())),
        *(
            f"{name}: needed by {', '.join(sorted(calls[name]))}"
            for name in sorted(calls.keys() & table.keys())
            if calls[name] != set(table[name].needed)
        ),
    ]


def missing_packages(
    table: Mapping[str, CalledProgram], lists: Mapping[str, Iterable[str]]
) -> list[str]:
    """Return the packages of the table that are missing in the lists of their places."""
    missing = []
    for name, each in table.items():
        if not each.debian:
            continue
        accepted = set(LISTS)
        if not each.only and "rehearsal" in each.needed:
            accepted = {"run", "rehearsal"}
        if not each.only and {"controller", "node", "step"} & set(each.needed):
            accepted = {"run"}
        listed = {choice for one in accepted for line in lists[one] for choice in line.split("|")}
        if each.debian not in listed:
            missing.append(f"{name}: {each.debian} is not in {', '.join(sorted(accepted))}")
    return missing


@pytest.mark.lint
def test_the_table_and_the_calls_agree(calls: Calls) -> None:
    assert sorted(NO_PROGRAMS - calls.keys()) == []
    programs = {name: where for name, where in calls.items() if name not in NO_PROGRAMS}
    found = differences(programs, called())
    assert not found, "; ".join(found)


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


def test_a_difference_between_calls_and_table_is_reported() -> None:
    script = "f() { nosuch -x; }\ncat <a | xargs -0 other 'b'\nf && exec setsid third\n"
    program = (
        "import subprocess, shutil\nPREFIX = ['setpriv', '--pdeathsig', 'TERM']\n"
        "def f(x):\n    both = [*PREFIX, 'fourth', x]\n    subprocess.run(both)\n"
        "    return shutil.which('fifth'), ['sixth', '-v'], ['sh', '-c', f'seventh {x}']\n"
    )
    assert set(in_shell(script)) == {"nosuch", "cat", "xargs", "other", "setsid", "third"}
    calls = {name: {"tests"} for name in in_python(program)}
    expected = ["setpriv", "fourth", "fifth", "sixth", "sh", "seventh"]
    assert sorted(calls) == sorted(expected)
    table = {name: CalledProgram(essential="x", needed=("tests",)) for name in expected}
    assert differences(calls, table) == []
    assert differences(calls | {"eighth": {"step"}}, table) == [
        "eighth: called, not in programs.yml"
    ]
    unused = CalledProgram(essential="x", needed=("tests",))
    assert differences(calls, table | {"unused": unused}) == ["unused: in programs.yml, not called"]
    assert differences(calls | {"sh": {"step"}}, table) == ["sh: needed by step"]


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
def test_a_package_that_is_in_no_list_is_reported(
    needed: Place, only: str, held: str, expected: list[str]
) -> None:
    table = {"p": CalledProgram(debian="pkg", needed=(needed,), only=only)}
    lists = {name: ["other", "choice|pkg"] if name == held else [] for name in LISTS}
    assert missing_packages(table, lists) == expected


@pytest.mark.lint
def test_preflight_covers_the_conditions_of_the_programs_of_steps() -> None:
    """Preflight checks programs without a condition, and those for memory that is bound.

    A step also runs where no program computes hashes, or where no process survived it.
    """
    conditions = {each.only for each in called().values() if "step" in each.needed and each.package}
    optional = {"a process survives its step", "hashes of outputs"}
    launched = {"Grid Engine", "Slurm", "ssh", "topology", "twin"}
    assert conditions == {"", BOUND_MEMORY} | optional | launched


def test_packages_have_the_programs() -> None:
    """Dpkg reports the owner of each file, on a machine on which all lists are installed."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    owners: dict[str, str] = {}
    packaged = {name: each.package for name, each in called().items() if each.package}
    paths = {name: shutil.which(name, path=path) or "" for name in packaged}
    # The machine chooses among the packages of an alternative: each of them has the program.
    for name, program in paths.items():
        if program and Path(program).is_symlink() and ALTERNATIVES in f"{Path(program).readlink()}":
            del packaged[name]
    paths = {name: paths[name] for name in packaged}
    # Without /usr too: a package may have the file below /bin, which is a link to /usr/bin.
    forms = {
        name: {form for one in (program, os.path.realpath(program)) for form in (one, one[4:])}
        for name, program in paths.items()
        if program
    }
    assert sorted(packaged.keys() - forms.keys()) == []
    command = ["dpkg-query", "-S", *(form for several in forms.values() for form in several)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        owner, _, file = line.rpartition(": ")
        if not owner.startswith("diversion"):
            owners[file] = owner.partition(":")[0].partition(",")[0]
    lines = [line.split("|") for each in LISTS for line in packages(each)]
    choices = {
        package: next((line for line in lines if package in line), [package])
        for package in packaged.values()
    }
    depends = dependencies(sorted({name for names in choices.values() for name in names}))
    for name, several in forms.items():
        owned = {owners[form] for form in several if form in owners}
        assert owned, name
        accepted = {one for choice in choices[packaged[name]] for one in depends.get(choice, ())}
        assert owned & accepted, (name, owned)


def dependencies(names: list[str]) -> dict[str, set[str]]:
    """Return each installed package of `names` and its dependencies, by package."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Depends}\n", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    words = [re.findall(r"[a-z0-9][a-z0-9+.-]+", line) for line in text.splitlines()]
    return {package: {package, *others} for package, *others in words}


def test_essential_packages_are_essential() -> None:
    names = sorted({each.essential for each in called().values()} - {""})
    command = ["dpkg-query", "-W", "-f", "${Package} ${Essential} ${Priority}\n", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # apt has the priority important in some releases. Without it no package can be installed.
    optional = [
        line
        for line in text.splitlines()
        if " yes " not in line and "required" not in line and not line.startswith("apt ")
    ]
    assert optional == []


def test_python_programs_are_in_the_virtual_environment() -> None:
    folder = Path(sys.executable).parent
    names = [name for name, each in called().items() if each.python]
    assert [name for name in names if not (folder / name).exists()] == []


def site_without(kit: Kit, removed: Mapping[str, str]) -> Site:
    """Return two nodes; the PATH of each has the programs of the table without its `removed`."""
    for node in ("n1", "n2"):
        folder = kit.folder / "path" / node
        folder.mkdir(parents=True)
        for name in called():
            place = shutil.which(name)
            if place and name != removed.get(node):
                (folder / name).symlink_to(place)
    set_path = f"PATH={kit.folder}/path/{{node}}; export PATH; exec sh -s"
    remote_shell = ["sh", "-c", set_path]
    return kit.site(hosts=("n1", "n2")).model_copy(update={"remote_shell": remote_shell})


def write_case(kit: Kit, binds: bool) -> None:
    """Write a case whose step binds memory, or does not."""
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
def test_preflight_names_the_program_that_a_node_lacks(
    tmp_path: Path, program: str, package: str, binds: bool, injected: bool
) -> None:
    kit = make_kit(tmp_path, mcdram=True)
    write_case(kit, binds)
    site = site_without(kit, {"n2": program} if injected else {})
    findings = preflight(site, kit.plan(site=site), Credentials(), None, "root")
    reports = {(each.outcome, each.text) for each in findings if each.what.startswith("programs")}
    if injected:
        lack = f"n2: no such program: {program} (Debian: {package})"
        assert reports == {("OK", "n1"), ("NO_PROGRAM", lack)}
        assert print_findings(findings) == 1
    else:
        assert reports == {("OK", "n[1-2]")}
        assert print_findings(findings) == 0


@pytest.mark.fault("node-program-missing")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
@LACKING
def test_a_run_does_not_begin_if_a_node_lacks_a_program(
    tmp_path: Path, program: str, package: str, binds: bool, injected: bool
) -> None:
    kit = make_kit(tmp_path, mcdram=True)
    write_case(kit, binds)
    run = kit.run(site=site_without(kit, {"n1": program} if injected else {}))
    if not injected:
        check_programs(run, site_of(run), [])
        return
    wanted = re.escape(f"on n1: UNEXPECTED: found no such program: {program} (Debian: {package})")
    with pytest.raises(BadInput, match=wanted):
        check_programs(run, site_of(run), [])


def test_numactl_is_required_only_if_memory_is_bound(tmp_path: Path) -> None:
    kit = make_kit(tmp_path, mcdram=True)
    write_case(kit, False)
    run = kit.run(site=site_without(kit, {"n1": "numactl", "n2": "numactl"}))
    check_programs(run, site_of(run), [])
    assert "numactl" not in step_programs(bound_memory=run.plan.binds_memory())


@pytest.mark.parametrize("binds", [False, True])
def test_the_package_of_numactl_is_provided_if_memory_is_bound(tmp_path: Path, binds: bool) -> None:
    kit = make_kit(tmp_path, mcdram=True)
    write_case(kit, binds)
    packages = plan_summary(kit.plan())["step_packages"]
    assert packages == (["numactl"] if binds else [])


def test_the_folders_of_make_may_have_blanks() -> None:
    folders = {"SPACK": "/a b", "SPACK_PACKAGES": "/c d", "SOURCES": "/e f"}
    given = [f"{name}={folder}" for name, folder in folders.items()]
    settings = ROOT / "inventory/local-spack/group_vars/local/settings.yml"
    for text in yaml.safe_load(settings.read_text(encoding="utf-8")).values():
        (name,) = re.findall(r"lookup\('ansible.builtin.env', '(\w+)'\)", text)
        # make hands the variables of its command line to the commands of a recipe.
        shown = made(f'--eval=shown: ; @printf %s "$${name}"', "shown", *given)
        assert shown == folders[name]
    words = shlex.split(recipes("bundle", "ARCH=knl", "OUT=/i j", *given), comments=True)
    assert {"--spack=/a b", "--sources=/e f", "/i j"} <= set(words)
