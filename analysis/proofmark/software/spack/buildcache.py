"""A signed build cache: pushing to one, and refusing what the site's key did not sign."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from proofmark.common.command import run_command
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.software.spack.installation import SpackInstallation

MANIFESTS = "v3/manifests/spec"
"""Of Spack's build caches since 1.0: ``<name>/<name>-<version>-<hash>.spec.manifest.json``."""
SUFFIX = ".spec.manifest.json"


def cached(cache: Path | None) -> dict[str, Path]:
    """Return the manifests of a build cache, by hash."""
    if cache is None:
        return {}
    found = (cache / MANIFESTS).glob(f"*/*{SUFFIX}")
    return {path.name.removesuffix(SUFFIX).rpartition("-")[2]: path for path in found}


def trust(home: SpackInstallation, key: Path | None) -> None:
    """Make a keyring of the site's key alone.

    Raises:
        BadInput: there is no key, or the file is none.
    """
    if key is None:
        raise bad_input(
            "provision_cache_key", "", "nothing", "the public key that signed the cache"
        )
    shutil.rmtree(home.keyring, ignore_errors=True)
    home.keyring.mkdir(parents=True, mode=0o700)
    done = _gpg(home, "--import", str(key))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise bad_input(key, "", last, "a public key of GnuPG")


def release(home: SpackInstallation) -> None:
    """End the agent that GnuPG, ours or Spack's, has left for the keyring."""
    run_command(["gpgconf", "--homedir", str(home.keyring), "--kill", "all"])


def verify(home: SpackInstallation, cache: Path, wanted: Collection[str]) -> None:
    """Check the signatures of the specs `wanted`, as far as the cache has them.

    Spack would build from source what is not signed well. That hides an attack or a mix-up, and
    gives other programs than the cache's: it is refused here.

    Raises:
        BadInput: a manifest is not signed, or by another key than the site's; all are named.
    """
    mistakes = []
    for spec_hash, path in sorted(cached(cache).items()):
        if spec_hash in wanted:
            done = _gpg(home, "--status-fd=1", "--verify", str(path))
            if done.returncode != 0 or "[GNUPG:] VALIDSIG " not in done.stdout:
                mistakes.append(
                    InputError(str(path), "", _why(done), "a signature of the site's key")
                )
    if mistakes:
        raise BadInput(*mistakes)


def _why(done: subprocess.CompletedProcess[str]) -> str:
    for word, meaning in (
        ("NO_PUBKEY", "signed by another key"),
        ("BADSIG", "a signature that does not fit"),
        ("EXPKEYSIG", "signed by a key that has expired"),
    ):
        if f"[GNUPG:] {word}" in done.stdout:
            return meaning
    return "no signature"


def _gpg(home: SpackInstallation, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["gpg", "--homedir", str(home.keyring), "--batch", "--no-tty", *words]
    try:
        return run_command(command)
    except FileNotFoundError:
        raise bad_input("gpg", "", "no such command", "GnuPG, to check signatures") from None


def push(
    home: SpackInstallation, environment: Path, hashes: Collection[str], cache: Path, key: str
) -> None:
    """Push what is installed into a build cache, signed by `key` of the caller's own GnuPG.

    Raises:
        BadInput: Spack could not.
    """
    cache.mkdir(parents=True, exist_ok=True)
    own = os.environ.get("GNUPGHOME", str(Path.home() / ".gnupg"))
    command = home.command("-e", str(environment), "buildcache", "push", "--key", key)
    command += ["--update-index", str(cache.resolve()), *(f"/{each}" for each in sorted(hashes))]
    variables = {**home.environment(), "SPACK_GNUPGHOME": own}
    done = run_command(command, environment=variables)
    if done.returncode != 0:
        told = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise bad_input("spack buildcache push", "", told, "a signed push")
