"""Root takes nothing from the run of another user: every command, and the attacks that worked.

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
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import write_contract
from tests.fixtures.phi import NOBODY, Phi, phi_site
from tests.folders import ROOT

from proofmark.cli.command import Command, Rights
from proofmark.cli.commands import COMMANDS, command_of
from proofmark.common.errors import BadInput
from proofmark.common.strict_model import StrictModel
from proofmark.runs.answer import answer
from proofmark.runs.run import Run, benchmarks_in, open_run
from proofmark.runs.run_names import RunNames, names_of, open_names

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
        (f"plan {SITE} --runs NEW --create --expected RUN", 3),
    ],
    "check": [(f"check {SITE}", None), (f"check {SITE} --nodes", None)],
    "status": [("status RUN", 0), ("status RUN --plan", 0), ("status RUNS --newest-of SITE", 0)],
    "explain": [("explain RUN 1", 0), ("explain 1", 0)],
    "twin": [(f"twin {SITE} --runs NEW --measured RUN", 3)],
    "adopt": [
        ("adopt VENDOR --case fake=* --nodes n1 --runs NEW", None),
        ("adopt OUTPUT --print fake", None),
    ],
    "io500": [("io500 VENDOR", None)],
    "verdict": [("verdict RUN", None), ("verdict RUN --claims", None)],
    "report": [("report RUN --json", None)],
    "acceptance": [
        ("acceptance show -i SITE", 3),
        ("acceptance judge -i DEAL --runs RUNS -o NEW", 4),
        ("acceptance judge -i DEAL --run RUN -o NEW", 3),
    ],
    "baseline": [
        ("baseline show RUN -i SITE", 0),
        ("baseline accept RUN -i SITE --signers SIGNERS", 3),
        ("baseline remove RUN -i SITE", 3),
    ],
    "trend": [("trend RUN RUN", None), ("trend RUNS -o NEW.html", 3)],
    "tune": [("tune accept RUN -i SITE", 3)],
    "export": [("export RUN --format csv -o NEW", None)],
    "sign": [("sign RUN --key KEY", 3)],
    "verify": [("verify RUN --signers SIGNERS", 3)],
    "rerun": [("rerun RUN 1", 3)],
    "stage record-software": [("stage record-software RUN", 3)],
    "stage execute": [("stage execute RUN", 3)],
    "stage collect": [("stage collect RUN", 0), ("stage collect RUN -i SITE -l phi", 3)],
    "telemetry": [("telemetry RUN --once -i SITE", 0)],
    "modes": [
        ("modes check RUN -i SITE --mode hemisphere-flat", 0),
        (f"modes enter RUN -i SITE {CONFIRMED}", 0),
        ("modes verify RUN -i SITE --mode hemisphere-flat", 0),
        ("modes status RUN -i SITE", 0),
        ("modes restore RUN -i SITE --confirm-reboot", 0),
    ],
    "scratch": [
        ("scratch check RUN -i SITE", 0),
        ("scratch verify RUN -i SITE", 0),
        ("scratch unmount RUN -i SITE", 0),
        ("scratch clean RUN -i SITE", 0),
    ],
    "gate": [(f"gate check {SITE} --runs RUNS", None), ("gate status -i SITE", 0)],
    "stage gate-decide": [("stage gate-decide RUN", 3)],
    "stage check-programs": [("stage check-programs RUN -i SITE", 0)],
    "install": [("install RUN -i SITE --from preinstalled --check", 3)],
    "stage build-program": [("stage build-program none", 3)],
    "lock": [("lock none", 3)],
    "install bundle": [("install bundle none NEW", 3)],
    "install cache": [("install cache none NEW --key none", 3)],
    "install sources": [("install sources none", 3)],
}
"""Command lines of each command with their exit codes; None: it depends on the machine."""

CODE = """
import gc, json, os, signal, sys
from pathlib import Path
import ansible.cli, ansible.inventory.manager, ansible.plugins.loader, polars
from proofmark.cli.commands import COMMANDS, command_of
from proofmark.cli.main import main
from proofmark.machine.schedulers import slurm
from tests.forks.server import end
slurm.folded = ",".join  # the emulated scheduler has no node sets
for name in COMMANDS:
    command_of(name)

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
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(["n1", "n2"], tmp_path_factory.mktemp("attacker"), network=8) as made:
        yield made


JINJA = "{{ lookup('ansible.builtin.pipe', 'touch /canary') }}"


