"""Run-time variables of a site: refused and doubtful names, and what makes figures unlike."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.jobs.test_launchers import ALIKE, command, launch, text

from proofmark.common.message import Message
from proofmark.jobs.step_script import environment_of_step
from proofmark.judge.stated_parts import software_traits
from proofmark.plan.step import Step
from proofmark.site.execution import LaunchSettings
from proofmark.site.partition import Preinstalled
from proofmark.software.program import Mpi, Program
from proofmark.software.software import Package, Software


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "BASH_ENV", "PROOFMARK_STEP", "BINDING"),
        *(
            "OMP_PLACES",
            "I_MPI_PIN_DOMAIN",
            "OMPI_MCA_hwloc_base_binding_policy",
            "MV2_CPU_MAPPING",
        ),
        *("OMPI_MCA_plm", "PMIX_RANK", "SLURM_PROCID", "FIRST_RANK", "MP_CHILD"),
    ],
)
def test_a_name_of_the_kit_or_of_the_system_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}: another name: .{{20}}"):
        LaunchSettings(environment={name: "1"})
    with pytest.raises(ValidationError, match=f"{name}: another name"):
        LaunchSettings(environment_of={"openmpi": {name: "1"}})


@pytest.mark.parametrize("name", ["A;touch x", "A B", "1A", "A-B", "A=B", "", "Ä", "A\n"])
def test_a_name_is_a_name_of_a_variable(name: str) -> None:
    with pytest.raises(ValidationError, match="should match pattern"):
        LaunchSettings(environment={name: "1"})
    with pytest.raises(ValidationError, match="should match pattern"):
        Preinstalled(prefix="/opt/x", version="1", environment={name: "1"})


@pytest.mark.parametrize(("value", "kept"), [(3, "3"), ("", ""), ("$(touch x)'`", "$(touch x)'`")])
def test_a_value_is_text(value: Any, kept: str) -> None:
    settings = LaunchSettings(environment={"UCX_TLS": value})
    assert settings.variables("plain") == {"UCX_TLS": kept}


@pytest.mark.parametrize("value", [True, None, ["rc"], "a\nb", "a\x00b", "\x7f"])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"environment\.UCX_TLS"):
        LaunchSettings(environment={"UCX_TLS": value})


@pytest.mark.parametrize(
    ("launcher", "name", "warning"),
    [
        ("openmpi", "UCX_TLS", ""),
        ("openmpi", "OMPI_MCA_pml", ""),
        ("openmpi", "OMPI_MCA_btl_tcp_if_include", ""),
        ("openmpi", "OMPI_MCA_plm_rsh_agent", ""),
        ("", "NCCL_DEBUG", ""),
        ("", "I_MPI_FABRICS", ""),
        ("hydra", "FI_PROVIDER", ""),
        (
            "openmpi",
            "UCX_TSL",
            "UCX_TSL: not a known variable of UCX; a known name is UCX_TLS",
        ),
        (
            "openmpi",
            "OMPI_MCA_pmll",
            "OMPI_MCA_pmll: not a known variable of Open MPI; a known name is OMPI_MCA_pml",
        ),
        (
            "openmpi",
            "I_MPI_FABRICS",
            "I_MPI_FABRICS is a variable of Intel MPI, which is no part of openmpi",
        ),
        (
            "openmpi",
            "MV2_IBA_HCA",
            "MV2_IBA_HCA is a variable of MVAPICH2, which is no part of openmpi",
        ),
        (
            "hydra",
            "OMPI_MCA_pml",
            "OMPI_MCA_pml is a variable of Open MPI, which is no part of intel, mpich, mvapich",
        ),
        ("srun", "MY_VARIABLE", "MY_VARIABLE: no known library reads it"),
    ],
)
def test_an_unknown_name_is_a_warning(launcher: str, name: str, warning: str) -> None:
    settings = LaunchSettings(launcher=launcher, environment={name: "1"})
    assert "; ".join(map(str, settings.doubts())) == warning
    if launcher:
        of_launcher = LaunchSettings(environment_of={launcher: {name: "1"}})
        assert "; ".join(map(str, of_launcher.doubts())) == warning


STEP: Any = Step.model_construct
"""Makes a step with the given fields only."""


def package(launch: LaunchSettings, family: str = "openmpi") -> Package:
    mpi = Mpi(
        family=family, version="5.0.8", library="/opt/lib/libmpi.so", mpirun="/opt/bin/mpirun"
    )
    program = Program(
        name="osu_bw",
        path="/opt/bin/osu_bw",
        sha256="ab" * 32,
        package=None,
        libraries=(),
        missing=(),
        blas=None,
        mpi=mpi,
        absent={},
    )
    made = Package(
        origin="spack",
        version="7.5",
        launcher="openmpi",
        environment={"UCX_TLS": "of the package", "OF_PACKAGE": "1"},
        programs={"osu_bw": program},
        variants={"blas_kernel": {"right": {"OF_VARIANT": "variant", "UCX_B": "variant"}}},
    )
    return made.with_variables(launch)


def test_the_package_the_partition_the_launcher_the_variant_and_the_case_in_this_order() -> None:
    launch = LaunchSettings(
        environment={"UCX_TLS": "partition", "UCX_A": "partition", "UCX_B": "partition"},
        environment_of={
            "openmpi": {"UCX_A": "launcher", "UCX_C": "launcher"},
            "srun": {"UCX_C": "no"},
        },
    )
    step = STEP(
        environment={"UCX_C": "case"},
        variants={"blas_kernel": "right"},
        parameters={},
        program="osu_bw",
    )
    assert environment_of_step(step, package(launch)) == {
        "OF_PACKAGE": "1",
        "OF_VARIANT": "variant",
        "UCX_TLS": "partition",
        "UCX_A": "launcher",
        "UCX_B": "variant",
        "UCX_C": "case",
    }
    chosen = launch.model_copy(update={"launcher": "srun"})
    assert package(chosen).run_environment["UCX_C"] == "no"


def test_another_value_is_another_program_and_a_trait() -> None:
    plain, rc, tcp = (
        package(LaunchSettings(environment=variables))
        for variables in ({}, {"UCX_TLS": "rc"}, {"UCX_TLS": "tcp"})
    )
    assert len({each.environment_hash for each in (plain, rc, tcp)}) == 3
    assert len({each.program_hash for each in (plain, rc, tcp)}) == 3
    assert Package.model_validate_json(rc.model_dump_json()) == rc
    traits = software_traits(Software(packages={"osu": rc}))
    assert "rc" in [
        value for name, value in traits.items() if "run-time variable UCX_TLS" in name.text
    ]


def test_the_mpi_of_the_programs_decides_whose_variables_are_doubtful() -> None:
    launch = LaunchSettings(environment={"I_MPI_FABRICS": "ofi"})
    (doubt,) = package(launch).findings
    fields = {"name": "I_MPI_FABRICS", "library": "Intel MPI", "mpi": "openmpi"}
    assert doubt == Message("variable-of-other", **fields)
    assert not package(launch, "intel").findings


def test_a_variable_of_an_mpi_in_a_case_is_a_parameter_of_its_figures() -> None:
    def recorded(environment: dict[str, str]) -> object:
        step = STEP(
            parameters={}, environment=environment, launch="mpi", ranks=2, threads=1, scope="job"
        )
        return step.recorded.get("environment")

    assert recorded({"UCX_TLS": "rc", "FI_PROVIDER": "cxi"}) == "FI_PROVIDER=cxi UCX_TLS=rc"
    assert recorded({"OMP_NUM_THREADS": "1", "OPENBLAS_VERBOSE": "2"}) is None


@pytest.mark.parametrize("name", ["openmpi", "hydra", "srun", "flux", "poe", "plain"])
def test_every_rank_gets_the_variables_as_they_are(name: str) -> None:
    hostile = "$(touch /tmp/x); `id` \"' \\ *"
    launched = launch(ALIKE)
    launched = type(launched)(**{**vars(launched), "environment": {"UCX_TLS": hostile}})
    script = text(name, launched)
    exports = "\n".join(line for line in script.splitlines() if line.startswith("export UCX_TLS="))
    shown = subprocess.run(
        ["sh", "-c", f'{exports}\nprintf %s "$UCX_TLS"'], capture_output=True, text=True, check=True
    )
    assert shown.stdout == hostile
    words = command(script)
    passed = {
        "openmpi": ["-x", "UCX_TLS"],
        "hydra": ["-genvall"],
        "srun": ["--export=ALL"],
    }.get(name, [])
    places = range(len(words))
    assert not passed or any(words[at : at + len(passed)] == passed for at in places)
