"""The folder for HOME: of this user, private, with room; also for a user without any home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.fixtures.place import open_kit

from proofmark.common.errors import BadInput
from proofmark.common.kit import LOG_IN, SCRIPT, ansible_constants, expanded, provide_home

NO_ENTRY = 65533
"""A user id without an entry in the user database."""
GETENT = "#!/bin/sh\necho nobody:x:65534:65534::/nonexistent:/bin/sh\n"
AS_NO_ENTRY = [f"--reuid={NO_ENTRY}", f"--regid={NO_ENTRY}", "--clear-groups"]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a folder with `places`, as /tmp is, and a user database without homes."""
    (tmp_path / "places").mkdir()
    (tmp_path / "places").chmod(0o1777)
    (tmp_path / "commands").mkdir()
    getent = tmp_path / "commands/getent"
    getent.write_text(GETENT)
    getent.chmod(0o755)
    return tmp_path


def decided(top: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script; its standard output is the folder and a line feed."""
    return subprocess.run(
        ["sh", SCRIPT, top / "places"],
        env={"PATH": f"{top}/commands:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fault("home-missing")
@pytest.mark.parametrize(
    "given",
    ["missing", "not set", "empty", "~", "relative", "another user's", "a blank", "of all users"],
)
def test_another_folder_of_this_user_replaces_a_home_that_cannot_be_used(
    top: Path, given: str
) -> None:
    homes = {"missing": Path("/nonexistent"), "a blank": top / "its home"}
    homes["of all users"] = top / "shared"
    homes["another user's"] = top / "others" if os.geteuid() == 0 else Path("/")
    texts = {name: f"{home}" for name, home in homes.items()}
    texts |= {"empty": "", "~": "~", "relative": "home"}
    for name, home in homes.items():
        if name != "missing":
            home.mkdir(exist_ok=True)
    homes["of all users"].chmod(0o1777)
    if os.geteuid() == 0:
        os.chown(homes["another user's"], 65534, 65534)
    variables = {} if given == "not set" else {"HOME": texts[given]}
    done = decided(top, **variables)
    home = top / f"places/proofmark-home-{os.geteuid()}"
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{home}\n")
    assert (home.stat().st_uid, home.stat().st_mode) == (os.geteuid(), 0o40700)
    (home / "kept").touch()
    assert decided(top, **variables).stdout == f"{home}\n"  # the same folder again
    assert [path.name for path in home.iterdir()] == ["kept"]


def test_a_home_of_the_user_is_kept(top: Path) -> None:
    """The control."""
    (top / "own").mkdir()
    done = decided(top, HOME=f"{top}/own")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{top}/own\n")
    assert list((top / "own").iterdir()) == list((top / "places").iterdir()) == []


@pytest.mark.root
@pytest.mark.fault("home-missing")
@pytest.mark.parametrize(("option", "used"), [("size=32k", False), ("ro", False), ("rw", True)])
def test_a_home_without_room_or_read_only_is_not_used(top: Path, option: str, used: bool) -> None:
    home = top / "own"
    home.mkdir()
    mount = 'mount -t tmpfs -o "mode=700,$1" none "$2" && exec sh "$3" "$4"'
    words = ["sh", "-c", mount, "sh", option, f"{home}", f"{SCRIPT}", f"{top}/places"]
    done = subprocess.run(
        ["unshare", "--mount", *words],
        env={"PATH": f"{top}/commands:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": f"{home}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout == f"{home}\n") == used
    assert used or done.stdout.startswith(f"{top}/places/")


@pytest.mark.fault("home-missing")
def test_a_place_in_which_others_replace_folders_is_not_used(top: Path) -> None:
    """A link that another user made, and a folder that is not sticky."""
    home = top / f"places/proofmark-home-{os.geteuid()}"
    (top / "elsewhere").mkdir()
    home.symlink_to(top / "elsewhere")
    for mode in (0o1777, 0o777):
        (top / "places").chmod(mode)
        done = decided(top, HOME="/nonexistent")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("HOME: found '/nonexistent', where this user cannot write; ")
        home.unlink(missing_ok=True)


def test_a_refusal_names_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home.sh").write_text("exit 3\n")
    monkeypatch.setattr("proofmark.common.kit.SCRIPT", tmp_path / "home.sh")
    with pytest.raises(
        BadInput, match=r"^HOME: found '/nonexistent', where this user cannot write"
    ):
        provide_home({"HOME": "/nonexistent", "PATH": os.environ["PATH"]})


def test_relative_folders_are_ignored(tmp_path: Path) -> None:
    given = {"XDG_STATE_HOME": "~", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "/x"}
    environment = {"HOME": f"{tmp_path}", "PATH": os.environ["PATH"], **given}
    provide_home(environment)
    assert environment["HOME"] == f"{tmp_path}"
    assert {name for name in given if name in environment} == {"XDG_CONFIG_HOME"}


def test_a_user_without_a_home_is_named() -> None:
    with pytest.raises(BadInput, match=r"^~no-such-user/x: found a user without a home"):
        expanded(Path("~no-such-user/x"))
    assert expanded(Path("/x")) == Path("/x")


def test_a_folder_that_ansible_cannot_create_is_no_internal_error(tmp_path: Path) -> None:
    """The control: the settings of this process."""
    (tmp_path / "file").touch()
    code = "from proofmark.common.kit import ansible_constants as a; a()"
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": f"{tmp_path}/file/x"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "BadInput: the settings of Ansible: found Unable to create local directories" in (
        done.stderr
    )
    assert ansible_constants().COLLECTIONS_PATHS


@pytest.fixture
def folder_of_all() -> Iterator[Path]:
    """Yield a folder in which every user can write; the folders of pytest are closed."""
    with TemporaryDirectory(prefix="proofmark-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


@pytest.mark.root
@pytest.mark.fault("home-missing")
@pytest.mark.parametrize("home", ["~", None])
def test_commands_work_for_a_user_without_home_and_entry(
    folder_of_all: Path, home: str | None
) -> None:
    """They use Ansible's library, in a folder that is no checkout."""
    given = {name: value for name, value in os.environ.items() if name not in ("HOME", *LOG_IN)}
    given |= {} if home is None else {"HOME": home}
    kit, programs = open_kit()
    proofmark = programs / "proofmark"
    site = ["-i", f"{kit}/inventory/local", "-l", "local"]
    playbook = programs / "ansible-playbook"
    # With Python 3.13 Ansible's own program needs the name of the user.
    named = {**given, "LOGNAME": f"{NO_ENTRY}"}
    commands = [(folder_of_all, given, [f"{proofmark}", "plan", *site])]
    if home:
        commands.append((kit, named, [f"{playbook}", "playbooks/validate.yml", *site]))
    for folder, environment, words in commands:
        done = subprocess.run(
            ["setpriv", *AS_NO_ENTRY, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert list(folder_of_all.iterdir()) == []
    assert not (kit / "~").exists()
