"""The kernel that a BLAS chose, and the best one for the processor."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.fixtures.probes import node_facts
from tests.folders import PACKAGE, PROBES

from proofmark.common.message import Message
from proofmark.site.node.facts import parse_probe
from proofmark.software.program import (
    AS_INSTALLED,
    RIGHT,
    Blas,
    BlasVariants,
    Program,
    blas_variants,
    candidate_kernels,
    families,
    parse_programs,
    reported_kernels,
)

PROBE = PACKAGE / "software/probe-program.sh"
ZEN3 = "live-kvm-zen3"
KNL = "knl-7250-quadrant-flat"


def recorded(name: str) -> Program:
    return parse_programs((PROBES / f"program-{name}.txt").read_text(encoding="utf-8"), name)[0]


def openblas(chosen: str | None, has: str = "", *, lacks: str = "", **changes: object) -> Program:
    """Return hpcc with an OpenBLAS of the kernels `has`; for those of `lacks` it uses `chosen`."""
    tried = {name: name.title() for name in has.split()}
    plain = Blas(
        family="openblas",
        version="0.3.21",
        library="/usr/lib/libopenblasp-r0.3.21.so",
        chosen=chosen,
        why_unknown=None if chosen else Message("absent-kernel-silent"),
        tried=tried | {name: str(chosen) for name in lacks.split()},
        forced=None,
        built_for=None,
    )
    return recorded("hpcc-openblas").model_copy(update={"blas": plain.model_copy(update=changes)})


def chosen_and_right(result: BlasVariants) -> tuple[str | None, str | None, dict[str, str]]:
    right = result.variants[RIGHT]
    assert result.variants[AS_INSTALLED].environment == {}
    return result.variants[AS_INSTALLED].kernel, right.kernel, right.environment


def test_a_weak_kernel_is_reported_and_the_best_one_is_set() -> None:
    program = openblas("Prescott", "SKYLAKEX HASWELL", lacks="COOPERLAKE SAPPHIRERAPIDS")
    result = blas_variants(program, node_facts("spr-vm"))
    forced = {"OPENBLAS_CORETYPE": "SKYLAKEX"}
    assert chosen_and_right(result) == ("PRESCOTT", "SKYLAKEX", forced)
    (finding,) = result.findings
    assert "OpenBLAS 0.3.21 chose PRESCOTT (SSE3) on a CPU with AVX-512" in finding
    assert "a several-fold loss" in finding
    assert finding.endswith("set OPENBLAS_CORETYPE=SKYLAKEX.")


def test_the_best_kernel_is_not_changed() -> None:
    result = blas_variants(recorded("hpcc-openblas"), node_facts(ZEN3))
    assert chosen_and_right(result) == ("ZEN", "ZEN", {})
    assert result.findings == ()


@pytest.mark.parametrize("chosen", ["SkylakeX", "Cooperlake", "SapphireRapids"])
def test_a_kernel_of_the_best_rank_is_not_changed(chosen: str) -> None:
    result = blas_variants(openblas(chosen, "SKYLAKEX SAPPHIRERAPIDS"), node_facts("spr-vm"))
    assert chosen_and_right(result) == (chosen.upper(), chosen.upper(), {})
    assert result.findings == ()


def test_a_kernel_that_the_environment_requests_is_reported() -> None:
    result = blas_variants(recorded("hpcc-prescott"), node_facts(ZEN3))
    assert chosen_and_right(result) == ("PRESCOTT", "ZEN", {"OPENBLAS_CORETYPE": "ZEN"})
    assert "because the environment requests Prescott" in result.findings[0]


def test_only_a_kernel_that_the_library_accepts_is_proposed() -> None:
    program = openblas("Prescott", "HASWELL", lacks="SKYLAKEX")
    result = blas_variants(program, node_facts("skl-2x6148"))
    assert chosen_and_right(result)[1:] == ("HASWELL", {"OPENBLAS_CORETYPE": "HASWELL"})
    assert "SKYLAKEX (in release 0.3.1 and later), but this library lacks it" in result.findings[0]


def test_a_kernel_that_was_not_tried_is_not_proposed() -> None:
    result = blas_variants(openblas("Prescott"), node_facts("skl-2x6148"))
    assert chosen_and_right(result) == ("PRESCOTT", "PRESCOTT", {})
    assert "the probe did not try it on this library" in result.findings[0]


def test_the_kernel_of_a_library_for_one_processor_is_not_changed() -> None:
    library = "/opt/lib/libopenblas_nehalemp-r0.3.26.so"
    program = openblas(None, library=library, built_for="nehalem")
    result = blas_variants(program, node_facts("skl-2x6148"))
    assert chosen_and_right(result) == ("NEHALEM", "NEHALEM", {})
    assert "this library was built for one processor" in result.findings[0]


def test_a_kernel_that_the_processor_cannot_run_is_replaced() -> None:
    program = openblas("SkylakeX", "SKYLAKEX HASWELL", forced="SKYLAKEX")
    result = blas_variants(program, node_facts(KNL))
    assert chosen_and_right(result)[1:] == ("HASWELL", {"OPENBLAS_CORETYPE": "HASWELL"})
    assert "needs avx512bw, avx512dq, avx512vl" in result.findings[0]
    assert "ends the program at an illegal instruction (SIGILL)" in result.findings[0]


def test_openblas_has_no_kernel_for_the_avx512_of_a_knights_landing() -> None:
    result = blas_variants(openblas("Haswell", "HASWELL SKYLAKEX"), node_facts(KNL))
    assert chosen_and_right(result) == ("HASWELL", "HASWELL", {})
    assert "no kernel for the AVX-512 of this processor" in result.findings[0]
    assert "256 of 512 bits" in result.findings[0]


def test_a_weak_kernel_on_power_is_replaced() -> None:
    result = blas_variants(openblas("POWER8", "POWER9 POWER8"), node_facts("power9-ppc64le"))
    assert chosen_and_right(result)[1:] == ("POWER9", {"OPENBLAS_CORETYPE": "POWER9"})
    assert "some loss" in result.findings[0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dgemm-reference", "reference BLAS (/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0)"),
        ("dgemm-blis", "the kernel of its BLIS is not known"),
    ],
)
def test_a_blas_whose_kernel_is_unknown_is_a_finding(name: str, message: str) -> None:
    result = blas_variants(recorded(name), node_facts(ZEN3))
    assert chosen_and_right(result) == (None, None, {})
    assert message in result.findings[0]


def test_a_kernel_that_is_not_in_the_list_is_not_changed() -> None:
    result = blas_variants(openblas("Zen9", "HASWELL"), node_facts(ZEN3))
    assert chosen_and_right(result) == ("Zen9", "Zen9", {})
    assert "not in the list of kernels" in result.findings[0]


def test_a_program_without_blas_has_no_variants() -> None:
    result = blas_variants(recorded("imb-intel"), node_facts(ZEN3))
    assert result == BlasVariants(variants={}, findings=())


@pytest.mark.parametrize(
    ("name", "strongest"),
    [(ZEN3, "ZEN"), (KNL, "HASWELL"), ("skl-2x6148", "SKYLAKEX"), ("power9-ppc64le", "POWER9")],
)
def test_candidates_run_on_the_node_and_the_strongest_is_first(name: str, strongest: str) -> None:
    facts = node_facts(name)
    candidates = candidate_kernels(facts)
    assert candidates[0] == strongest
    known = {kernel.name: kernel for kernel in families()["openblas"].kernels[facts.machine]}
    assert all(known[candidate].runs_on(facts) for candidate in candidates)


@pytest.mark.parametrize("family", ["openblas", "blis", "mkl"])
def test_kernels_are_listed_from_weakest_to_strongest(family: str) -> None:
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
def test_the_kernel_that_a_blas_reports_is_read(
    family: str, output: str, kernels: tuple[str, ...]
) -> None:
    assert reported_kernels(family, output) == kernels


# The tests below use the hpcc and the OpenBLAS of Debian on this machine.


def probe_hpcc(kernels: str, **environment: str) -> Program:
    done = subprocess.run(
        ["sh", PROBE, "-k", kernels, "hpcc"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_programs(done.stdout, "hpcc")[0]


def test_the_real_library_reports_the_requested_kernel() -> None:
    program = probe_hpcc("PRESCOTT NEHALEM NONSENSE", OPENBLAS_CORETYPE="Prescott")
    blas = program.blas
    assert blas is not None
    assert (blas.family, blas.forced, blas.chosen) == ("openblas", "Prescott", "Prescott")
    assert blas.accepts("PRESCOTT")
    assert blas.accepts("NEHALEM")
    assert not blas.accepts("NONSENSE")


def test_a_weak_kernel_of_the_real_library_is_reported_and_replaced() -> None:
    facts = parse_probe(
        subprocess.check_output(["sh", PROBE.parents[1] / "site/node/probe.sh"], text=True), "live"
    )
    candidates = " ".join(candidate_kernels(facts))
    weak = blas_variants(probe_hpcc(candidates, OPENBLAS_CORETYPE="Prescott"), facts)
    assert weak.variants[AS_INSTALLED].kernel == "PRESCOTT"
    assert weak.findings
    set_right = blas_variants(probe_hpcc(candidates, **weak.variants[RIGHT].environment), facts)
    assert set_right.variants[AS_INSTALLED].kernel == weak.variants[RIGHT].kernel
    assert not any("loss" in finding for finding in set_right.findings)
