"""Commands and tests in a copy without git's metadata, in each kind of place that systems have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fixtures.place import make_environment, open_kit
from tests.folders import ROOT, repository_files

COMMANDS = (
    ["proofmark", "--version"],
    ["proofmark", "check", "-i", "inventory/local", "-l", "local"],
    [
        *("proofmark", "plan", "-i", "inventory/example-grace", "-l", "grace"),
        *("--suite", "p1", "--prefixes", "/opt/proofmark"),
    ],
    ["proofmark", "cases"],
    [
        *("python", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
        *("tests/repository/test_place.py", "tests/unit/common/test_home.py"),
        "tests/repository/test_repository.py::test_no_file_names_a_registry_or_a_path_of_one_machine",
    ],
)
"""A check of this machine, a plan for another one, and tests that write and list files."""
ACCEPTED = {"check": (0, 1)}
"""The exit codes of a command that may find a fault of this machine."""


@dataclass(frozen=True)
class Place:
    """What is unusual about a place.

    Attributes:
        variables: environment variables; a variable without a value is unset.
        linked: whether the home is a link, and the checkout below it.
        mounted: whether the checkout is on a file system of its own.
    """

    umask: int = 0o022
    variables: Mapping[str, str] = field(default_factory=dict)
    linked: bool = False
    mounted: bool = False


PLACES = {
    "umask-077": Place(umask=0o077),
    "umask-027": Place(umask=0o027),
    "no-locale": Place(variables={"LANG": "", "LC_ALL": "", "LANGUAGE": ""}),
    "time-zone": Place(variables={"TZ": "Asia/Kathmandu", "LANG": "C"}),
    "linked-home": Place(linked=True),
    "file-system": Place(mounted=True),
}


@pytest.fixture
def top(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield the folder of the home and of the checkout."""
    place = PLACES[request.node.callspec.params["name"]]
    if place.mounted:
        subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], check=True)
    (tmp_path / "homes").mkdir()
    (tmp_path / "homes/me").mkdir(mode=0o700)
    if place.linked:
        (tmp_path / "home").symlink_to("homes")
    yield tmp_path / ("home" if place.linked else "homes") / "me"
    if place.mounted:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def copied(kit: Path, place: Place) -> Path:
    """Copy the files of the repository to `kit`; return the commands of an environment there."""
    before = os.umask(place.umask)
    try:
        for path in repository_files():
            to = kit / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to, follow_symlinks=False)
            if not path.is_symlink():
                to.chmod(path.stat().st_mode & ~place.umask)
        # make links the checkout as the collection proofmark.kit: Ansible finds its plug-ins there.
        collection = kit / ".ansible/collections/ansible_collections/proofmark/kit"
        collection.parent.mkdir(parents=True)
        collection.symlink_to("../../../..")
        # The umask of this installation may have closed its packages to other users.
        packages = next(open_kit()[1].parent.glob("lib/python3*/site-packages"))
        make_environment(kit / ".venv", kit, packages)
    finally:
        os.umask(before)
    return kit / ".venv/bin"


@pytest.mark.root
@pytest.mark.parametrize("name", PLACES)
def test_commands_and_tests_work_in_each_place(top: Path, name: str) -> None:
    place = PLACES[name]
    tools = copied(top / "my-kit", place)
    given = {**os.environ, **place.variables, "HOME": f"{top}"}
    given = {name: value for name, value in given.items() if value and name != "TOOLS_OF_TESTS"}
    given["PATH"] = f"{tools}:{given['PATH']}"
    wrong = []
    for command in COMMANDS:
        words = [f"{tools / command[0]}", *command[1:]]
        done = subprocess.run(
            words,
            cwd=top / "my-kit",
            env=given,
            umask=place.umask,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in ACCEPTED.get(command[1], (0,)):
            wrong.append(f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
    assert not wrong, "\n".join(wrong)
