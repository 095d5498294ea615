"""The check of a job for processors that cannot run its programs, compared with an emulator.

The user emulation of qemu has the instruction sets of the processors that it names. It ends a
program that uses another instruction by SIGILL, as the processor does. The check must predict that.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from archspec.cpu import TARGETS
from tests.fixtures.kit import execution, make_kit, steps_of
from tests.folders import DATA, PACKAGE, PROBES, ROOT

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite
from proofmark.runs.run_files import write_scripts_of
from proofmark.software.environments import environments_with
from proofmark.software.spack.install import RECORDING
from proofmark.software.spack.lock_check import read_target
from proofmark.software.target import (
    controller_gcc,
    gcc_flags,
    guard,
    signs_of_another,
    target_requirements,
)

FIT = PACKAGE / "jobs/shell/fit.awk"
PROCESSORS = DATA / "processors"

TYPICAL = {
    "k10": ["extrq $4,$8,%xmm0", "pfadd %mm0,%mm0", "popcnt %eax,%eax"],
    "nehalem": ["crc32l %eax,%ebx", "popcnt %eax,%eax"],
    "x86_64_v3": ["vpaddd %ymm0,%ymm0,%ymm0", "vfmadd132pd %ymm0,%ymm0,%ymm0"],
    "x86_64": ["addpd %xmm0,%xmm0"],
}
"""By target, instructions that its compiler may use; qemu's k10 with all of them is "phenom"."""

MODELS = ("phenom", "Nehalem", "Haswell")
SIGILL = 128 + 4


