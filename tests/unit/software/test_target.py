"""Programs on processors that cannot run them: what the job says, held against an emulator.

qemu's user emulation has the instruction sets of the processors it names, and ends a program that
uses another by SIGILL, as the processor does. Its answer is what the check must foretell.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit, steps_of
from tests.folders import DATA, PACKAGE, PROBES

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.jobs.scripts import write_scripts
from proofmark.software.target import needs

FIT = PACKAGE / "jobs/shell/fit.awk"
PROCESSORS = DATA / "processors"

TYPICAL = {
    "k10": ["extrq $4,$8,%xmm0", "pfadd %mm0,%mm0", "popcnt %eax,%eax"],
    "nehalem": ["crc32l %eax,%ebx", "popcnt %eax,%eax"],
    "x86_64_v3": ["vpaddd %ymm0,%ymm0,%ymm0", "vfmadd132pd %ymm0,%ymm0,%ymm0"],
    "x86_64": ["addpd %xmm0,%xmm0"],
}
"""By target, instructions that its compiler may use; "phenom" is qemu's k10 with all of them."""

MODELS = ("phenom", "Nehalem", "Haswell")
SIGILL = 128 + 4


def unfit(folder: Path, targets: list[str], *probes: str) -> tuple[int, str]:
    """Return the exit code and the words of the check, on nodes with these probes."""
    wanted = folder / "needs"
    wanted.write_text("".join(f"{needs(target).line()}\n" for target in targets))
    paths = []
    for number, text in enumerate(probes):
        paths.append(folder / f"{number}.before")
        paths[-1].write_text(text)
    done = subprocess.run(
        ["busybox", "awk", "-f", FIT, wanted, *paths], capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def probe(machine: str, flags: str = "", power: int = 0, host: str = "node1") -> str:
    """Return what is of use here in what ``probe.sh facts`` prints."""
    cpuinfo = f"| cpu\t\t: POWER{power} (raw), altivec supported" if power else ""
    cpuinfo = cpuinfo or f"| flags\t\t: {flags}"
    return f"=== host\n| hostname: {host}\n=== system\n| machine: {machine}\n{cpuinfo}\n=== end\n"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a program of tests/data/processors."""
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def build(compiler: str, source: str, *options: str) -> Path:
        made = folder / str(len(list(folder.iterdir())))
        command = [compiler, "-O1", "-static", *options, f"{PROCESSORS / source}", "-o", f"{made}"]
        subprocess.run(command, check=True)
        return made

    return build


def emulated(machine: str, model: str, program: Path) -> subprocess.CompletedProcess[str]:
    # The shell turns the emulator's own death by SIGILL into the exit code 132.
    command = f'qemu-{machine}-static -cpu {model} "$0"; exit $?'
    return subprocess.run(["sh", "-c", command, program], capture_output=True, text=True)


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", TYPICAL)
def test_who_cannot_run_it_dies_of_it(
    target: str, model: str, built: Callable[..., Path], tmp_path: Path
) -> None:
    """The control is in it: every target has a processor that runs it, and is let run."""
    codes = set()
    for instruction in TYPICAL[target]:
        program = built("gcc", "one.c", f'-DINSTRUCTION="{instruction}"')
        codes.add(emulated("x86_64", model, program).returncode)
    assert codes <= {0, SIGILL}
    flags = emulated("x86_64", model, built("gcc", "flags.c")).stdout
    code, said = unfit(tmp_path, [target], probe("x86_64", flags))
    assert code == (SIGILL in codes)
    assert said.startswith(f"node1: cannot run programs built for {target}: " * code)


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("generation", [8, 9])
@pytest.mark.parametrize(
    ("target", "instruction"), [("power8le", "mtvsrd 0,3"), ("power9le", "modsd 3,4,5")]
)
def test_power(
    target: str, instruction: str, generation: int, built: Callable[..., Path], tmp_path: Path
) -> None:
    options = ("-mcpu=power9", f'-DINSTRUCTION="li 5,3; {instruction}"')
    program = built("powerpc64le-linux-gnu-gcc", "one.c", *options)
    died = emulated("ppc64le", f"power{generation}", program).returncode
    assert died in (0, SIGILL)
    code, said = unfit(tmp_path, [target], probe("ppc64le", power=generation))
    assert code == (died == SIGILL), said


def test_big_endian_power6_class(built: Callable[..., Path], tmp_path: Path) -> None:
    """The Power 595's byte order; qemu's oldest server processor of it is a POWER7."""
    program = built("powerpc64-linux-gnu-gcc", "one.c", "-mcpu=power6", '-DINSTRUCTION="nop"')
    assert emulated("ppc64", "power7", program).returncode == 0
    assert unfit(tmp_path, ["ppc64"], probe("ppc64", power=7)) == (0, "")
    assert emulated("ppc64le", "power9", program).returncode != 0
    assert unfit(tmp_path, ["ppc64"], probe("ppc64le", power=9)) == (
        1,
        "node1: cannot run programs built for ppc64: it lacks ppc64\n",
    )


@pytest.mark.parametrize(
    ("recorded", "target", "lacks"),
    [
        ("knl-7250-quadrant-flat", "mic_knl", ""),
        ("knl-7250-quadrant-flat", "skylake_avx512", "avx512bw avx512dq avx512vl"),
        ("skl-2x6148", "skylake_avx512", ""),
        ("skl-2x6148", "mic_knl", "avx512er avx512pf"),
        ("power9-ppc64le", "power9le", ""),
        ("power9-ppc64le", "mic_knl", "x86_64"),
    ],
)
def test_whole_probes(recorded: str, target: str, lacks: str, tmp_path: Path) -> None:
    code, said = unfit(tmp_path, [target], (PROBES / f"{recorded}.txt").read_text())
    assert (code, bool(said)) == (bool(lacks), bool(lacks))
    assert set(lacks.split()) <= set(said.split())


def test_every_node_that_cannot_is_named(tmp_path: Path) -> None:
    nodes = [
        probe("x86_64", "sse2 sse" if n % 3 else "mmx sse sse2", host=f"n{n}") for n in range(9)
    ]
    code, said = unfit(tmp_path, ["x86_64", "nehalem"], *nodes)
    assert code == 1
    assert [line.split(":")[0] for line in said.splitlines() if "for nehalem" in line] == [
        f"n{n}" for n in range(9)
    ]


def test_a_node_that_says_nothing_of_itself_is_not_let_run(tmp_path: Path) -> None:
    code, said = unfit(tmp_path, ["x86_64"], "=== host\n| hostname: n1\n=== end\n")
    assert (code, said) == (1, "n1: cannot run programs built for x86_64: it lacks x86_64\n")


def test_unknown_target() -> None:
    with pytest.raises(BadInput, match="'mic_knll', did you mean 'mic_knl'"):
        needs("mic_knll")


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("target", ["power9le", "x86_64", ""])
def test_no_step_is_started_on_the_wrong_processor(target: str, tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    run = kit.run(kit.software(target=target))
    probes = (PROBES / "live-kvm-zen3.txt").read_text()
    (run.folder / "probe.sh").write_text(f"cat <<'END'\n{probes}END\n")
    if target != "power9le":
        execute(run, "none", lambda _: None)
        assert all((step / "rc").exists() for step in steps_of(run))
        return
    with pytest.raises(BadInput, match="vm: cannot run programs built for power9le"):
        execute(run, "none", lambda _: None)
    assert not any((step / "started").exists() for step in steps_of(run))


def test_staging_again_keeps_what_the_nodes_need(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    software = kit.software(target="nehalem")
    run = kit.run(software)
    (needed,) = run.folder.glob("jobs/*/needs")
    before = needed.read_text()
    assert before.split()[:2] == ["nehalem", "x86_64"]
    write_scripts(run.folder, run.plan, software, tmp_path / "scratch", "none")
    assert needed.read_text() == before