@pytest.fixture(scope="module")
def attacked(phi: Phi, attacker: Emulator) -> Run:
    """A run whose user names other BMCs, commands, folders and templates in its files."""
    run = phi.run(owner=NOBODY.pw_uid)
    canary = phi.folder / "canary"
    canary.mkdir(mode=0o700)
    (canary / "secret").write_text("of root\n")
    site: dict[str, Any] = json.loads(run.files.site.read_text())
    shell = ["sh", "-c", f"id -u >>{phi.folder}/executed; exit 1"]
    site["remote_shell"] = shell
    site["inventory"] = f"{canary}"
    site["partition"]["firmware"] |= {
        "remote_shell": shell,
        "bmc": "127.8.0.{number + 1}",
        "port": attacker.port,
        "verify_tls": False,
    }
    run.files.site.write_text(json.dumps(site))
    plan: dict[str, Any] = json.loads(run.files.plan.read_text())
    plan |= {
        "system": JINJA,
        "left_out": [
            {"code": "left-mode", "fields": dict.fromkeys(("case", "mode", "partition"), JINJA)}
        ],
        "assumed": {JINJA: JINJA},
    }
    run.files.plan.write_text(json.dumps(plan))
    for name in ("statement.json", "statement.json.sig", "verdict.json", "installed.json"):
        (run.folder / name).symlink_to(canary / "secret")
    phi.forge(run)
    (phi.folder / "runs").symlink_to(run.folder.parent)  # `explain 1` takes the newest run in it
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


def test_every_command_has_a_command_line() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.fault("run-user-values")
@pytest.mark.parametrize("name", COMMANDS)
def test_root_opens_nothing_of_the_run_of_another_user(
    starter: subprocess.Popen[str], phi: Phi, attacked: Run, attacker: Emulator, name: str
) -> None:
    """No command opens, lists or writes a file there with the rights of root, nor follows it."""
    shutil.rmtree(phi.folder / "new", ignore_errors=True)  # of another command
    for words, expected in WORDS[name]:
        code, said, did = called(starter, phi, attacked, words)
        assert code == (code if expected is None else expected), said
        assert "internal error" not in said and "Traceback" not in said, said
        assert [line for line in did if not line.startswith(("subprocess", "socket"))] == [], words
        assert not [line for line in did if "127.8." in line or "/canary" in line], words
        assert not (phi.folder / "executed").exists(), words
        assert attacker.logins == [], words
    secret = phi.folder / "canary"
    assert [path.name for path in secret.iterdir()] == ["secret"]


@pytest.mark.fault("inputs-of-run-user")
@pytest.mark.parametrize("changed", [False, True])
def test_inputs_that_are_not_those_of_the_site_are_refused(
    starter: subprocess.Popen[str], phi: Phi, attacked: Run, changed: bool
) -> None:
    """The run user lowers a limit before root seals the inputs. The control changes nothing."""
    run = attacked if changed else phi.run(run_id="same", owner=NOBODY.pw_uid)
    code, said, _ = called(starter, phi, run, "stage collect RUN -i SITE -l phi")
    assert code == (3 if changed else 0), said
    assert ("partition.firmware: found another value" in said) is changed


def test_the_hook_sees_what_root_opens(starter: subprocess.Popen[str], phi: Phi) -> None:
    """Control: the log has the files of a run of root."""
    run = phi.run(run_id="own")
    code, said, did = called(starter, phi, run, "stage check-programs RUN -i SITE")
    assert code == 0, said
    assert f"open {run.files.plan}" in did


@pytest.mark.fault("run-user-bmc")
def test_a_false_bmc_gets_no_password(
    starter: subprocess.Popen[str], phi: Phi, attacked: Run, attacker: Emulator
) -> None:
    """The run user writes the address of a BMC of their own into inputs/site.json."""
    phi.emulator.logins.clear()
    code, said, _ = called(starter, phi, attacked, "telemetry RUN --once -i SITE")
    assert (code, attacker.logins) == (0, []), said
    assert len(phi.emulator.logins) > 0, "the BMCs of the inventory were asked"
    assert "BMCs: 2 of 2 answered" in said