def unfit(folder: Path, targets: list[str], *probes: str) -> tuple[int, str]:
    """Return exit code and output of the check for nodes with these probes."""
    requirements = folder / "needs"
    lines = [target_requirements(target) for target in targets]
    requirements.write_text("".join(f"{line}\n" for line in lines))
    paths = []
    for number, text in enumerate(probes):
        paths.append(folder / f"{number}.before")
        paths[-1].write_text(text)
    done = subprocess.run(
        ["busybox", "awk", "-f", FIT, requirements, *paths], capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def probe(machine: str, flags: str = "", power: int = 0, host: str = "node1") -> str:
    """Return the lines of ``probe.sh facts`` that the check reads."""
    cpuinfo = f"| cpu\t\t: POWER{power} (raw), altivec supported" if power else ""
    cpuinfo = cpuinfo or f"| flags\t\t: {flags}"
    return f"=== host\n| hostname: {host}\n=== system\n| machine: {machine}\n{cpuinfo}\n=== end\n"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a program of tests/data/processors."""
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def build(compiler: str, source: str, *options: str) -> Path:
        program = folder / str(len(list(folder.iterdir())))
        command = [
            compiler,
            "-O1",
            "-static",
            *options,
            f"{PROCESSORS / source}",
            "-o",
            f"{program}",
        ]
        subprocess.run(command, check=True)
        return program

    return build


def emulated(machine: str, model: str, program: Path) -> subprocess.CompletedProcess[str]:
    # The emulator itself ends by SIGILL; the shell turns this into the exit code 132.
    command = f'qemu-{machine}-static -cpu {model} "$0"; exit $?'
    return subprocess.run(["sh", "-c", command, program], capture_output=True, text=True)


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", TYPICAL)
def test_the_check_predicts_sigill(
    target: str, model: str, built: Callable[..., Path], tmp_path: Path
) -> None:
    """Includes the control: for each target, a processor runs the program and passes the check."""
    codes = set()
    for instruction in TYPICAL[target]:
        program = built("gcc", "one.c", f'-DINSTRUCTION="{instruction}"')
        codes.add(emulated("x86_64", model, program).returncode)
    assert codes <= {0, SIGILL}
    flags = emulated("x86_64", model, built("gcc", "flags.c")).stdout
    code, output = unfit(tmp_path, [target], probe("x86_64", flags))
    assert code == (SIGILL in codes)
    assert output.startswith(f"node1: cannot run programs built for {target}: " * code)


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("generation", [8, 9])
@pytest.mark.parametrize(
    ("target", "instruction"), [("power8le", "mtvsrd 0,3"), ("power9le", "modsd 3,4,5")]
)
def test_the_check_predicts_sigill_on_power(
    target: str, instruction: str, generation: int, built: Callable[..., Path], tmp_path: Path
) -> None:
    options = ("-mcpu=power9", f'-DINSTRUCTION="li 5,3; {instruction}"')
    program = built("powerpc64le-linux-gnu-gcc", "one.c", *options)
    exit_code = emulated("ppc64le", f"power{generation}", program).returncode
    assert exit_code in (0, SIGILL)
    code, output = unfit(tmp_path, [target], probe("ppc64le", power=generation))
    assert code == (exit_code == SIGILL), output


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("live-kvm-zen3", "zen3"),  # the hypervisor hides pku
        ("spr-vm", "sapphirerapids"),
        ("skl-2x6148", "skylake_avx512"),
        ("knl-7250-quadrant-flat", "mic_knl"),
        ("power9-ppc64le", "power9le"),
    ],
)
def test_a_node_can_run_programs_for_its_own_processor(
    name: str, target: str, tmp_path: Path
) -> None:
    text = (PROBES / f"{name}.txt").read_text(encoding="utf-8")
    assert unfit(tmp_path, [target], text) == (0, "")
    old_kernel = text.replace(" amx_bf16", "").replace(" amx_tile", "").replace(" amx_int8", "")
    assert unfit(tmp_path, [target], old_kernel) == (0, "")


def test_big_endian_programs_need_such_a_processor(
    built: Callable[..., Path], tmp_path: Path
) -> None:
    """The byte order of the Power 595; the oldest such server processor of qemu is a POWER7."""
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
def test_recorded_nodes_are_checked(recorded: str, target: str, lacks: str, tmp_path: Path) -> None:
    code, output = unfit(tmp_path, [target], (PROBES / f"{recorded}.txt").read_text())
    assert (code, bool(output)) == (bool(lacks), bool(lacks))
    assert set(lacks.split()) <= set(output.split())


def test_every_node_that_cannot_run_the_programs_is_named(tmp_path: Path) -> None:
    nodes = [
        probe("x86_64", "sse2 sse" if n % 3 else "mmx sse sse2", host=f"n{n}") for n in range(9)
    ]
    code, output = unfit(tmp_path, ["x86_64", "nehalem"], *nodes)
    assert code == 1
    assert [line.split(":")[0] for line in output.splitlines() if "for nehalem" in line] == [
        f"n{n}" for n in range(9)
    ]


def test_a_node_whose_probe_has_no_facts_is_refused(tmp_path: Path) -> None:
    code, output = unfit(tmp_path, ["x86_64"], "=== host\n| hostname: n1\n=== end\n")
    assert (code, output) == (1, "n1: cannot run programs built for x86_64: it lacks x86_64\n")


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(BadInput, match="'mic_knll', did you mean 'mic_knl'"):
        target_requirements("mic_knll")


@pytest.mark.fault("wrong-processor")
@pytest.mark.parametrize("target", ["power9le", "x86_64", ""])
def test_no_step_is_started_on_a_wrong_processor(target: str, tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    run = kit.run(kit.software(target=target))
    probes = (PROBES / "live-kvm-zen3.txt").read_text()
    write_scripts_of(run.folder, {"probe.sh": f"cat <<'END'\n{probes}END\n"})
    if target != "power9le":
        execute(run, "none", lambda _: None)
        assert all(execution(step).exists() for step in steps_of(run))
        return
    with pytest.raises(BadInput, match="vm: cannot run programs built for power9le"):
        execute(run, "none", lambda _: None)
    assert not any(list(step.glob("*/started")) for step in steps_of(run))


def test_writing_the_scripts_again_keeps_the_requirements(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    software = kit.software(target="nehalem")
    run = kit.run(software)
    (requirements,) = run.folder.glob("workdir/jobs/*/needs")
    before = requirements.read_text()
    assert before.split()[:2] == ["nehalem", "x86_64"]
    made = Scripts(LaunchSite(software), tmp_path / "scratch", BatchQueue("none"))
    write_scripts(run.folder, run.plan, made)
    assert requirements.read_text() == before


TRIAD = """
double a[4096], b[4096], c[4096];
#include <stdio.h>
#include <math.h>
int main(int argc, char **argv) {
    double sum = 0;
    for (int k = 0; k < argc; k++) {
        for (int i = 0; i < 4096; i++) a[i] = b[i] + argc * c[i];
        for (int i = 0; i < 4096; i++) sum += fabs(a[i]);
        for (int i = 0; i < 4096; i++)
            c[i] = (a[i] - sum) / (b[i] + argc) * (a[i] - k) / (c[i] - argc) - (b[i] * a[i] - k)
                * (a[i] + sum) / (b[i] - argc) * (b[i] + k) / (c[i] + argc);
        printf("%f", sum);
    }
    return 0;
}
"""
STREAMING = ("-O3", "-mprefer-vector-width=512", "-mtune=intel")
"""As the recipe of STREAM: this tuning writes vzeroupper for each target."""


@pytest.fixture(scope="module")
def triad(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("triad")
    (folder / "triad.c").write_text(TRIAD)

    @cache
    def build(options: str) -> Path:
        program = folder / options.replace(" ", "_")
        words = ["gcc", *options.split(), f"{folder / 'triad.c'}", "-o", f"{program}", "-lm"]
        subprocess.run(words, check=True)
        return program

    return build


@pytest.mark.parametrize("tuning", ["-O3 -mtune={}", " ".join(STREAMING)])
@pytest.mark.parametrize(
    ("target", "march", "signs"),
    [
        ("mic_knl", "knl", []),
        ("mic_knl", "skylake-avx512", ["of avx512"]),
        ("mic_knl", "nehalem", ["calculations of SSE, and nothing of AVX"]),
        ("skylake_avx512", "skylake-avx512", []),
        ("skylake_avx512", "knl", ["mic_knl"]),
        ("zen3", "znver3", []),
        ("zen3", "knl", ["of avx512f"]),
        ("nehalem", "nehalem", []),
        ("nehalem", "haswell", ["of avx", "of fma"]),
    ],
)
def test_a_program_tells_its_target(
    triad: Callable[[str], Path], tuning: str, target: str, march: str, signs: list[str]
) -> None:
    program = triad(f"{tuning.format(march)} -march={march}")
    found = [each.found for each in guard(target, [program])]
    assert all(any(sign in text for text in found) for sign in signs), found
    assert bool(found) is bool(signs)


@pytest.mark.parametrize(
    "level", ["-O3", pytest.param("-O2", marks=pytest.mark.rest("the other level"))]
)
@pytest.mark.parametrize("arch", environments_with(ROOT / "environments", "spack.yaml"))
def test_a_program_for_the_target_of_an_environment_is_accepted(
    arch: str, level: str, tmp_path: Path
) -> None:
    """With few wide registers too: by gcc 12 zen4 is zen3 with AVX-512, and has six."""
    target = read_target(ROOT / "environments" / arch)
    if TARGETS[target].family.name != "x86_64":
        return  # the compiler of this machine has no such targets
    try:
        options = gcc_flags(target, controller_gcc())
    except BadInput:
        return  # nor this one
    source = ROOT / "environments/common/sources/os-noise/os_noise.c"
    program = tmp_path / "program"
    words = ["gcc", "-std=c11", level, "-fopenmp", *options.split(), "-o", f"{program}"]
    subprocess.run([*words, f"{source}"], check=True)
    assert [*guard(target, [program])] == []


@pytest.mark.parametrize(
    ("target", "march", "found"),
    [
        ("zen3", "znver3", []),
        ("zen3", "znver2", ["-march=znver2"]),  # the instructions are the same
        ("mic_knl", "x86-64-v3", ["-march=x86-64-v3"]),
        ("icelake", "icelake-client", []),
    ],
)
def test_a_program_with_the_options_of_gcc_in_it_tells_its_target(
    triad: Callable[[str], Path], target: str, march: str, found: list[str]
) -> None:
    """As Spack builds each package: by `RECORDING`."""
    program = triad(f"-O2 -march={march} {RECORDING['SPACK_DEBUG_FLAGS']}")
    assert [each.found for each in guard(target, [program])] == found


def test_recorded_options_tell_the_target_of_each_machine(tmp_path: Path) -> None:
    program = tmp_path / "xhpl"
    program.write_bytes(b"\0GNU C17 12.2.0 -mcpu=power8 -O2\0")
    assert [each.found for each in guard("power9le", [program])] == ["-mcpu=power8"]
    program.write_bytes(b"\0GNU C17 12.2.0 -mcpu=power9 -O2\0")
    assert [*guard("power9le", [program])] == []
    program.write_bytes(b"\0GNU C17 12.2.0 -mcpu=power9 -O2\0GNU C17 12.2.0 -mcpu=power10\0")
    assert [each.found for each in guard("power9le", [program])] == ["-mcpu=power10"]


@pytest.mark.parametrize("target", ["mic_knl", "x86_64_v3", "k10"])
def test_programs_without_signs_are_accepted(tmp_path: Path, target: str) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert [*guard(target, [script, Path("/bin/sh")])] == []


@pytest.mark.parametrize(
    ("instruction", "feature"),
    [("vrcp28pd %zmm0,%zmm1", "avx512er"), ("vgatherpf0dpd (%rax,%ymm1,8){%k1}", "avx512pf")],
)
def test_instructions_of_a_xeon_phi_alone_are_signs(instruction: str, feature: str) -> None:
    of_skylake = frozenset({"avx", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"})
    text = f"  401:\t{instruction}\n  402:\tvzeroupper\n  403:\tkmovb %eax,%k1\n"
    assert [*signs_of_another(text, of_skylake)] == [f"{instruction.split()[0]} of {feature}"]
    assert [*signs_of_another(f"{text}  404:\tcpuid\n", of_skylake)] == []
