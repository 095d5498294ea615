"""The environment of child processes: secrets, and the variables of another user, are left out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from functools import cache

SECRET = (
    "^PROOFMARK_BMC_|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL"
    "|(^|_)PASS(_|$)|^SSHPASS$|_PWD$|(^|[^P])KEYS?($|_)"
)
"""Matches the name of a variable in upper case that has a secret. A PKEY is a part of a network.

The syntax is that of both Python and awk: ``modules.sh`` of the role `provision` has a copy.
"""
NO_SECRET = "^GIT_CONFIG_|_(FILE|PATH|DIR|HOME|FOLDER)$"
"""Matches the names that are no secret in spite of `SECRET`: paths, and the settings of git."""
AGENT = ("SSH_AUTH_SOCK", "SSH_AGENT_PID")
"""The agent with the ssh keys of the user."""
_SERVERS = (
    "SLURM_CONF"
    "|PBS_(CONF_FILE|EXEC|HOME|SERVER|DEFAULT|PRIMARY|SECONDARY|AUTH_METHOD|ENCRYPT_METHOD)"
    "|PBS_(SERVER_HOST_NAME|BATCH_SERVICE_PORT|BATCH_SERVICE_PORT_DIS|MANAGER_SERVICE_PORT)"
    "|SGE_(ROOT|CELL|CLUSTER_NAME|QMASTER_PORT|EXECD_PORT)"
    "|LSF_(ENVDIR|BINDIR|LIBDIR|SERVERDIR)"
    "|LOADL_CONFIG"
    "|FLUX_(URI|CONF_DIR|(CONNECTOR|EXEC|MODULE)_PATH(_PREPEND)?|PYTHONPATH_PREPEND)"
)
"""The variables by which the clients of schedulers find their server."""
_OF_SCHEDULERS = re.compile(
    "(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SCANCEL|SINFO|SCONTROL|SACCT|SACCTMGR|SPRIO|SSTAT|SATTACH"
    "|SCRONTAB|PBS|QSUB|QSTAT|QSELECT|QDEL|SGE|LSF|LSB|BSUB|BJOBS|BKILL|LOADL|FLUX)_.*"
)
"""The variables that the commands of schedulers read, and those that they set in a job."""
_ASK_ONCE = {"LSB_NTRIES": "1"}
"""LSF: its commands do not try again themselves. bsub would do so for ever at a limit of jobs."""
_FOR_ANY_USER = re.compile(
    "PATH|TERM|LANG|LANGUAGE|LC_.*|TZ|COLUMNS|LINES|NO_COLOR|SOURCE_DATE_EPOCH|PROOFMARK_.*"
    f"|{_SERVERS}"
)
"""The variables that a command gets if it runs as another user."""


@cache  # each process on a node has an environment
def is_secret(name: str) -> bool:
    """Return whether the variable `name` has a secret, by its name."""
    upper = name.upper()
    return bool(re.search(SECRET, upper)) and not re.search(NO_SECRET, upper)


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `environment` without secrets; None is the environment of this process."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if not is_secret(name)}


def of_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` as a job gets it: without secrets, and without the user's ssh agent."""
    cleaned = without_secrets(environment)
    return {name: value for name, value in cleaned.items() if name not in AGENT}


def of_schedulers(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` for the commands of a scheduler, some of which pass it on to the job.

    It is that of a job. Of the variables of schedulers it has only those by which their clients
    find the server: ``SBATCH_*``, ``SCANCEL_STATE`` or ``PBS_DPREFIX`` would be options that
    nobody gave. Each command gets the same, so that all of them ask the same server.
    """
    kept = {
        name: value
        for name, value in of_jobs(environment).items()
        if name != "VIRTUAL_ENV"
        and (re.fullmatch(_SERVERS, name) or not _OF_SCHEDULERS.fullmatch(name))
    }
    return kept | _ASK_ONCE


def of_spack(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process of Spack, whose variables of Spack are those of `own`.

    Those of the caller would replace the configuration of the kit: SPACK_DISABLE_LOCAL_CONFIG lets
    Spack read none of it, and SPACK_ENV lets it write into an environment of the user.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPACK_")}
    return without_secrets({**kept, **own})


def of_another_user(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of `environment` for a command that runs as another user.

    Only listed variables are passed on. Those of the library of Ansible, of Python and of the
    dynamic linker would load the code of one user in the process of another.
    """
    cleaned = without_secrets(environment)
    return {name: value for name, value in cleaned.items() if _FOR_ANY_USER.fullmatch(name)}


def take_secrets(environment: MutableMapping[str, str]) -> dict[str, str]:
    """Remove the secrets of the kit (``PROOFMARK_*``) from `environment` and return them.

    Other secrets stay: a dynamic inventory may need its own.
    """
    names = [name for name in environment if name.startswith("PROOFMARK_") and is_secret(name)]
    return {name: environment.pop(name) for name in names}
