"""Which kernel a BLAS chose, and which one the processor deserves."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.folders import PACKAGE, PROBES

from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.blas import (
    AS_INSTALLED,
    RIGHT,
    BlasVariants,
    blas_variants,
    candidate_kernels,
    families,
    reported_kernels,
)
from proofmark.software.program import Blas, Program, parse_program

PROBE = PACKAGE / "software/probe-program.sh"
ZEN3 = "live-kvm-zen3"
KNL = "knl-7250-quadrant-flat"


def node(name: str) -> NodeFacts:
    return parse_probe((PROBES / f"{name}.txt").read_text(encoding="utf-8"), name)


def recorded(name: str) -> Program:
    return parse_program((PROBES / f"program-{name}.txt").read_text(encoding="utf-8"), name)


def openblas(chosen: str | None, has: str = "", *, lacks: str = "", **changes: object) -> Program:
    """Return hpcc with an OpenBLAS that has some kernels; for what it lacks it takes its own."""
    tried = {name: name.title() for name in has.split()}
    plain = Blas(
        family="openblas",
        version="0.3.21",
        library="/usr/lib/libopenblasp-r0.3.21.so",
        chosen=chosen,
        why_unknown=None if chosen else "the library does not say",
        tried=tried | {name: str(chosen) for name in lacks.split()},
        forced=None,
        built_for=None,
    )
    return recorded("hpcc-openblas").model_copy(update={"blas": plain.model_copy(update=changes)})


def chosen_and_right(found: BlasVariants) -> tuple[str | None, str | None, dict[str, str]]:
    right = found.variants[RIGHT]
    assert found.variants[AS_INSTALLED].environment == {}
    return found.variants[AS_INSTALLED].kernel, right.kernel, right.environment


def test_a_prescott_kernel_on_avx512_is_found_and_set_right() -> None:
    program = openblas("Prescott", "SKYLAKEX HASWELL", lacks="COOPERLAKE SAPPHIRERAPIDS")
    found = blas_variants(program, node("spr-vm"))
    forced = {"OPENBLAS_CORETYPE": "SKYLAKEX"}
    assert chosen_and_right(found) == ("PRESCOTT", "SKYLAKEX", forced)
    (said,) = found.findings
    assert "OpenBLAS 0.3.21 chose PRESCOTT (SSE3) on a CPU with AVX-512" in said
    assert "a several-fold loss" in said
    assert said.endswith("set OPENBLAS_CORETYPE=SKYLAKEX.")


def test_a_kernel_that_fits_is_left_alone() -> None:
    found = blas_variants(recorded("hpcc-openblas"), node(ZEN3))
    assert chosen_and_right(found) == ("ZEN", "ZEN", {})
    assert found.findings == ()
    assert found.report == {"OPENBLAS_VERBOSE": "2"}


@pytest.mark.parametrize("chosen", ["SkylakeX", "Cooperlake", "SapphireRapids"])
def test_kernels_equal_in_double_precision_are_left_alone(chosen: str) -> None:
    found = blas_variants(openblas(chosen, "SKYLAKEX SAPPHIRERAPIDS"), node("spr-vm"))
    assert chosen_and_right(found) == (chosen.upper(), chosen.upper(), {})
    assert found.findings == ()


def test_a_kernel_that_the_environment_asked_for_is_found() -> None:
    found = blas_variants(recorded("hpcc-prescott"), node(ZEN3))
    assert chosen_and_right(found) == ("PRESCOTT", "ZEN", {"OPENBLAS_CORETYPE": "ZEN"})
    assert "because the environment asks for Prescott" in found.findings[0]


def test_only_what_the_library_accepts_is_proposed() -> None:
    program = openblas("Prescott", "HASWELL", lacks="SKYLAKEX")
    found = blas_variants(program, node("skl-2x6148"))
    assert chosen_and_right(found)[1:] == ("HASWELL", {"OPENBLAS_CORETYPE": "HASWELL"})
    assert "SKYLAKEX (in release 0.3.1 and later), but this library lacks it" in found.findings[0]


def test_what_was_not_tried_is_not_proposed() -> None:
    found = blas_variants(openblas("Prescott"), node("skl-2x6148"))
    assert chosen_and_right(found) == ("PRESCOTT", "PRESCOTT", {})
    assert "this library was not asked for it" in found.findings[0]


def test_a_library_for_one_processor_cannot_be_told() -> None:
    library = "/opt/lib/libopenblas_nehalemp-r0.3.26.so"
    program = openblas(None, library=library, built_for="nehalem")
    found = blas_variants(program, node("skl-2x6148"))
    assert chosen_and_right(found) == ("NEHALEM", "NEHALEM", {})
    assert "this library was built for one processor" in found.findings[0]


def test_a_kernel_that_the_processor_cannot_run_is_found() -> None:
    program = openblas("SkylakeX", "SKYLAKEX HASWELL", forced="SKYLAKEX")
    found = blas_variants(program, node(KNL))
    assert chosen_and_right(found)[1:] == ("HASWELL", {"OPENBLAS_CORETYPE": "HASWELL"})
    assert "needs avx512bw, avx512dq, avx512vl" in found.findings[0]
    assert "illegal instruction" in found.findings[0]


def test_openblas_cannot_use_the_avx512_of_a_knights_landing() -> None:
    found = blas_variants(openblas("Haswell", "HASWELL SKYLAKEX"), node(KNL))
    assert chosen_and_right(found) == ("HASWELL", "HASWELL", {})
    assert "no kernel for the AVX-512 of this processor" in found.findings[0]
    assert "256 of 512 bits" in found.findings[0]


def test_power() -> None:
    found = blas_variants(openblas("POWER8", "POWER9 POWER8"), node("power9-ppc64le"))
    assert chosen_and_right(found)[1:] == ("POWER9", {"OPENBLAS_CORETYPE": "POWER9"})
    assert "some loss" in found.findings[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dgemm-reference", "reference BLAS (/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0)"),
        ("dgemm-blis", "which kernel its BLIS takes is not known"),
    ],
)
def test_a_blas_that_cannot_be_asked_says_so(name: str, said: str) -> None:
    found = blas_variants(recorded(name), node(ZEN3))
    assert chosen_and_right(found) == (None, None, {})
    assert said in found.findings[0]


def test_a_kernel_that_is_not_known_is_not_judged() -> None:
    found = blas_variants(openblas("Zen9", "HASWELL"), node(ZEN3))
    assert chosen_and_right(found) == ("Zen9", "Zen9", {})
    assert "not known here" in found.findings[0]


def test_a_program_without_blas_has_no_variants() -> None:
    found = blas_variants(recorded("imb-intel"), node(ZEN3))
    assert found == BlasVariants(variants={}, report={}, findings=())


@pytest.mark.parametrize(
    ("name", "strongest"),
    [(ZEN3, "ZEN"), (KNL, "HASWELL"), ("skl-2x6148", "SKYLAKEX"), ("power9-ppc64le", "POWER9")],
)
def test_candidates_run_on_the_node_and_the_strongest_is_first(name: str, strongest: str) -> None:
    facts = node(name)
    candidates = candidate_kernels(facts)
    assert candidates[0] == strongest
    known = {kernel.name: kernel for kernel in families()["openblas"].kernels[facts.machine]}
    assert all(known[candidate].runs_on(facts) for candidate in candidates)


@pytest.mark.parametrize("family", ["openblas", "blis", "mkl"])
def test_kernels_stand_from_weakest_to_strongest(family: str) -> None:
    for kernels in families()[family].kernels.values():
        assert [kernel.rank for kernel in kernels] == sorted(kernel.rank for kernel in kernels)
        assert len({kernel.name for kernel in kernels}) == len(kernels)


@pytest.mark.parametrize(
    ("family", "output", "kernels"),
    [
        ("openblas", "Core: Zen\nN 10\nCore: Zen\n", ("Zen",)),
        ("openblas", "Score: Zen\n", ()),
        ("blis", "libblis: selecting sub-configuration 'zen3'.\n", ("zen3",)),
        (
            "mkl",
            "MKL_VERBOSE oneMKL 2024.0 for Intel(R) 64 architecture Intel(R) Advanced Vector "
            "Extensions 2 (Intel(R) AVX2) enabled processors, Lnx 2.40GHz lp64 sequential\n",
            ("AVX2",),
        ),
        (
            "mkl",
            "MKL_VERBOSE oneMKL 2026 Update 2 Product build 20260915 for Intel(R) 64 architecture "
            "Intel(R) Architecture processors, Lnx 2.45GHz lp64 sequential\n",
            (),
        ),
        ("atlas", "Core: Zen\n", ()),
    ],
)
def test_what_a_blas_says_in_a_programs_output(
    family: str, output: str, kernels: tuple[str, ...]
) -> None:
    assert reported_kernels(family, output) == kernels


# The real library of this machine: Debian's hpcc with Debian's OpenBLAS.


def probe_hpcc(kernels: str, **environment: str) -> Program:
    done = subprocess.run(
        ["sh", PROBE, "-k", kernels, "hpcc"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_program(done.stdout, "hpcc")


def test_the_real_library_says_what_it_was_made_to_take() -> None:
    program = probe_hpcc("PRESCOTT NEHALEM NONSENSE", OPENBLAS_CORETYPE="Prescott")
    blas = program.blas
    assert blas is not None
    assert (blas.family, blas.forced, blas.chosen) == ("openblas", "Prescott", "Prescott")
    assert blas.accepts("PRESCOTT")
    assert blas.accepts("NEHALEM")
    assert not blas.accepts("NONSENSE")


def test_a_prescott_on_this_machine_is_found_and_set_right() -> None:
    facts = parse_probe(
        subprocess.check_output(["sh", PROBE.parents[1] / "site/node/probe.sh"], text=True), "live"
    )
    candidates = " ".join(candidate_kernels(facts))
    worst = blas_variants(probe_hpcc(candidates, OPENBLAS_CORETYPE="Prescott"), facts)
    assert worst.variants[AS_INSTALLED].kernel == "PRESCOTT"
    assert worst.findings
    cured = blas_variants(probe_hpcc(candidates, **worst.variants[RIGHT].environment), facts)
    assert cured.variants[AS_INSTALLED].kernel == worst.variants[RIGHT].kernel
    assert not any("loss" in finding for finding in cured.findings)
