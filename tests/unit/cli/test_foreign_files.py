"""No command executes a file that another user can change: for root and for an ordinary user.

In each attack the user nobody places a program that would write `mark` as the victim.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.fixtures.kit import make_kit
from tests.fixtures.place import open_kit
from tests.folders import BENCHMARKS, ROOT

from proofmark.common.kit import SUITES, VARIABLE
from proofmark.site.inventory import load_site
from proofmark.software.mpi import library_states
from proofmark.software.providers.easybuild import easybuild_version

pytestmark = [
    pytest.mark.root,
    pytest.mark.rest("each command beside each kind of foreign file, for two users"),
]
NOBODY = 65534
ORDINARY = 65533
PLUGIN = """
from ansible.plugins.vars import BaseVarsPlugin
open({mark!r}, "a").close()
class VarsModule(BaseVarsPlugin):
    def get_vars(self, *words, **options):
        return {{}}
"""
LISTED = '{"_meta": {"hostvars": {}}}'


@dataclass
class Victim:
    """A user with a site of its own, and the folders of nobody.

    Attributes:
        top: a folder of root that all users can enter.
        user: the number of the victim.
        current: its current folder.
        site: the site that it names.
        variables: more of its environment.
    """

    top: Path
    user: int
    current: Path
    site: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> Path:
        """The folder of the victim."""
        return self.top / "own"

    @property
    def theirs(self) -> Path:
        """The folder of nobody."""
        return self.top / "theirs"

    @property
    def shared(self) -> Path:
        """A folder like /tmp."""
        return self.top / "shared"

    @property
    def mark(self) -> Path:
        """The file that a program of nobody writes; all users can write its folder."""
        return self.shared / "mark"

    def program(self, path: Path, user: int = NOBODY, prints: str = "secret") -> Path:
        """Write a program that leaves the mark."""
        path.write_text(f"#!/bin/sh\ntouch {self.mark}\necho '{prints}'\n")
        path.chmod(0o755)
        os.chown(path, user, user)
        return path

    def settings(self, folder: Path, user: int, line: str) -> Path:
        """Write an ansible.cfg."""
        path = folder / "ansible.cfg"
        path.write_text(f"[defaults]\n{line}\n")
        os.chown(path, user, user)
        return path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command of the kit as the victim."""
        program = open_kit()[1] / "proofmark"
        become = [f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        kept = {"PATH": os.environ["PATH"], "HOME": f"{self.own}", "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            ["setpriv", *become, f"{program}", *words],
            cwd=self.current,
            env={**kept, "LOGNAME": f"{self.user}", **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def plan(self) -> subprocess.CompletedProcess[str]:
        """Plan a run on the site."""
        return self.run("plan", "-i", f"{self.site}", "-l", "local", "--runs", f"{self.own}/runs")


def give(folder: Path, user: int) -> None:
    """Make `user` the owner of all of `folder`."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


@pytest.fixture(params=[0, ORDINARY], ids=["root", "ordinary"])
def victim(request: pytest.FixtureRequest) -> Iterator[Victim]:
    with TemporaryDirectory(prefix="proofmark-test-", dir="/tmp") as folder:
        top, user = Path(folder), request.param
        top.chmod(0o755)
        made = Victim(top, user, top / "own", top / "own/local")
        for each in (made.own, made.theirs, made.shared):
            each.mkdir(mode=0o755)
        made.shared.chmod(0o1777)
        shutil.copytree(ROOT / "inventory/local", made.site)
        # The checkout may be closed to other users; a user copies what it can read.
        subprocess.run(["chmod", "-R", "a+rX", made.site], check=True)
        give(made.own, user)
        give(made.theirs, NOBODY)
        yield made


def kit_with_a_link(victim: Victim, folder: Path) -> None:
    """Put cases into `folder`, whose file of suites is a link to that of the kit."""
    (folder / SUITES).parent.mkdir()
    (folder / SUITES).symlink_to(ROOT / SUITES)
    give(folder / SUITES.parent, NOBODY)


def current_kit(victim: Victim) -> str:
    victim.current = victim.shared
    kit_with_a_link(victim, victim.shared)
    return f"{victim.shared}: found a folder that other users can write (1777)"


def named_kit(victim: Victim) -> str:
    kit_with_a_link(victim, victim.theirs)
    victim.variables[VARIABLE] = f"{victim.theirs}"
    return f"{victim.theirs}: found a folder of the user nobody"


def part_of_a_kit(victim: Victim) -> str:
    """A file deep in a folder of the kit, as `tar` of root leaves it."""
    kit = victim.own / "kit"
    shutil.copytree(BENCHMARKS, kit / "benchmarks")
    (kit / "environments/common").mkdir(parents=True)
    give(kit, victim.user)
    victim.program(kit / "environments/common/build.sh")
    victim.current = kit
    return f"{kit}/environments/common/build.sh: found a file of the user nobody"


def settings_in_the_current_folder(victim: Victim) -> str:
    victim.current = victim.theirs
    program = victim.program(victim.theirs / "password")
    path = victim.settings(victim.theirs, NOBODY, f"vault_password_file = {program}")
    return f"{path}: found {victim.theirs}: a folder of the user nobody"


def named_settings(victim: Victim) -> str:
    program = victim.program(victim.theirs / "password")
    path = victim.settings(victim.theirs, NOBODY, f"vault_password_file = {program}")
    victim.variables["ANSIBLE_CONFIG"] = f"{path}"
    return f"{path}: found {victim.theirs}: a folder of the user nobody"


def settings_at_home(victim: Victim) -> str:
    link = victim.own / ".ansible.cfg"
    program = victim.program(victim.theirs / "password")
    link.symlink_to(victim.settings(victim.theirs, NOBODY, f"vault_password_file = {program}"))
    return f"{link}: found {victim.theirs}: a folder of the user nobody"


def password_program(victim: Victim) -> str:
    program = victim.program(victim.theirs / "password")
    line = f"vault_identity_list = site@{program}"
    victim.settings(victim.own, victim.user, line)
    return f"{program}: found {victim.theirs}: a folder of the user nobody"


def plug_ins(victim: Victim) -> str:
    plugin = victim.theirs / "evil.py"
    plugin.write_text(PLUGIN.format(mark=f"{victim.mark}"))
    victim.variables["ANSIBLE_VARS_PLUGINS"] = f"{victim.theirs}"
    return f"{victim.theirs}: found a folder of the user nobody"


def plug_in_in_an_own_folder(victim: Victim) -> str:
    plugins = victim.own / ".ansible/plugins/vars"
    plugins.mkdir(parents=True)
    give(victim.own / ".ansible", victim.user)
    (plugins / "evil.py").write_text(PLUGIN.format(mark=f"{victim.mark}"))
    os.chown(plugins / "evil.py", NOBODY, NOBODY)
    return f"{plugins}/evil.py: found a file of the user nobody"


def collections_that_anybody_can_make(victim: Victim) -> str:
    victim.variables["ANSIBLE_COLLECTIONS_PATH"] = f"{victim.shared}/collections"
    return f"collections: found {victim.shared}: a folder that other users can write (1777)"


def inventory(victim: Victim) -> str:
    victim.site = victim.theirs / "local"
    shutil.copytree(victim.own / "local", victim.site)
    give(victim.site, NOBODY)
    victim.program(victim.site / "zz.sh", prints=LISTED)
    return f"{victim.site}: found {victim.theirs}: a folder of the user nobody"


def file_of_an_inventory(victim: Victim) -> str:
    path = victim.program(victim.site / "zz.sh", prints=LISTED)
    return f"{path}: found a file of the user nobody"


def link_in_an_inventory(victim: Victim) -> str:
    program = victim.program(victim.theirs / "zz.sh", prints=LISTED)
    (victim.site / "zz.sh").symlink_to(program)
    return f"{victim.site}/zz.sh: found {victim.theirs}: a folder of the user nobody"


def link_to_an_inventory(victim: Victim) -> str:
    inventory(victim)
    link = victim.own / "linked"
    link.symlink_to(victim.site)
    victim.site = link
    return f"{link}: found {victim.theirs}: a folder of the user nobody"


def variables_beside_a_file(victim: Victim) -> str:
    victim.site = victim.site / "hosts.yml"
    folder = victim.own / "local/group_vars/all"
    folder.mkdir()
    folder.chmod(0o777)
    return f"{folder}: found a folder that other users can write (777)"


ATTACKS = (
    current_kit,
    named_kit,
    part_of_a_kit,
    settings_in_the_current_folder,
    named_settings,
    settings_at_home,
    password_program,
    plug_ins,
    plug_in_in_an_own_folder,
    collections_that_anybody_can_make,
    inventory,
    file_of_an_inventory,
    link_in_an_inventory,
    link_to_an_inventory,
    variables_beside_a_file,
)


@pytest.mark.fault("files-of-another-user")
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_another_user_can_change_is_not_executed(
    victim: Victim, attack: Callable[[Victim], str]
) -> None:
    """The message names the part of the path, and how a user gets a copy."""
    found = attack(victim)
    done = victim.plan()
    assert not victim.mark.exists()
    assert (done.returncode, found in done.stderr) == (3, True), done.stderr
    assert "`cp -r` makes a copy of this user" in done.stderr
    assert not (victim.own / "runs").exists()


@pytest.mark.core("the control")
def test_own_files_are_executed(victim: Victim) -> None:
    """Control: a program in the own inventory runs. All of it can be a copy of a colleague's."""
    inventory(victim)
    copy = victim.own / "copy"
    become = [f"--reuid={victim.user}", f"--regid={victim.user}", "--clear-groups"]
    subprocess.run(["setpriv", *become, "cp", "-r", victim.site, copy], check=True)
    victim.site = copy
    done = victim.plan()
    assert done.returncode == 0, done.stderr
    assert victim.mark.exists()


@pytest.mark.core("one kind of foreign file")
@pytest.mark.fault("files-of-another-user")
def test_variables_in_the_current_folder_are_not_read(victim: Victim) -> None:
    """Ansible's library takes the current folder for that of the playbook."""
    victim.current = victim.theirs
    folder = victim.theirs / "group_vars/local"
    folder.mkdir(parents=True)
    text = f"partition: \"{{{{ lookup('pipe', 'touch {victim.mark}') }}}}\"\n"
    (folder / "partition.yml").write_text(text)
    give(victim.theirs, NOBODY)
    done = victim.plan()
    assert done.returncode == 0, done.stderr
    assert not victim.mark.exists()


@pytest.mark.fault("files-of-another-user")
def test_modules_in_the_current_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks there first for what `-c` and `-m` import."""
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "mark"
    for name in ("ctypes", "importlib", "json", "easybuild"):
        (tmp_path / f"{name}.py").write_text(f"open({f'{mark}'!r}, 'a').close()\n")
    library_states(Path("/nowhere.so"))
    easybuild_version(os.environ)
    assert not mark.exists()


@pytest.mark.fault("files-of-another-user")
@pytest.mark.parametrize("attack", [settings_at_home, inventory, plug_in_in_an_own_folder])
def test_a_play_refuses_what_the_commands_refuse(
    victim: Victim, attack: Callable[[Victim], str]
) -> None:
    """Ansible has read the file before the check. The play ends before its first stage."""
    found = attack(victim)
    kit, commands = open_kit()
    victim.variables["ANSIBLE_COLLECTIONS_PATH"] = f"{kit}/.ansible/collections"
    done = subprocess.run(
        [
            *("setpriv", f"--reuid={victim.user}", f"--regid={victim.user}", "--clear-groups"),
            f"{commands / 'ansible-playbook'}",
            *(f"{kit}/playbooks/validate.yml", "-i", f"{victim.site}", "-l", "local"),
        ],
        cwd=victim.own,
        env={
            **{"PATH": os.environ["PATH"], "HOME": f"{victim.own}", "LC_ALL": "C.UTF-8"},
            **{"LOGNAME": f"{victim.user}", **victim.variables},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, found in done.stdout + done.stderr) == (3, True), done.stderr


@pytest.fixture
def scratch(victim: Victim) -> Iterator[tuple[Path, list[str]]]:
    """Yield the scratch directory of a run with the id ``ssh``, and the words that clean it."""
    path = victim.shared / "pm"
    user = "nobody" if victim.user == 0 else None
    partition = {
        **{"environment": "local", "scheduler": "none", "provision_from": "preinstalled"},
        **{"scratch": {"path": f"{path}"}, "run_user": user, "work": f"{victim.theirs}"},
        "preinstalled": {"fake": {"prefix": f"{victim.top}", "version": "1"}},
    }
    file = victim.site / "group_vars/local/partition.yml"
    file.write_text(json.dumps({"partition": partition}))
    give(victim.own, 0)
    site = load_site(victim.site, "local")
    give(victim.own, victim.user)
    kit = make_kit(victim.top / "kit")
    kit.case(references=[])
    run = kit.run(site=site, run_id="ssh")
    give(run.folder, victim.user)
    victim.variables |= {VARIABLE: f"{victim.top}/kit", "PROOFMARK_STATE": f"{victim.own}/state"}
    yield path, f"scratch clean {run.folder} -i {victim.site} -l local".split()


@pytest.mark.fault("path-of-another-user")
def test_scratch_clean_follows_no_link_of_another_user(
    victim: Victim, scratch: tuple[Path, list[str]]
) -> None:
    """The link leads to a folder of the victim that has the name of the run."""
    path, words = scratch
    precious = victim.own / "etc/ssh/sshd_config"
    precious.parent.mkdir(parents=True)
    precious.write_text("of the victim")
    give(victim.own / "etc", victim.user)
    path.symlink_to(victim.own / "etc")
    os.chown(path, 4711, -1, follow_symlinks=False)
    done = victim.run(*words)
    assert done.returncode == 3, done.stdout
    assert f"{path} belongs to UNKNOWN, and other users can write in {path.parent}" in done.stderr
    assert precious.read_text() == "of the victim"


def test_scratch_clean_removes_the_folder_of_the_run_once(
    victim: Victim, scratch: tuple[Path, list[str]]
) -> None:
    """Control: the run user removes it."""
    path, words = scratch
    (path / "ssh/step").mkdir(parents=True)
    (path / "other").mkdir()
    give(path, NOBODY if victim.user == 0 else victim.user)
    for changed in (["localhost"], []):
        done = victim.run(*words)
        assert (done.returncode, json.loads(done.stdout)) == (0, {"changed": changed}), done.stderr
        assert [each.name for each in path.iterdir()] == ["other"]
