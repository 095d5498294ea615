"""Launchers: the hosts, ranks, CPUs and environment that each one gets."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.emulators.vcluster.cluster import SAFE_PATH
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.jobs.launcher import LAUNCHERS, Launch, launcher, mask
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.execution import LaunchSettings

Ranks = Sequence[tuple[int, tuple[int, ...]]]
"""The node and the CPUs of each rank."""

ALIKE: Ranks = [(0, (0,)), (0, (4,)), (1, (0,)), (1, (4,)), (2, (0,)), (2, (4,))]
"""Three nodes with two ranks each on the same CPUs."""
UNEVEN: Ranks = [(0, (0,)), (0, (4,)), (1, (0,))]
"""Two nodes, the second one not full."""
DIFFERENT: Ranks = [(0, (0,)), (0, (4,)), (1, (2,)), (1, (6,))]
"""Two nodes on which the same numbers of ranks are on other CPUs."""


def launch(
    cpus: Ranks,
    mpi: str = "",
    *,
    hosts: tuple[str, ...] = ("n1", "n2", "n3"),
    settings: LaunchSettings | None = None,
    concurrent: bool = False,
) -> Launch:
    nodes = len({node for node, _ in cpus})
    return Launch(
        program="/opt/a b/program",
        arguments=["x y"],
        environment={"NAME": "it's"},
        hosts=hosts[:nodes],
        cpus=[RankCpus(node, numbers) for node, numbers in cpus],
        prefix="/opt/my mpi",
        mpi=mpi,
        settings=settings or LaunchSettings(),
        concurrent=concurrent,
    )


def text(name: str, launched: Launch) -> str:
    return "\n".join(launcher(name).lines(launched))


def document_lines(name: str, script: str) -> list[str]:
    """Return the lines that `script` writes into the file `name`."""
    match = re.search(
        rf"cat >{name} <<'(?P<end>\S+)'\n(.*?)^(?P=end)$", script, re.DOTALL | re.MULTILINE
    )
    assert match, script
    return match[2].splitlines()


def command(script: str) -> list[str]:
    *_, last = re.findall(r"^(?:exec (?=\S)|(?=smpirun ))(.*)$", script, re.MULTILINE)
    return shlex.split(str(last))


@pytest.mark.parametrize("name", LAUNCHERS.names())
def test_every_launcher_writes_posix_sh(name: str, tmp_path: Path) -> None:
    places = [ALIKE, UNEVEN, DIFFERENT, [(0, (0, 1))], [(0, (0,)), (0, (0,))]]
    for mpi, (number, cpus) in product(MPIS, enumerate(places)):
        script = text(name, launch(cpus, mpi))
        path = tmp_path / f"script-{mpi}-{number}"
        path.write_text(f"#!/bin/sh\nHERE=.\n{script}\n")
        subprocess.run(["dash", "-n", path], check=True)
        assert "export NAME='it'\"'\"'s'" in script
        assert shlex.join(["/opt/a b/program", "x y"]) in script
    subprocess.run(["shellcheck", "--severity=warning", *tmp_path.iterdir()], check=True)


MPIS = ("", "intel", "mpich", "mvapich", "openmpi")


@pytest.mark.parametrize("cpus", [(0,), (0, 1), (5, 2), (271,), (3, 3)])
def test_a_mask_has_a_bit_for_each_cpu(cpus: tuple[int, ...]) -> None:
    assert mask(cpus).startswith("0x")  # without it, Intel MPI reads a decimal number
    bits = int(mask(cpus), 16)
    assert {cpu for cpu in range(300) if bits >> cpu & 1} == set(cpus)


class TestOpenMpi:
    @pytest.mark.parametrize(
        ("cpus", "settings"),
        [
            (UNEVEN, LaunchSettings()),
            ([(0, (0,)), (0, (0,)), (1, (1,))], LaunchSettings()),
            (UNEVEN, LaunchSettings(binding="wrapper")),
        ],
    )
    def test_the_wrapper_binds_each_rank(self, cpus: Ranks, settings: LaunchSettings) -> None:
        """The numbers of a rankfile have another meaning in version 5 than in version 4."""
        script = text("openmpi", launch(cpus, settings=settings))
        assert document_lines("hostfile", script) == ["n1", "n1", "n2"]
        words = command(script)
        assert words[:3] == ["/opt/my mpi/bin/mpirun$suffix", "-np", "3"]
        assert words[words.index("--map-by") + 1] == "seq"
        assert words[words.index("--bind-to") + 1] == "none"
        assert "--bind" in words
        assert "rankfile" not in script

    def test_the_mpirun_of_open_mpi_is_started_beside_that_of_another_mpi(
        self, tmp_path: Path
    ) -> None:
        """Debian's mpirun is an alternative, which can be that of MPICH."""
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("mpirun", "mpirun.openmpi"):
            (folder / name).write_text(f"#!/bin/sh\necho {name}\n")
            (folder / name).chmod(0o755)
        script = text("openmpi", replace(launch([(0, (0,))]), prefix=f"{tmp_path}"))
        run = ["sh", "-euc", f"HERE=.\n{script}"]
        for started in ("mpirun.openmpi", "mpirun"):
            done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert done.stdout == f"{started}\n"
            (folder / "mpirun.openmpi").unlink(missing_ok=True)

    def test_one_node_exports_no_variables(self) -> None:
        one = replace(launch([(0, (0,))]), hosts=["@NODE@", "@PEER@"])
        assert "-machinefile" not in command(text("hydra", one))
        script = text("openmpi", one)
        assert document_lines("hostfile", script) == ["@NODE@ slots=1"]
        assert "-x" not in command(script)
        assert command(script)[command(script).index("--map-by") + 1] == "slot"

    def test_other_nodes_get_the_environment(self) -> None:
        def exported(concurrent: bool) -> set[str]:
            words = command(text("openmpi", launch(ALIKE, concurrent=concurrent)))
            return {name for flag, name in pairwise(words) if flag == "-x"}

        assert exported(concurrent=False) == {"BINDING", "NAME"}
        assert {"FIRST_RANK", "RANK_STRIDE"} < exported(concurrent=True)

    def test_the_site_chooses_the_program_that_starts_remote_ranks(self) -> None:
        """Version 4 reads OMPI_MCA_…, version 5 reads PRTE_MCA_…."""
        script = text("openmpi", launch(ALIKE, settings=LaunchSettings(bootstrap="ssh")))
        for setting in ("OMPI_MCA_plm=rsh", "PRTE_MCA_plm=ssh", "OMPI_MCA_ras", "PRTE_MCA_ras"):
            assert f"export {setting}" in script
        usual = text("openmpi", launch(ALIKE))
        assert "MCA_plm" not in usual and "MCA_ras" not in usual


