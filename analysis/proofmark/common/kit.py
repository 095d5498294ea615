"""The folders of the kit, of its results and of the user of this process.

The kit is a checkout, or the collection ``proofmark.kit`` that ``ansible-galaxy`` installed. Only
the collection has the file ``MANIFEST.json``, and only a checkout has ``galaxy.yml``. The home of
the user may be missing, full, or of another user.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

from proofmark import __version__
from proofmark.common.errors import bad_input
from proofmark.common.processes import environment_of, run_command
from proofmark.common.trust import OWN_COPY, refuse_untrusted, refuse_untrusted_below

SCRIPT = Path(__file__).with_name("home.sh")
"""It decides; make calls it too, before there is a Python."""
XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""The variables of further folders. A relative path is ignored (XDG Base Directory Specification).
"""
LOG_IN = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""The variables with the name of the user (`getpass.getuser`)."""


def provide_home(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set HOME to a folder in which this user, and no other user, can write.

    Ansible's library refuses to be imported without one. Without HOME and an entry in the user
    database it would create a folder named ``~``. Relative paths in `XDG` are removed. A user
    without an entry gets a log-in name, the number: ``getpass.getuser`` needs one.

    Raises:
        BadInput: there is no such folder.
    """
    done = run_command(["sh", f"{SCRIPT}"], environment=environment_of(given=environment))
    if done.returncode:
        found = f"{environment.get('HOME', '')!r}, where this user cannot write"
        raise bad_input("HOME", "", found, "a folder of this user with free space")
    environment["HOME"] = done.stdout.removesuffix("\n")
    for name in XDG:
        if not environment.get(name, "/").startswith("/"):
            del environment[name]
    if not any(environment.get(name) for name in LOG_IN):
        try:
            pwd.getpwuid(os.geteuid())
        except KeyError:
            environment["LOGNAME"] = f"{os.geteuid()}"


def expanded(path: Path) -> Path:
    """Return `path` with the home of the user that begins it.

    Raises:
        BadInput: it begins with ``~`` and the name of a user without a home.
    """
    try:
        return path.expanduser()
    except RuntimeError:
        raise bad_input(path, "", "a user without a home", "a path without ~") from None


@cache
def ansible_constants() -> Any:
    """Return the settings of Ansible's library. Its first import creates a temporary folder.

    Raises:
        BadInput: the folder cannot be created, or a file of settings cannot be read.
        Untrusted: another user can change the ``ansible.cfg`` in use, or a file that Ansible
            executes: a plug-in, or a program that prints a password.
    """
    from ansible.config.manager import find_ini_config_file
    from ansible.errors import AnsibleError

    if settings := find_ini_config_file():
        refuse_untrusted(Path(settings), OWN_COPY)
    try:
        from ansible import constants
    except (AnsibleError, OSError) as error:
        accepted = "folders in which this user can write in HOME, ANSIBLE_HOME, ANSIBLE_LOCAL_TEMP"
        accepted += " and ansible.cfg"
        raise bad_input("the settings of Ansible", "", str(error), accepted) from None
    for name, setting in constants.config.get_configuration_definitions().items():
        value = getattr(constants, name, None) or ()
        if setting.get("type") == "pathspec":
            for path in map(Path, value):
                # Collections have thousands of files.
                alone = name == "COLLECTIONS_PATHS"
                (refuse_untrusted if alone else refuse_untrusted_below)(path, OWN_COPY)
        elif name.endswith(("PASSWORD_FILE", "CONNECTION_PATH")) and value:
            refuse_untrusted(Path(value), OWN_COPY)
    for identity in constants.DEFAULT_VAULT_IDENTITY_LIST:
        refuse_untrusted(expanded(Path(identity.rpartition("@")[2])), OWN_COPY)
    return constants


