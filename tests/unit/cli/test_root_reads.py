"""No command takes anything from the run of another user.

`WORDS` has a command line for each command. A new command without one fails the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER
from tests.fixtures.kit import write_contract
from tests.fixtures.phi import NOBODY, Phi, phi_site
from tests.folders import ROOT

from proofmark.cli.parser import COMMANDS
from proofmark.common.errors import BadInput
from proofmark.runs.evidence import open_evidence
from proofmark.runs.run import Run, benchmarks_in, open_run

pytestmark = pytest.mark.root
SITE = "-i SITE -l phi"
CONFIRMED = "--mode hemisphere-flat --confirm-reboot"
WORDS: dict[str, list[tuple[str, int | None]]] = {
    "init": [("init NEW --from-node n1 --scheduler none", None), ("init --fabric TOPOLOGY", 0)],
    "site": [("site SITE", None)],
    "cases": [("cases", 0)],
    "plan": [
        (f"plan {SITE} --runs RUNS -o NEW", 0),
        (f"plan {SITE} --runs RUNS --create --run-id acc1", 3),
    ],
    "check": [(f"check {SITE}", None), (f"check {SITE} --nodes", None)],
    "status": [("status RUN", 3), ("status RUN --plan", 3), ("status RUNS --newest-of SITE", 3)],
    "twin": [(f"twin {SITE} --runs NEW --measured RUN", 3)],
    "adopt": [
        ("adopt VENDOR --case fake=* --nodes n1 --runs NEW", None),
        ("adopt OUTPUT --print fake", None),
    ],
    "verdict": [("verdict RUN", 3), ("verdict RUN --claims", 3)],
    "report": [("report RUN --json", 3)],
    "acceptance": [
        ("acceptance check -i SITE", 3),
        ("acceptance judge -i DEAL --runs RUNS -o NEW", 4),
        ("acceptance judge -i DEAL --run RUN -o NEW", 3),
    ],
    "baseline": [
        ("baseline show RUN -i SITE", 3),
        ("baseline accept RUN -i SITE --signers SIGNERS", 3),
        ("baseline remove RUN -i SITE", 3),
    ],
    "trend": [("trend RUN RUN", 3), ("trend RUNS -o NEW.html", 3)],
    "export": [("export RUN --format csv -o NEW", 3)],
    "sign": [("sign RUN --key KEY", 3)],
    "verify": [("verify RUN --signers SIGNERS", 3)],
    "rerun": [("rerun RUN 1", 3)],
    "stage record-software": [("stage record-software RUN", 3)],
    "stage execute": [("stage execute RUN", 3)],
    "stage collect": [("stage collect RUN", 3)],
    "telemetry": [("telemetry RUN --once -i SITE", 3)],
    "modes": [
        ("modes check RUN -i SITE --mode hemisphere-flat", 3),
        (f"modes enter RUN -i SITE {CONFIRMED}", 3),
        ("modes verify RUN -i SITE --mode hemisphere-flat", 3),
        ("modes status RUN -i SITE", 3),
        ("modes restore RUN -i SITE --confirm-reboot", 3),
    ],
    "scratch": [
        ("scratch check RUN -i SITE", 3),
        ("scratch verify RUN -i SITE", 3),
        ("scratch unmount RUN -i SITE", 0),
        ("scratch clean RUN -i SITE", 3),
    ],
    "gate": [(f"gate check {SITE} --runs RUNS", None), ("gate status -i SITE", 0)],
    "stage gate-decide": [("stage gate-decide RUN", 3)],
    "stage check-programs": [("stage check-programs RUN -i SITE", 3)],
    "install": [("install RUN -i SITE --from preinstalled --check", 3)],
    "stage build-program": [("stage build-program none", 3)],
    "lock": [("lock none", 3)],
    "install bundle": [("install bundle none NEW", 3)],
    "install sources": [("install sources none", 3)],
}
"""Command lines of each command with their exit codes; None: it depends on the machine."""

CODE = """
import gc, json, os, signal, sys
from pathlib import Path
import ansible.cli, ansible.inventory.manager, ansible.plugins.loader, polars
import proofmark.cli
from importlib import import_module
from pkgutil import iter_modules
from proofmark.cli.parser import COMMANDS, command_of
from proofmark.cli.main import main
from proofmark.machine.schedulers import slurm
from tests.forks.server import end
slurm.folded = ",".join  # the emulated scheduler has no node sets
for name in COMMANDS:
    command_of(name)
for each in iter_modules(proofmark.cli.__path__):
    import_module(f"proofmark.cli.{each.name}")

def run(log, run, words, output, folder, variables):
    place = Path(run)

    def watch(event, arguments):
        if os.geteuid() != 0:
            return
        if event == "socket.connect":
            seen = arguments[1]
        elif event in ("open", "os.scandir", "os.listdir", "os.chmod", "os.chown", "os.remove",
                       "os.rename", "os.mkdir", "os.symlink", "os.link", "os.truncate"):
            seen = arguments[0]
            if not isinstance(seen, (str, bytes, os.PathLike)):
                return
            seen = Path(os.path.realpath(os.fsdecode(seen)))
            if place not in (seen, *seen.parents) and "canary" not in str(seen):
                return
        elif event == "subprocess.Popen":
            seen = arguments[:2]
        else:
            return
        line = f"{event} {seen}\\n".encode()
        number = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.write(number, line)
        os.close(number)

    signal.alarm(300)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = open(os.devnull)
    os.dup2(sys.stdin.fileno(), 0)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    sys.addaudithook(watch)
    try:
        code = main(words)
    except SystemExit as ended:  # a wrong word
        code = ended.code
    end(code or 0)