class TestPrterun:
    """The launch lines that PRRTE 3.0.8 of Debian 13 accepted for several host names."""

    def test_each_line_of_the_file_gets_a_rank(self) -> None:
        script = text("prterun", launch(UNEVEN, "mpich"))
        assert document_lines("hostfile", script) == ["n1", "n1", "n2"]
        words = command(script)
        assert words[:3] == ["prterun", "--np", "3"]
        assert words[words.index("--map-by") + 1] == "seq"
        assert "PATH='/opt/my mpi/bin':$PATH" in script
        assert "--personality" not in words

    def test_its_own_variables_are_not_those_of_the_ranks(self) -> None:
        """With -x for one of them PRRTE found two values, and ended."""
        settings = LaunchSettings(bootstrap="ssh")
        shared = [(0, (0,)), (0, (0,)), (1, (0,))]
        script = text("prterun", launch(shared, "openmpi", settings=settings))
        words = command(script)
        exported = {name for flag, name in pairwise(words) if flag == "-x"}
        assert exported == {
            *("BINDING", "NAME", "OMPI_MCA_mpi_yield_when_idle"),
            "OMPI_MCA_hwloc_base_binding_policy",
        }
        assert "export PRTE_MCA_plm=ssh" in script
        assert words[words.index("--personality") + 1] == "ompi"
        assert "export OMPI_ALLOW_RUN_AS_ROOT=1" in script


