"""Signed build caches of Spack: checks their signatures and pushes to them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import new_folder
from proofmark.common.processes import run_command
from proofmark.software.spack.installation import SpackInstallation

MANIFESTS = "v3/manifests/spec"
"""Layout since Spack 1.0: ``<name>/<name>-<version>-<hash>.spec.manifest.json``."""
SUFFIX = ".spec.manifest.json"


def cached_manifests(cache: Path | None) -> dict[str, Path]:
    """Return the manifests of a build cache by the hash of the spec; empty without a cache."""
    if cache is None:
        return {}
    paths = (cache / MANIFESTS).glob(f"*/*{SUFFIX}")
    return {path.name.removesuffix(SUFFIX).rpartition("-")[2]: path for path in paths}


def import_key(installation: SpackInstallation, key: Path | None) -> None:
    """Make a new keyring that contains only the site's key.

    Raises:
        BadInput: `key` is None, or the file is not a public key.
    """
    if key is None:
        raise bad_input(
            "provision_cache_key", "", "nothing", "the public key that signed the cache"
        )
    shutil.rmtree(installation.keyring, ignore_errors=True)
    installation.keyring.mkdir(parents=True, mode=0o700)
    done = _gpg(installation, "--import", str(key))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise bad_input(key, "", last, "a public key of GnuPG")


def kill_agents(installation: SpackInstallation) -> None:
    """End the agents that gpg started for the keyring."""
    run_command(["gpgconf", "--homedir", str(installation.keyring), "--kill", "all"])


def verify(installation: SpackInstallation, cache: Path, hashes: Collection[str]) -> None:
    """Check the signatures of those specs of `hashes` that are in the cache.

    Spack builds a spec from source if its signature is wrong. That would hide an attack or a
    mistake, and the programs would not be those of the cache. So it is an error.

    Raises:
        BadInput: manifests without a signature by the site's key; names all of them.
    """
    mistakes = []
    for spec_hash, path in sorted(cached_manifests(cache).items()):
        if spec_hash in hashes:
            done = _gpg(installation, "--status-fd=1", "--verify", str(path))
            if done.returncode != 0 or "[GNUPG:] VALIDSIG " not in done.stdout:
                accepted = "a signature by the site's key"
                mistakes.append(InputError(str(path), "", _signature_error(done), accepted))
    if mistakes:
        raise BadInput(*mistakes)


def _signature_error(done: subprocess.CompletedProcess[str]) -> str:
    for word, meaning in (
        ("NO_PUBKEY", "signed by another key"),
        ("BADSIG", "a signature that does not match the file"),
        ("EXPKEYSIG", "signed by a key that has expired"),
    ):
        if f"[GNUPG:] {word}" in done.stdout:
            return meaning
    return "no signature"


def _gpg(installation: SpackInstallation, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["gpg", "--homedir", str(installation.keyring), "--batch", "--no-tty", *words]
    try:
        return run_command(command)
    except FileNotFoundError:
        raise bad_input("gpg", "", "no such command", "GnuPG, to check signatures") from None


def push(
    installation: SpackInstallation,
    environment: Path,
    hashes: Collection[str],
    cache: Path,
    key: str,
) -> None:
    """Push installed specs into a build cache, signed with `key` of the caller's GnuPG home.

    Raises:
        BadInput: Spack failed.
    """
    gnupg_home = os.environ.get("GNUPGHOME", str(Path.home() / ".gnupg"))
    command = installation.command("-e", str(environment), "buildcache", "push", "--key", key)
    command += [
        "--update-index",
        str(cache.resolve()),
        *(f"/{spec_hash}" for spec_hash in sorted(hashes)),
    ]
    variables = {**installation.environment(), "SPACK_GNUPGHOME": gnupg_home}
    with new_folder(cache):
        done = run_command(command, environment=variables)
        if done.returncode != 0:
            last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise bad_input("spack buildcache push", "", last, "a signed push with exit code 0")
