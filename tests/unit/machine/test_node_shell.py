"""The command that runs a script on a node: its words, sudo and its password."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.fixtures.kit import make_kit

from proofmark.machine.node_commands import SUDO_WITH_PASSWORD, node_command, run_text
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.access import Access, HostAccess
from proofmark.site.inventory import Site

USUAL = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-T"]


def site_with(folder: Path, host: HostAccess, shell: str = "sh -s") -> Site:
    site: Site = make_kit(folder / "kit").site()
    return site.model_copy(update={"ssh": Access(shell=shell, usual=host)})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, [*USUAL, "n1", "sh -s"]),
        (
            {"host_name": "fe80::1%eth0", "user": "ops", "port": "2222", "identity_file": "/a b"},
            [
                *("ssh", "-o", "BatchMode=yes", "-o", "Port=2222", "-o", 'IdentityFile="/a b"'),
                *("-o", "User=ops", "-o", "ConnectTimeout=30", "-T", "fe80::1%eth0", "sh -s"),
            ],
        ),
        (
            {"first_options": ("-p", "21"), "options": ("-J", "gate"), "attempts": 3},
            [
                *("ssh", "-o", "BatchMode=yes", "-p", "21", "-o", "ConnectTimeout=30"),
                *("-o", "ConnectionAttempts=3", "-J", "gate", "-T", "n1", "sh -s"),
            ],
        ),
        (
            {"options": ("-F", "/etc/site ssh", "-J", "gate"), "timeout_s": 7},
            [
                *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=7"),
                *("-F", "/etc/site ssh", "-J", "gate", "-T", "n1", "sh -s"),
            ],
        ),
        ({"program": "/opt/ssh"}, ["/opt/ssh", *USUAL[1:], "n1", "sh -s"]),
        ({"become_user": "root"}, [*USUAL, "n1", "sudo -n sh -s"]),
        ({"become_user": "ops"}, [*USUAL, "n1", "sudo -n -u ops sh -s"]),
        ({"local": True}, ["sh", "-s"]),
        ({"local": True, "become_user": "root"}, ["sudo", "-n", "sh", "-s"]),
    ],
)
def test_the_words_are_those_of_the_settings(
    tmp_path: Path, settings: dict[str, Any], words: list[str]
) -> None:
    assert node_command(site_with(tmp_path, HostAccess(**settings)), "n1") == (words, "")


def test_the_shell_of_an_older_run_counts(tmp_path: Path) -> None:
    command = node_command(site_with(tmp_path, HostAccess(), "sudo -n sh -s"), "n1")
    assert command.words[-1] == "sudo -n sh -s"


@pytest.mark.parametrize(
    "wrong",
    [
        {"host_name": "-oProxyCommand=id"},
        {"host_name": "a\nProxyCommand id"},
        {"user": "$(id)"},
        {"user": "-oProxyCommand=id"},
        {"port": "22 23"},
    ],
)
def test_a_setting_that_would_be_an_option_is_refused(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(NodeError) as refused:
        node_command(site_with(tmp_path, HostAccess(**wrong)), "n1")
    assert refused.value.outcome is Outcome.UNREACHABLE


FAKE_SUDO = """#!/bin/sh
# sudo(8): -n refuses to ask; -S reads one line of stdin; -v only checks; -k asks again.
ask={ask}
user=root
while [ $# -gt 0 ]; do
    case $1 in
    -n) quiet=1 ;;
    -S) from_stdin=1 ;;
    -p) shift ;;
    -v) check=1 ;;
    -k) ;;
    -u) shift; user=$1 ;;
    -*) exit 9 ;;
    *) break ;;
    esac
    shift
done
if [ "$ask" ]; then
    [ ! "$quiet" ] || {{ echo "sudo: a password is required" >&2; exit 1; }}
    [ "$from_stdin" ] || exit 9
    IFS= read -r given
    echo asked >>{log}
    [ "$given" = 'pass word$' ] || {{ echo "sudo: 1 incorrect password attempt" >&2; exit 1; }}
fi
[ ! "$check" ] || exit 0
AS=$user exec "$@"
"""


@pytest.mark.parametrize("local", [True, False], ids=["local", "ssh"])
@pytest.mark.parametrize(
    ("ask", "password", "asked"),
    [("1", "pass word$", 2), ("", "pass word$", 0), ("1", "wrong", 1)],
    ids=["asks", "asks for none", "wrong password"],
)
def test_sudo_gets_the_password_and_the_shell_does_not(
    tmp_path: Path, local: bool, ask: str, password: str, asked: int
) -> None:
    log = tmp_path / "log"
    log.write_text("")
    sudo, ssh = tmp_path / "sudo", tmp_path / "ssh"
    sudo.write_text(FAKE_SUDO.format(ask=ask, log=log))
    ssh.write_text('#!/bin/sh\nfor word; do :; done\nexec sh -c "$word"\n')  # as sshd does
    for program in (sudo, ssh):
        program.chmod(0o755)
    settings = {"become_user": "ops", "sudo": f"{sudo}", "password": SecretStr(password)}
    host = HostAccess(local=local, program=f"{ssh}", **settings)
    processes, failed = run_text(site_with(tmp_path, host), ["n1"], 'echo "as $AS"\necho rest\n')
    assert log.read_text().count("asked") == asked
    if password == "wrong":
        assert (processes, list(failed)) == ({}, ["n1"])
        assert "1 incorrect password attempt" in failed["n1"].text
    else:
        assert failed == {}
        assert processes["n1"].stdout == "as ops\nrest\n"


def test_the_password_is_no_argument(tmp_path: Path) -> None:
    host = HostAccess(become_user="root", password=SecretStr("geheim"))
    command = node_command(site_with(tmp_path, host), "n1")
    assert command.secret == "geheim\n"
    assert "geheim" not in shlex.join(command.words)
    done = subprocess.run(["sh", "-n", "-c", SUDO_WITH_PASSWORD], check=False)
    assert done.returncode == 0


@pytest.mark.fault("log-in-shell-csh")
@pytest.mark.parametrize("shell", ["sh", "bash", "tcsh", "csh", "fish", "zsh"])
def test_the_log_in_shell_of_a_user_may_be_any(shell: str, tmp_path: Path) -> None:
    """Sshd runs `$SHELL -c COMMAND`."""
    if shutil.which(shell) is None:
        assert "\n" not in SUDO_WITH_PASSWORD  # what csh and tcsh refuse
        return
    sudo = tmp_path / "sudo"
    sudo.write_text(
        "#!/bin/sh\n"
        'case "$1" in -n) exit 1 ;; esac\n'
        'while :; do case "$1" in -S | -v | -k) shift ;; -p | -u) shift 2 ;;\n'
        "*) break ;; esac; done\n"
        'IFS= read -r word; [ "$word" = "it\'s" ] || exit 1\n'
        '[ $# -eq 0 ] || exec "$@"\n'
    )
    sudo.chmod(0o755)
    host = HostAccess(become_user="root", sudo=f"{sudo}", password=SecretStr("it's"))
    command = node_command(site_with(tmp_path, host), "n1")
    words = [shell, "-c", command.words[-1]]
    text = f"{command.secret}echo it runs\n"
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "it runs\n", "")