class TestHydra:
    def test_intel_gets_a_mask_for_each_rank_of_a_node(self) -> None:
        script = text("hydra", launch([(0, (0,)), (0, (5,)), (0, (2, 3))], "intel"))
        (masks,) = re.findall(r"I_MPI_PIN_DOMAIN='\[(.*)\]'", script)
        assert masks.split(",") == ["0x1", "0x20", "0xc"]
        words = command(script)
        assert words[0] == "/opt/my mpi/bin/mpiexec.hydra"
        # Without this, hydra would start on the first node of a larger job.
        assert words[1:5] == ["-bootstrap", "fork", "-hosts", "localhost"]
        assert words[5:8] == ["-genvall", "-n", "3"]
        assert "--rank" in command(script)

    @pytest.mark.parametrize(("cpus", "counts"), [(ALIKE, [2, 2, 2]), (UNEVEN, [2, 1])])
    def test_like_nodes_share_one_list_of_masks(self, cpus: Ranks, counts: list[int]) -> None:
        script = text("hydra", launch(cpus, "intel", settings=LaunchSettings(bootstrap="ssh")))
        assert document_lines("hostfile", script) == [
            f"n{n}:{count}" for n, count in enumerate(counts, 1)
        ]
        assert "I_MPI_PIN_DOMAIN='[0x1,0x10]'" in script
        assert command(script)[1:5] == ["-bootstrap", "ssh", "-machinefile", "hostfile"]

    def test_the_wrapper_binds_if_nodes_differ(self) -> None:
        script = text("hydra", launch(DIFFERENT, "intel"))
        assert "export I_MPI_PIN=0" in script
        assert "I_MPI_PIN_DOMAIN" not in script
        assert "--bind" in command(script)

    @pytest.mark.parametrize(
        ("mpi", "setting"), [("mpich", ""), ("mvapich", "export MV2_ENABLE_AFFINITY=0")]
    )
    def test_mpich_and_mvapich_are_bound_by_the_wrapper(self, mpi: str, setting: str) -> None:
        script = text("hydra", launch(ALIKE, mpi))
        assert setting in script
        assert "I_MPI" not in script
        assert "--bind" in command(script)

    def test_a_path_with_a_blank_is_quoted_for_ssh(self, tmp_path: Path) -> None:
        """The control: where the prefix has no blank, hydra calls ssh itself."""
        over_ssh = launch(ALIKE, "intel", settings=LaunchSettings(bootstrap="ssh"))
        assert "reach" not in text("hydra", replace(over_ssh, prefix="/opt/mpi"))
        (tmp_path / "reach").write_text("\n".join(document_lines("reach", text("hydra", over_ssh))))
        fake = 'shift 3\neval "set -- $*"\nprintf "%s|" "$@"'  # as the remote shell does
        (tmp_path / "ssh").write_text(f"#!/bin/sh\n{fake}\n")
        (tmp_path / "ssh").chmod(0o755)
        words = ["/opt/my mpi/bin/proxy", "--port", "it's", "", "$HOME"]
        done = subprocess.run(
            ["dash", tmp_path / "reach", "-q", "-x", "n2", *words],
            env={"PATH": f"{tmp_path}:{SAFE_PATH}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "".join(f"{word}|" for word in words)


class TestSrun:
    def options(self, launched: Launch) -> dict[str, str]:
        words = command(text("srun", launched))
        assert words[0] == "srun"
        arguments = words[1 : words.index("sh")]
        return dict(word.partition("=")[::2] for word in arguments)

    def test_ranks_on_sorted_like_nodes_are_distributed_in_blocks(self) -> None:
        arguments = self.options(launch(ALIKE, settings=LaunchSettings(mpi="pmi2")))
        assert arguments["--nodelist"] == "n[1-3]"
        assert (arguments["--distribution"], arguments["--ntasks-per-node"]) == ("block", "2")
        assert (arguments["--nodes"], arguments["--ntasks"], arguments["--mpi"]) == (
            "3",
            "6",
            "pmi2",
        )
        assert arguments["--cpu-bind"] == "map_cpu:0,4"

    @pytest.mark.parametrize(
        ("cpus", "hosts", "expected"),
        [
            (UNEVEN, ("n1", "n2"), ["n1", "n1", "n2"]),
            (ALIKE, ("n3", "n1", "n2"), ["n3", "n3", "n1", "n1", "n2", "n2"]),
            ([(0, (0,)), (1, (0,))], ("@NODE@", "@PEER@"), ["@NODE@", "@PEER@"]),
        ],
    )
    def test_uneven_or_unsorted_hosts_are_listed_rank_by_rank(
        self, cpus: Ranks, hosts: tuple[str, ...], expected: list[str]
    ) -> None:
        script = text("srun", launch(cpus, hosts=hosts))
        assert document_lines("hostfile", script) == expected
        assert 'export SLURM_HOSTFILE="$PWD/hostfile"' in script
        arguments = self.options(launch(cpus, hosts=hosts))
        assert arguments["--distribution"] == "arbitrary"
        assert not {"--nodelist", "--nodes"} & arguments.keys()  # Slurm 24.11 refuses them
        assert "unset SLURM_NNODES SLURM_JOB_NUM_NODES" in script

    def test_several_cpus_of_a_rank_are_a_mask(self) -> None:
        assert self.options(launch([(0, (0, 1)), (0, (4, 5))]))["--cpu-bind"] == "mask_cpu:0x3,0x30"

    @pytest.mark.parametrize(
        ("cpus", "settings"),
        [(DIFFERENT, LaunchSettings()), (ALIKE, LaunchSettings(binding="wrapper"))],
    )
    def test_the_wrapper_binds_if_srun_cannot(self, cpus: Ranks, settings: LaunchSettings) -> None:
        launched = launch(cpus, settings=settings)
        assert self.options(launched)["--cpu-bind"] == "none"
        assert "--bind" in command(text("srun", launched))

    def test_the_mpi_does_not_change_the_binding_of_srun(self) -> None:
        assert "export I_MPI_PIN=0" in text("srun", launch(ALIKE, "intel"))
        assert "export MV2_ENABLE_AFFINITY=0" in text("srun", launch(ALIKE, "mvapich"))

    def test_srun_allows_copies_and_ranks_on_the_same_cpus(self) -> None:
        assert "--overlap" in self.options(launch(ALIKE))
        assert "--overcommit" in self.options(launch([(0, (0,)), (0, (0,))]))
        assert "--overcommit" not in self.options(launch(ALIKE))

    @pytest.mark.parametrize(
        ("cpus", "overcommit"),
        [("1(x3)", "1"), ("1,2(x2)", "1"), ("2(x3)", ""), ("272(x3)", ""), ("", "")],
    )
    def test_srun_starts_more_ranks_than_slurm_counts_cpus(
        self, tmp_path: Path, cpus: str, overcommit: str
    ) -> None:
        """Slurm may count cores: it refuses two ranks on the two hardware threads of one."""
        (tmp_path / "srun").write_text('#!/bin/sh\necho "$SLURM_OVERCOMMIT"\n')
        (tmp_path / "srun").chmod(0o755)
        for ranks in (ALIKE, UNEVEN):
            done = subprocess.run(
                ["dash", "-c", f"HERE=.\n{text('srun', launch(ranks))}"],
                cwd=tmp_path,
                env={"PATH": f"{tmp_path}:{SAFE_PATH}", "SLURM_JOB_CPUS_PER_NODE": cpus},
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout == f"{overcommit}\n"


class TestPoe:
    def test_the_variables_and_the_list_of_hosts(self) -> None:
        script = text("poe", launch([(0, (0, 1)), (0, (2, 3)), (1, (0, 1))]))
        assert document_lines("hostfile", script) == ["n1", "n1", "n2"]
        for setting in ("PROCS=3", "NODES=2", "HOSTFILE=hostfile", "TASK_AFFINITY=CPU:2"):
            assert f"export MP_{setting}\n" in script
        assert command(script)[0] == "/opt/my mpi/bin/poe"


class TestEmulated:
    """Flux run and PALS, with emulated commands that refuse what the real ones refuse."""

    @pytest.fixture
    def commands(self, tmp_path: Path) -> Path:
        for name in ("flux", "mpiexec"):
            (tmp_path / name).symlink_to(ROOT / "tests/emulators/launchers.py")
        return tmp_path

    def started(self, folder: Path, name: str, launched: Launch) -> list[dict[str, Any]]:
        """Return the host, the CPUs and the command of each rank."""
        folders = f"{folder}:{Path(sys.executable).parent}:{SAFE_PATH}"
        done = subprocess.run(
            ["dash", "-c", f"HERE=.\n{text(name, launched)}"],
            cwd=folder,
            env={"PATH": folders},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @pytest.mark.parametrize("name", ["flux", "pals"])
    @pytest.mark.parametrize(
        ("binding", "cpus", "hosts"),
        [
            ("launcher", ALIKE, ("n1", "n2", "n3")),
            ("wrapper", ALIKE, ("n3", "n1", "n2")),
            ("launcher", UNEVEN, ("n1", "n2")),
            ("wrapper", UNEVEN, ("n1", "n2")),
            ("launcher", DIFFERENT, ("n1", "n2")),
            (
                "launcher",
                [(0, (0, 1)), (0, (4, 5)), (1, (0, 1)), (1, (4, 5))],
                ("r1n1-ib", "r2n1-ib"),
            ),
            ("wrapper", [(0, (0,)), (0, (0,))], ("n1",)),
            ("launcher", [(0, (7,))], ("n1",)),
        ],
    )
    def test_each_rank_gets_its_host_and_its_cpus(
        self,
        commands: Path,
        name: str,
        binding: Literal["launcher", "wrapper"],
        cpus: Ranks,
        hosts: tuple[str, ...],
    ) -> None:
        launched = launch(cpus, hosts=hosts, settings=LaunchSettings(binding=binding))
        ranks = self.started(commands, name, launched)
        assert [rank["rank"] for rank in ranks] == list(range(len(cpus)))
        assert [rank["host"] for rank in ranks] == [hosts[node] for node, _ in cpus]
        for rank, (node, numbers) in zip(ranks, cpus, strict=True):
            how, *command = rank["words"][2:]
            assert command == ["/opt/a b/program", "x y"]
            allowed = [cpu for other, each in cpus for cpu in each if other == node]
            if how == "--rank":
                assert rank["cpus"] == list(numbers)
            else:  # the wrapper binds: the launcher must allow all CPUs of the rank
                assert set(rank["cpus"] or allowed) >= set(numbers)
        assert binding == "launcher" or {rank["words"][2] for rank in ranks} == {"--bind"}

    @pytest.mark.parametrize("name", ["flux", "pals"])
    def test_the_launcher_binds_like_nodes(self, commands: Path, name: str) -> None:
        ranks = self.started(commands, name, launch(ALIKE))
        assert {rank["words"][2] for rank in ranks} == {"--rank"}

    def test_the_wrapper_binds_nodes_that_differ(self, commands: Path) -> None:
        assert self.started(commands, "flux", launch(DIFFERENT))[0]["words"][2] == "--bind"

    def test_pairs_insert_their_hosts(self) -> None:
        pair = replace(launch([(0, (0,)), (1, (0,))]), hosts=["@NODE@", "@PEER@"])
        assert "--requires=host:@NODE@,@PEER@" in command(text("flux", pair))
        assert document_lines("hostfile", text("flux", pair)) == ["@NODE@", "@PEER@"]

    def test_copies_share_the_nodes(self) -> None:
        """Each command requests one core, whether its ranks are as many on each node or not."""
        for concurrent in (True, False):
            words = command(text("flux", launch(ALIKE, concurrent=concurrent)))
            assert {"--nodes=3", "--cores=3", "--tasks-per-node=2"} <= {*words}
            assert "--exclusive" not in words
        script = text("flux", launch(UNEVEN))
        assert "--nodes=2" in script and "--ntasks=2" in script
        assert "--exclusive" not in script

    def test_the_site_chooses_the_pmi(self) -> None:
        words = command(text("flux", launch(ALIKE, settings=LaunchSettings(mpi="pmix"))))
        assert "--setopt=pmi=pmix" in words

    @pytest.mark.parametrize(
        "line",
        [
            "flux run --colour=red true",
            "flux run --nodes=1 --ntasks=2 --tasks-per-node=2 true",
            "flux run --nodes=2 --requires=host:n1 --ntasks=2 true",
        ],
    )
    def test_the_emulated_commands_refuse(self, commands: Path, line: str) -> None:
        """The emulated commands refuse what the real commands refuse."""
        erf = "cpu_index_using: physical\nrank: 0: { hostname: a; cpu: {0}; }\n"
        (commands / "erf").write_text(f"{erf}rank: 1: {{ hostname: a; cpu: {{0}}; }}\n")
        done = subprocess.run(
            [f"./{line.split()[0]}", *line.split()[1:]], cwd=commands, check=False
        )
        assert done.returncode == 1


@pytest.mark.parametrize(
    ("name", "mpi", "settings"),
    [
        ("openmpi", "openmpi", "OMPI_MCA_mpi_yield_when_idle=1"),
        ("hydra", "intel", "I_MPI_WAIT_MODE=1"),
    ],
)
def test_ranks_that_share_a_cpu_do_not_spin(name: str, mpi: str, settings: str) -> None:
    apart, shared = [(0, (0,)), (0, (1,))], [(0, (0,)), (0, (0,))]
    assert f"export {settings}" in text(name, launch([*shared], mpi))
    assert f"export {settings}" not in text(name, launch([*apart], mpi))


def test_an_unknown_launcher_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(
        BadInput, match=r"'openmpy', did you mean 'openmpi'\?; accepted: flux, hydra"
    ):
        launcher("openmpy")
