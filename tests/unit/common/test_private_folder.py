"""A user without a home gets a private one; the command of a playbook runs in it."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest
from plugins.action.cli import _Child

from proofmark.common.errors import BadInput
from proofmark.common.private_folder import private_home

NOBODY = 65534
PYTHON = sys.executable
Found = tuple[str, int, str, list[str], dict[str, str]]
pytestmark = pytest.mark.root

REPORT = """import json, os, pathlib
home = pathlib.Path.home()
status = home.stat()
found = [str(each) for each in home.rglob("*")]
(home / "mine").write_text("x")
print(json.dumps([str(home), status.st_uid, oct(status.st_mode), found, dict(os.environ)]))
"""
COMMAND = "#!/bin/sh\nexec {} {}\n"
"""The path of a Python can have blanks, which the first line of a script cannot quote."""
EVIL = """
from ansible.plugins.vars import BaseVarsPlugin
open({mark!r}, "a").close()
class VarsModule(BaseVarsPlugin):
    def get_vars(self, *words, **options):
        return {{}}
"""
READ = "import sys; from pathlib import Path; from proofmark.site.inventory import load_site; "
READ += "load_site(Path(sys.argv[1]), 'local')"


@pytest.fixture
def top() -> Iterator[Path]:
    """Yield a folder that every user can enter; the folders of pytest are closed."""
    with tempfile.TemporaryDirectory(prefix="proofmark-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def shared(top: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder like /tmp, which is the temporary folder of this process."""
    folder = top / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", f"{folder}")
    return folder


def reported(top: Path, monkeypatch: pytest.MonkeyPatch, user: str) -> Found:
    """Run a command as `user`; return its HOME with owner, mode and content, and its variables."""
    command = top / "proofmark"
    script = top / "report.py"
    script.write_text(REPORT)
    command.write_text(COMMAND.format(quote(PYTHON), quote(f"{script}")))
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", f"{top}/python")
    with tempfile.TemporaryFile() as stdout:
        lines: list[str] = []
        code, _ = _Child([], user, stdout).wait(lines.append)
        assert code == 0, lines
        stdout.seek(0)
        home, owner, mode, found, variables = json.load(stdout)
        return home, owner, mode, found, variables


@pytest.mark.fault("shared-folder-as-home")
def test_a_user_without_a_home_gets_a_private_one(
    shared: Path, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / ".ansible").mkdir()
    home, owner, mode, found, _ = reported(top, monkeypatch, "nobody")
    assert (owner, mode, found) == (NOBODY, "0o40700", [])
    assert Path(home).parent.parent == shared
    assert [path.name for path in shared.iterdir()] == [".ansible"]


@pytest.mark.fault("shared-folder-as-home")
def test_a_home_in_which_everybody_can_write_is_not_used(
    shared: Path, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the home of a user with a private one."""
    for mode, used in ((0o777, False), (0o755, True)):
        own = top / f"home-{mode:o}"
        own.mkdir()
        own.chmod(mode)
        os.chown(own, NOBODY, -1)
        entry = pwd.getpwnam("nobody")
        changed = pwd.struct_passwd((*entry[:5], f"{own}", entry[6]))
        with monkeypatch.context() as patched:
            patched.setattr(pwd, "getpwnam", lambda _, changed=changed: changed)
            home = reported(top, patched, "nobody")[0]
        assert (home == f"{own}") == used


@pytest.mark.fault("shared-folder-as-home")
@pytest.mark.parametrize("place", ["shared", "private"])
def test_a_plug_in_of_another_user_is_not_loaded(shared: Path, top: Path, place: str) -> None:
    """Ansible's library loads what lies below HOME: a home of all users is refused."""
    mark = shared / "loaded"
    plugins = shared / ".ansible/plugins/vars"
    plugins.mkdir(parents=True)
    for each in (shared / ".ansible", *(shared / ".ansible").rglob("*")):
        each.chmod(0o777)
    (plugins / "evil.py").write_text(EVIL.format(mark=f"{mark}"))
    site = top / "site"
    (site / "group_vars/local").mkdir(parents=True)
    (site / "hosts.yml").write_text(
        "all: {children: {compute: {children: {local: {hosts: {localhost: "
        "{ansible_connection: local}}}}}}}\n"
    )
    (site / "group_vars/local/partition.yml").write_text(
        "partition: {environment: local, provision_from: system, "
        "scheduler: none, scratch: {path: /scratch}}\n"
    )
    with private_home(NOBODY, NOBODY) as home:
        chosen = {"shared": shared, "private": home}[place]
        environment = {**os.environ, "HOME": f"{chosen}"}
        command = [sys.executable, "-c", READ, f"{site}"]
        done = subprocess.run(
            command,
            env=environment,
            user=NOBODY,
            group=NOBODY,
            text=True,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ("that other users can write" in done.stderr) == (place == "shared")
    assert bool(done.returncode) == (place == "shared")
    assert not mark.exists()
    assert not home.parent.exists()


@pytest.mark.fault("variables-of-root")
def test_the_variables_of_root_are_not_passed_on(
    shared: Path, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the command that runs as the user of the play."""
    roots = {
        name: f"{top}"
        for name in (
            *("ANSIBLE_LIBRARY", "ANSIBLE_COLLECTIONS_PATH", "PYTHONPATH", "LD_LIBRARY_PATH"),
            *("XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "TMPDIR", "PROOFMARK_BMC_PASSWORD"),
        )
    }
    for name, value in {**roots, "PROOFMARK_SITE": "local", "SLURM_CONF": "/etc/s"}.items():
        monkeypatch.setenv(name, value)
    variables = reported(top, monkeypatch, "nobody")[4]
    assert not roots.keys() & variables.keys()
    expected = {"USER": "nobody", "LOGNAME": "nobody", "PROOFMARK_SITE": "local"}
    assert expected.items() <= variables.items()
    assert variables["SLURM_CONF"] == "/etc/s"
    monkeypatch.setenv("HOME", f"{shared}")
    assert roots.items() <= reported(top, monkeypatch, "")[4].items()


@pytest.mark.parametrize("mode", [0o777, 0o700, 0o770])
def test_a_folder_in_which_others_can_exchange_files_is_not_used(
    shared: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared.chmod(mode)
    with private_home(NOBODY, NOBODY) as home:
        assert shared not in home.parents
    with monkeypatch.context() as patched, pytest.raises(BadInput, match="TMPDIR"):
        patched.setattr(Path, "resolve", lambda _: shared)
        with private_home(NOBODY, NOBODY):
            pass