VARIABLE = "PROOFMARK_KIT"
"""The environment variable with the folder of the kit. The plays set it for their commands."""
SUITES = Path("benchmarks", "suites.yml")
DEFAULT_SUITE = "quick"
"""The suite of the commands and playbooks that are not given one."""
PROGRAMS = ".provision"
"""The folder of the installed programs."""
PARTS = ("benchmarks", "environments", "requirements")
"""The folders whose files a command reads: cases, and the commands that install programs."""
COLLECTION = Path("ansible_collections", "proofmark", "kit")


def kit_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the kit.

    The first folder with cases of these is used: that of the variable `VARIABLE`, the current
    folder, the checkout or collection of this code, the collection that Ansible finds.

    Raises:
        BadInput: there is none, or it is a collection of another version than this package.
        Untrusted: another user can change it.
    """
    if given := environment.get(VARIABLE):
        if not _has_cases(Path(given)):
            accepted = f"a checkout, or the collection proofmark.kit: a folder with {SUITES}"
            raise bad_input(VARIABLE, "", given, accepted)
        return _own(Path(given).absolute())
    for folder in _candidates():
        if _has_cases(folder):
            return _own(folder)
    accepted = (
        f"a checkout as the current folder, the collection proofmark.kit in a path of "
        f"ANSIBLE_COLLECTIONS_PATH, or one of both in {VARIABLE}"
    )
    raise bad_input("the kit", "", f"no folder with {SUITES}", accepted)


def _has_cases(folder: Path) -> bool:
    try:
        return (folder / SUITES).exists()
    except OSError:  # a folder of another user
        return False


@cache
def _own(folder: Path) -> Path:
    """Return `folder`, a kit of this version that no other user can change.

    Raises:
        BadInput: as `kit_folder`.
    """
    accepted = f"{OWN_COPY}; another current folder, or {VARIABLE}, names another one"
    refuse_untrusted(folder, accepted)
    for name in PARTS:
        refuse_untrusted_below(folder / name, accepted)
    return _of_this_version(folder)


def _candidates() -> Iterator[Path]:
    yield Path.cwd()
    yield _folder_of_code()
    # Slow; only an installed package outside of a checkout needs it.
    for path in ansible_constants().COLLECTIONS_PATHS:
        yield Path(path) / COLLECTION


def _folder_of_code() -> Path:
    return Path(__file__).parents[3]


def code_folder() -> Path:
    """Return the checkout or collection with this code; for an installed package `kit_folder`.

    Raises:
        BadInput: as `kit_folder`.
    """
    folder = _folder_of_code()
    return folder if _has_cases(folder) else kit_folder()


def result_folder(kit: Path, name: str, given: str = "") -> Path:
    """Return the folder for one kind of results (``runs``, ``.provision``) as an absolute path.

    This is `given`. If `given` is empty, it is the folder `name` of the checkout, or of the current
    folder if `kit` is not a checkout: ``ansible-galaxy`` deletes the folder of a collection when it
    installs another version.

    Raises:
        Untrusted: it is that of the installed programs, and another user can change it.
    """
    if given:
        return expanded(Path(given)).absolute()
    folder = (kit if (kit / "galaxy.yml").exists() else Path.cwd()) / name
    if name == PROGRAMS:
        refuse_untrusted(folder, OWN_COPY)
    return folder


def _of_this_version(folder: Path) -> Path:
    """Return `folder`; refuse a collection of another version than this package.

    Raises:
        BadInput: the versions differ, or the manifest is unreadable.
    """
    manifest = folder / "MANIFEST.json"
    if not manifest.exists():
        return folder
    # It imports pydantic, which a completion in a checkout need not wait for.
    from proofmark.common.files import read_regular

    try:
        version = json.loads(read_regular(manifest))["collection_info"]["version"]
    except (ValueError, LookupError, TypeError) as error:
        raise bad_input(manifest, "", f"unreadable: {error}", "a collection") from None
    if version != __version__:
        accepted = f"{__version__}, that of the Python package; `pip install {folder}`"
        accepted += f" installs {version}"
        raise bad_input(manifest, "collection_info.version", version, accepted)
    return folder
