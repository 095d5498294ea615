"""The folders of the user of this process, which may be missing, full, or of another user."""

from __future__ import annotations

import os
import pwd
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
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
    done = run_command(["sh", f"{SCRIPT}"], environment=environment)
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