def test_the_bmcs_of_the_inventory_are_asked_for_a_run_of_root(
    starter: subprocess.Popen[str], phi: Phi
) -> None:
    """Control: no fault is injected."""
    phi.emulator.logins.clear()
    run = phi.run(run_id="sound")
    code, said, _ = called(starter, phi, run, "telemetry RUN --once -i SITE")
    assert code == 0 and "BMCs: 2 of 2 answered" in said
    assert len(phi.emulator.logins) > 0


@pytest.mark.fault("run-user-values")
@pytest.mark.parametrize("read", [open_run, benchmarks_in])
def test_a_function_that_reads_a_run_refuses_root(phi: Phi, attacked: Run, read: Any) -> None:
    """A new command cannot forget it: the functions that give the content of a run refuse."""
    with pytest.raises(BadInput, match="a run of the user nobody; root reads nothing that nobody"):
        read(attacked.folder)
    assert open_names(attacked.folder).names.nodes == ["n1", "n2"]


class TestAnswers:
    """The answer of a process of the run user is data."""

    def test_the_process_has_the_rights_and_no_secret_of_another_user(
        self, attacked: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROOFMARK_BMC_PASSWORD", PASSWORD)
        monkeypatch.setenv("PYTHONPATH", "/of-root")
        monkeypatch.setattr("proofmark.runs.answer._CODE", SHOW)
        shown = answer(attacked.folder, names_of, _Shown)  # type: ignore[arg-type]
        assert shown.ids == [NOBODY.pw_uid] * 3
        assert shown.groups == [NOBODY.pw_gid]
        assert not {"PROOFMARK_BMC_PASSWORD", "PYTHONPATH"} & {*shown.variables}

    def test_an_answer_of_another_form_is_refused(
        self, attacked: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("proofmark.runs.answer._CODE", 'print(\'{"answer": "{}"}\')')
        with pytest.raises(BadInput, match="an answer of a process of nobody"):
            open_names(attacked.folder)
        monkeypatch.setattr("proofmark.runs.answer._CODE", "raise SystemExit('no memory')")
        with pytest.raises(BadInput, match="found no memory; accepted: an answer"):
            open_names(attacked.folder)

    def test_a_kit_that_the_run_user_cannot_enter_is_named(
        self, attacked: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        (closed / "python").symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", f"{closed}/python")
        with pytest.raises(BadInput, match=r"cannot start .*closed/python; accepted: an answer"):
            open_names(attacked.folder)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("site", "../../etc"),
            ("site", JINJA),
            ("nodes", ["n1; reboot"]),
            ("partition", "a b"),
            ("suite", JINJA),
            ("programs", {"hpl": ["../../../tmp/evil"]}),
            ("programs", {"../evil": ["x"]}),
            ("scratch", "/scratch\nx"),
            ("wall_s", float("inf")),
            ("scratch_peak_bytes", -1),
            ("further", 1),
        ],
    )
    def test_other_values_than_names_and_numbers_are_refused(
        self, phi: Phi, key: str, value: Any
    ) -> None:
        good = names_of(phi.run(run_id="good")).model_dump()
        assert RunNames.model_validate(good)
        with pytest.raises(ValueError, match=key):
            RunNames.model_validate({**good, key: value})


class _Shown(StrictModel):
    ids: list[int]
    groups: list[int]
    variables: list[str]


SHOW = """
import json, os
shown = {"ids": os.getresuid(), "groups": os.getgroups(), "variables": list(os.environ)}
print(json.dumps({"answer": json.dumps(shown)}))
"""


ROW = re.compile(r"^\| `([a-z0-9 -]+)`[^|]*\|([^|]*)\|([^|]*)\|", re.MULTILINE)


def test_the_table_of_the_docs_has_all_commands_with_their_rights() -> None:
    """The column of the user: the owner of the run, root, or refused."""
    page = (ROOT / "docs/connections.md").read_text(encoding="utf-8")
    rows = {row[1]: (row[2].strip(), row[3].strip()) for row in ROW.finditer(page)}
    assert rows.keys() == COMMANDS.keys()
    for name, (reads, user) in rows.items():
        command: Command = command_of(name)
        lines = [words for words, _ in WORDS[name] if re.search(r"\bRUNS?\b", words)]
        if name == "gate":  # the folder for new runs; none is read
            lines = []
        assert (reads == "–") is not bool(lines), name
        if not lines or reads.startswith("other runs"):
            continue
        expected = {
            Rights.OF_OWNER: "the owner",
            Rights.OF_ROOT: "root",
            Rights.NONE: "refused",
        }
        assert user.startswith(expected[command.rights]), name
