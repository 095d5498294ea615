"""Secrets of the operator stay in the process that needs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import execution, make_kit

from proofmark.cli.main import main
from proofmark.common.processes import (
    StopSignals,
    is_secret,
    of_another_user,
    of_jobs,
    of_schedulers,
    run_command,
    take_secrets,
    without_secrets,
)
from proofmark.jobs.execute import execute
from proofmark.machine.bmc.back_end import credentials
from proofmark.machine.node_commands import NodeProcess, run_commands
from proofmark.machine.scheduler_commands import ask_scheduler, ask_tool
from proofmark.software.build_process import run as build

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
def test_nothing_but_secrets_is_left_out(environment: dict[str, str]) -> None:
    kept = without_secrets({**environment, **SECRETS, **PLAIN})
    assert kept.items() <= {**environment, **PLAIN}.items()
    assert not any(map(is_secret, kept))
    assert PLAIN.items() <= kept.items()


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
    plain = PLAIN.keys() - {"PWD", "OLDPWD"}  # shells set these
    lines: list[str] = []
    build(["env"], os.environ, tmp_path / "log", lines.append)
    words = {"here": ("sh", "-s")}
    results = run_commands(words, "env", timeout_s=60, at_once=1, signals=StopSignals())
    assert isinstance(results["here"], NodeProcess)
    for text in (
        run_command(["env"]).stdout,
        run_command(["env"], environment=os.environ).stdout,
        "\n".join(lines),
        results["here"].stdout,
    ):
        assert plain <= printed(text)
        assert not SECRETS.keys() & printed(text)
        assert "SSH_AUTH_SOCK" in printed(text)


@pytest.mark.fault("secret-in-environment")
@pytest.mark.usefixtures("operator")
def test_a_benchmark_has_neither_the_secrets_nor_the_agent(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.program('env; echo "size $1"; echo "rate 100"; echo END')
    run = kit.run()
    execute(run, "none", lambda line: None)
    for text in (
        (execution(run.folder / "workdir/steps/0001-fake-1") / "stdout").read_text(),
        ask_scheduler("env"),
    ):
        assert {"PROOFMARK_SITE", "UCX_IB_PKEY"} <= printed(text)
        assert not {*SECRETS, "SSH_AUTH_SOCK"} & printed(text)


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
    assert of_another_user({**mine, **roots}) == mine
    assert "SSH_AUTH_SOCK" not in of_jobs(roots)


def test_the_commands_of_schedulers_get_only_the_variables_that_name_their_server() -> None:
    kept = {
        *("PATH", "HOME", "MODULEPATH", "SLURM_CONF", "PBS_CONF_FILE", "PBS_EXEC", "PBS_SERVER"),
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
    assert of_schedulers(environment).keys() == kept | {"LSB_NTRIES"}  # bsub tries once
    # A command that runs as another user asks the same server.
    assert of_another_user(environment).keys() == kept - {"HOME", "MODULEPATH"}


def test_all_commands_of_a_scheduler_get_the_same_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Qsub and pbsnodes must not ask two servers."""
    for name in ("PBS_SERVER", "PBS_CONF_FILE", "SCANCEL_STATE", "SQUEUE_STATES"):
        monkeypatch.setenv(name, "x")
    asked = [ask_scheduler("env"), ask_tool("env", timeout_s=60)]
    names = [{line.partition("=")[0] for line in text.splitlines()} for text in asked]
    assert names[0] == names[1]
    assert {"PBS_SERVER", "PBS_CONF_FILE"} <= names[0]
    assert not names[0] & {"SCANCEL_STATE", "SQUEUE_STATES"}
