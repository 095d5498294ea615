"""Secrets of the operator stay in the process that needs them."""

from __future__ import annotations

import ast
import os
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import carried_out, execution, make_kit
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.processes import (
    EVERY,
    PASSED_ON,
    ProcessGroup,
    environment_of,
    is_secret,
    passed_on,
    run_command,
    take_secrets,
)
from proofmark.machine.bmc.back_end import credentials
from proofmark.machine.node_commands import NodeProcess, run_commands
from proofmark.machine.scheduler_commands import ask_scheduler
from proofmark.software.build_process import run as build

CODE = ROOT / "analysis/proofmark"
SECRETS = {
    "PROOFMARK_BMC_USER": "admin",
    "PROOFMARK_BMC_PASSWORD": "hunter2",
    "SITE_API_TOKEN": "hunter2",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "MYSQL_PWD": "hunter2",
    "SSHPASS": "hunter2",
    "apikey": "hunter2",
}
PLAIN = {
    "PWD": "/",
    "OLDPWD": "/",
    "UCX_IB_PKEY": "0x7fff",
    "ANSIBLE_VAULT_PASSWORD_FILE": "/vault",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "XKEYBOARD": "de",
    "I_MPI_BYPASS": "1",
    "PROOFMARK_SITE": "local",
}


def test_a_secret_is_recognised_by_its_name() -> None:
    assert {name for name in {**SECRETS, **PLAIN} if is_secret(name)} == SECRETS.keys()


@given(st.dictionaries(st.text(st.characters(codec="ascii"), min_size=1), st.text()))
@pytest.mark.parametrize("tool", sorted({*PASSED_ON} - {"ansible"}))
def test_a_name_that_no_row_lists_reaches_no_tool(tool: str, environment: dict[str, str]) -> None:
    listed = {*PASSED_ON[EVERY].split(), *PASSED_ON[tool].split()}
    kept = environment_of(tool, given={**environment, **SECRETS, "PATH": "/bin"})
    own = {"LSB_NTRIES", "GIT_TERMINAL_PROMPT"}
    for name in kept.keys() - own:
        assert any(fnmatchcase(name, pattern) for pattern in listed)
    assert kept["PATH"] == "/bin"
    assert not any(map(is_secret, kept))


INFLUENCES = {
    *("EASYBUILD_INSTALLPATH_SOFTWARE", "EASYBUILD_MODULE_NAMING_SCHEME", "EASYBUILD_HOOKS"),
    *("EASYBUILD_CONFIGFILES", "SPACK_ENV", "SPACK_DISABLE_LOCAL_CONFIG", "MAKEFLAGS", "CFLAGS"),
    *("CC", "CXX", "FC", "CPATH", "LIBRARY_PATH", "LD_PRELOAD", "LMOD_RC", "LMOD_MODULERCFILE"),
    *("LOADEDMODULES", "_LMFILES_", "OMPI_MCA_btl", "PRTE_MCA_x", "UCX_TLS", "I_MPI_FABRICS"),
    *("FI_PROVIDER", "OMP_NUM_THREADS", "PIP_TARGET", "PIP_USER", "PIP_CONFIG_FILE", "BASH_ENV"),
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "VIRTUAL_ENV", "PYTHONHOME", "SBATCH_EXPORT"),
}
"""Variables of a site or of a shell, each of which would change what a tool does."""


@pytest.mark.fault("variables-of-the-site")
@pytest.mark.parametrize("tool", sorted({*PASSED_ON} - {"ansible"}))
def test_what_would_change_a_tool_does_not_reach_it(tool: str) -> None:
    given_ = dict.fromkeys(INFLUENCES, "x")
    assert not environment_of(tool, given=given_).keys() & INFLUENCES