gc.freeze()  # a collection in a fork would copy the pages of all objects
while line := sys.stdin.readline():
    if not (child := os.fork()):
        run(**json.loads(line))
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
"""Runs each command in a fork, because the start of Python costs more than most commands.

A hook of Python logs what the fork does with the rights of root (PEP 578).
"""


@pytest.fixture(scope="module")
def starter() -> Iterator[subprocess.Popen[str]]:
    """Yield the process that runs commands."""
    command = [sys.executable, "-c", CODE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def phi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phi]:
    with (
        pytest.MonkeyPatch.context() as patch,
        phi_site(tmp_path_factory.mktemp("phi"), patch) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def attacked(phi: Phi) -> Run:
    """A run of another user, with links to a folder of root in it."""
    run = phi.run(owner=NOBODY.pw_uid)
    canary = phi.folder / "canary"
    canary.mkdir(mode=0o700)
    (canary / "secret").write_text("of root\n")
    for name in ("evidence", "verdict.json", "statement.json", "trace.log", "lock"):
        (run.folder / name).symlink_to(canary / "secret")
    return run


def called(
    starter: subprocess.Popen[str], phi: Phi, run: Run, words: str
) -> tuple[int, str, list[str]]:
    """Run a command line as root; return its exit code, its output and what root did."""
    log = phi.folder / "log"
    log.write_text("")
    names = {
        "RUNS": run.folder.parent,
        "RUN": run.folder,
        "SITE": phi.inventory,
        "DEAL": phi.folder / "deal",
        "NEW": phi.folder / "new",
        "VENDOR": phi.folder / "vendor",
        "TOPOLOGY": phi.folder / "topology.conf",
        "OUTPUT": phi.folder / "vendor/output",
        "SIGNERS": phi.folder / "signers",
        "KEY": phi.folder / "key",
    }
    (phi.folder / "vendor").mkdir(exist_ok=True)
    (phi.folder / "vendor/output").write_text("size 1\nrate 1\nEND\n")
    (phi.folder / "topology.conf").write_text("SwitchName=s1 Nodes=n[1-2]\n")
    if not names["DEAL"].exists():
        shutil.copytree(phi.inventory, names["DEAL"])
        limit = {"case": "fake", "metric": "rate", "value": 1, "unit": "MB/s", "at_least": 1}
        write_contract(names["DEAL"], [limit])
    for name in ("signers", "key"):
        (phi.folder / name).touch(mode=0o600)
    filled = [re.sub(r"^[A-Z]{3,}", lambda m: f"{names[m[0]]}", word) for word in words.split()]
    output = phi.folder / "output"
    call = {
        "log": f"{log}",
        "run": f"{run.folder}",
        "words": filled,
        "output": f"{output}",
        "folder": f"{phi.folder}",
        "variables": {
            **os.environ,
            "PROOFMARK_KIT": f"{phi.kit.folder}",
            "PROOFMARK_BMC_USER": USER,
            "PROOFMARK_BMC_PASSWORD": PASSWORD,
        },
    }
    assert starter.stdin and starter.stdout
    starter.stdin.write(f"{json.dumps(call)}\n")
    starter.stdin.flush()
    code = int(starter.stdout.readline())
    return code, output.read_text(), log.read_text().splitlines()


USUAL = ("report", "rerun", "sign", "stage collect", "stage execute", "verdict")
"""The commands with which a person or a play ends a run."""


def test_every_command_has_a_command_line() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.fault("run-user-values")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in USUAL else pytest.mark.rest("another command"))
        for name in COMMANDS
    ],
)
def test_no_command_opens_anything_of_the_run_of_another_user(
    starter: subprocess.Popen[str], phi: Phi, attacked: Run, name: str
) -> None:
    """No command opens, lists or writes a file there, nor follows it."""
    shutil.rmtree(phi.folder / "new", ignore_errors=True)  # of another command
    for words, expected in WORDS[name]:
        code, said, did = called(
            starter, phi, attacked, f"{words} -v" if name == "report" else words
        )
        assert code == (code if expected is None else expected), said
        assert "internal error" not in said and "Traceback" not in said, said
        assert [line for line in did if not line.startswith(("subprocess", "socket"))] == [], words
        assert not [line for line in did if "/canary" in line], words
    secret = phi.folder / "canary"
    assert [path.name for path in secret.iterdir()] == ["secret"]
    assert (secret / "secret").read_text() == "of root\n"


def test_the_hook_sees_what_root_opens(starter: subprocess.Popen[str], phi: Phi) -> None:
    """Control: the log has the files of a run of root."""
    run = phi.run(run_id="own")
    code, said, did = called(starter, phi, run, "stage check-programs RUN -i SITE")
    assert code == 0, said
    assert f"open {run.files.plan}" in did


@pytest.mark.fault("run-user-values")
@pytest.mark.parametrize("read", [open_run, benchmarks_in, open_evidence])
def test_a_function_that_reads_a_run_refuses_that_of_another_user(attacked: Run, read: Any) -> None:
    """A new command cannot forget it: the functions that give the content of a run refuse."""
    with pytest.raises(BadInput, match="a folder of the user nobody; accepted: a run that only"):
        read(attacked.folder)