def test_each_tool_gets_what_a_site_needs_for_it() -> None:
    """The control of the test before: a site's way to its servers stays open."""
    needed = {
        "ansible": {"ANSIBLE_VAULT_PASSWORD_FILE", "NETBOX_API"},
        "eb": {"LMOD_CMD", "MODULES_CMD", "https_proxy", "PYTHONPATH", "LIBBLAS"},
        "git": {"https_proxy", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO", "KRB5CCNAME"},
        "module": {"MODULESHOME", "LMOD_CMD"},
        "pip": {"PIP_INDEX_URL", "SSL_CERT_FILE"},
        "python": {"LD_LIBRARY_PATH"},
        "scheduler": {"SLURM_CONF", "SGE_ROOT", "SGE_CELL", "LSF_ENVDIR", "FLUX_URI"},
        "spack": {"https_proxy", "MODULEPATH", "MODULESHOME"},
        "ssh": {"SSH_AUTH_SOCK", "KRB5CCNAME"},
        EVERY: {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR"},
    }
    assert needed.keys() == PASSED_ON.keys()
    for tool, names in needed.items():
        assert names <= environment_of(tool, given=dict.fromkeys(names, "x")).keys(), tool


def test_the_page_has_the_table() -> None:
    lines = (ROOT / "docs/controller.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and line.count("|") == 4]
    named = {row[0].strip("|` "): row[1].replace("`", "").split() for row in rows}
    for tool, names in PASSED_ON.items():
        assert named[tool] == names.split(), tool


def test_what_was_passed_on_is_recorded_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:hunter2@proxy.example:3128")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    monkeypatch.setenv("OMPI_MCA_btl", "tcp")
    recorded = passed_on()
    assert recorded["https_proxy"] == "http://***@proxy.example:3128"
    assert recorded["SLURM_CONF"] == "/etc/slurm.conf"
    assert not {"OMPI_MCA_btl", "PATH", "LSB_NTRIES"} & recorded.keys()


def test_no_process_is_started_with_all_variables_of_this_one() -> None:
    """`environment_of` is the one way from this process to a child."""
    free = {
        "cli/main.py",  # it starts itself again
        "cli/acceptance.py",
    }
    for path in sorted(CODE.rglob("*.py")):
        name = path.relative_to(CODE).as_posix()
        if name in free or name == "common/processes.py":
            continue
        text = path.read_text()
        if "subprocess" not in text and "os.environ" not in text:
            continue  # a syntax tree takes longer than all the rest
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called.startswith("subprocess.") and "Expired" not in called:
                started = called.rpartition(".")[2] in ("run", "Popen", "check_output", "call")
                words = {each.arg for each in node.keywords}
                assert not started or "env" in words, f"{name}:{node.lineno}"
            assert "**os.environ" not in ast.unparse(node), f"{name}:{node.lineno}"


def printed(text: str) -> set[str]:
    """Return the names of `SECRETS` and `PLAIN`, and of the agent, in the output of env."""
    names = {line.partition("=")[0] for line in text.splitlines()}
    return names & {*SECRETS, *PLAIN, "SSH_AUTH_SOCK"}


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, **PLAIN, "SSH_AUTH_SOCK": "/agent"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("operator")
def test_control_a_plain_child_has_the_secrets() -> None:
    done = subprocess.run(["env"], capture_output=True, text=True, check=True)
    assert SECRETS.keys() <= printed(done.stdout)


@pytest.mark.fault("secret-in-environment")
@pytest.mark.usefixtures("operator")
def test_no_child_has_the_secrets(tmp_path: Path) -> None:
    built = build(["env"], environment_of("spack"), tmp_path / "log")
    words = {"here": ("sh", "-s")}
    results = run_commands(words, "env", timeout_s=60, at_once=1, group=ProcessGroup())
    assert isinstance(results["here"], NodeProcess)
    for text in (
        run_command(["env"]).stdout,
        run_command(["env"], environment=environment_of("ssh")).stdout,
        built.stdout,
        results["here"].stdout,
    ):
        assert "PROOFMARK_SITE" in printed(text)
        assert not SECRETS.keys() & printed(text)


@pytest.mark.fault("secret-in-environment")
@pytest.mark.usefixtures("operator")
def test_a_benchmark_has_neither_the_secrets_nor_the_agent(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.program('env; echo "size $1"; echo "rate 100"; echo END')
    run = carried_out(kit.run())
    for text in (
        (execution(run.folder / "workdir/steps/0001-fake-1") / "stdout").read_text(),
        ask_scheduler("env"),
    ):
        assert "PROOFMARK_SITE" in printed(text)
        assert not {*SECRETS, "SSH_AUTH_SOCK", "UCX_IB_PKEY", "I_MPI_BYPASS"} & printed(text)


@pytest.mark.fault("secret-in-environment")
@pytest.mark.usefixtures("operator")
def test_a_command_takes_the_secrets_of_the_kit_out_of_its_environment(tmp_path: Path) -> None:
    """A dynamic inventory is a child of the library of Ansible."""
    assert main(["cases"]) == 0
    assert not [name for name in os.environ if name.startswith("PROOFMARK_BMC_")]
    assert os.environ["SITE_API_TOKEN"] == "hunter2"


def test_the_secrets_that_were_taken_are_the_credentials() -> None:
    environment = {**SECRETS, **PLAIN}
    account = credentials(b"", take_secrets(environment))
    assert (account.user, account.password) == ("admin", "hunter2")
    assert environment.keys() == {*SECRETS, *PLAIN} - {
        "PROOFMARK_BMC_USER",
        "PROOFMARK_BMC_PASSWORD",
    }


def test_another_user_gets_only_listed_variables() -> None:
    mine = {"PATH": "/bin", "LC_ALL": "C", "SLURM_CONF": "/etc/s", "PROOFMARK_SITE": "local"}
    roots = dict.fromkeys(
        (
            *("ANSIBLE_LIBRARY", "PYTHONPATH", "LD_PRELOAD", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK"),
            *("HOME", "TMPDIR", "ENV", "BASH_ENV", "IFS", "PROOFMARK_BMC_PASSWORD"),
        ),
        "/mine",
    )
    given_ = {**mine, **roots}
    asked = environment_of("scheduler", given=given_, personal=False)
    assert asked == {**mine, "LSB_NTRIES": "1", "GIT_TERMINAL_PROMPT": "0"}
    assert "SSH_AUTH_SOCK" not in environment_of(given=roots)


def test_the_commands_of_schedulers_get_only_the_variables_that_name_their_server() -> None:
    kept = {
        *("PATH", "HOME", "SLURM_CONF", "PBS_CONF_FILE", "PBS_EXEC", "PBS_SERVER"),
        *("SGE_ROOT", "SGE_CELL", "LSF_ENVDIR", "LOADL_CONFIG", "FLUX_URI"),
    }
    removed = {
        *(
            "SCANCEL_PARTITION",
            "SCANCEL_STATE",
            "SQUEUE_PARTITION",
            "SQUEUE_FORMAT",
            "SINFO_FORMAT",
        ),
        *(
            "SBATCH_PARTITION",
            "SLURM_CLUSTERS",
            "SLURM_TIME_FORMAT",
            "SLURM_JOB_ID",
            "SACCT_FORMAT",
        ),
        *("SCONTROL_ALL", "SRUN_X", "PBS_DPREFIX", "PBS_JOBID", "PBS_O_HOME", "LSB_DEFAULTQUEUE"),
        *("BSUB_QUIET", "SGE_TASK_ID", "FLUX_JOB_ID", "LOADL_STEP_ID", "VIRTUAL_ENV"),
    }
    environment = dict.fromkeys(kept | removed, "x")
    own = {"LSB_NTRIES", "GIT_TERMINAL_PROMPT"}  # bsub tries once
    assert environment_of("scheduler", given=environment).keys() == kept | own
    # A command that runs as another user asks the same server.
    other = environment_of("scheduler", given=environment, personal=False)
    assert other.keys() == (kept | own) - {"HOME"}


def test_all_commands_of_a_scheduler_get_the_same_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Qsub and pbsnodes must not ask two servers."""
    for name in ("PBS_SERVER", "PBS_CONF_FILE", "SCANCEL_STATE", "SQUEUE_STATES"):
        monkeypatch.setenv(name, "x")
    names = {line.partition("=")[0] for line in ask_scheduler("env").splitlines()}
    assert {"PBS_SERVER", "PBS_CONF_FILE"} <= names
    assert not names & {"SCANCEL_STATE", "SQUEUE_STATES"}
