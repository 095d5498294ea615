"""Spack at its pinned commits, with a configuration that is nobody else's.

Everything lies under one folder: Spack, its recipes, the virtual environment with the solver, the
installed programs, the configuration. Nothing is read from the user's Spack or the system's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input
from proofmark.software.build_process import Say

PADDED = 128
"""Prefixes are made this long, so that a build cache can be written into any shorter one."""


@dataclass(frozen=True)
class Sources:
    """Where Spack and the rest come from; what is None comes from its public address.

    Attributes:
        spack: the site's own checkout of Spack, at the pinned commit.
        packages: likewise of spack-packages.
        bundle: an unpacked bundle; then nothing at all comes from elsewhere.
        mirror: a folder of sources.
        cache: a folder with a build cache, whose signatures `key` must verify.
        key: file with the public key of the site.
    """

    spack: Path | None = None
    packages: Path | None = None
    bundle: Path | None = None
    mirror: Path | None = None
    cache: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class SpackInstallation:
    """One folder with all that Spack is and makes."""

    root: Path
    spack: Path
    packages: Path

    @property
    def python(self) -> Path:
        """The Python that runs Spack and has the solver."""
        return self.root / "venv/bin/python"

    @property
    def keyring(self) -> Path:
        """GnuPG's home with the site's key and no other."""
        return self.root / "gnupg"

    def command(self, *words: str) -> list[str]:
        """Return the call of Spack."""
        return [str(self.spack / "bin/spack"), "--color=never", *words]

    def environment(self) -> dict[str, str]:
        """Return the variables under which Spack sees its own configuration alone."""
        return {
            **os.environ,
            "SPACK_USER_CONFIG_PATH": str(self.root / "user"),
            "SPACK_SYSTEM_CONFIG_PATH": str(self.root / "system"),
            "SPACK_USER_CACHE_PATH": str(self.root / "cache"),
            "SPACK_GNUPGHOME": str(self.keyring),
            "SPACK_PYTHON": str(self.python),
        }

    def configure(self, sources: Sources, jobs: int) -> None:
        """Write Spack's configuration.

        The builtin recipes are named in the user's scope, which is below the environment's:
        above it they would win over those of this repository.
        """
        mirrors: dict[str, Any] = {}
        for name, folder, is_source in (
            ("bundle", sources.bundle and sources.bundle / "mirror", True),
            ("sources", sources.mirror, True),
            ("cache", sources.cache, False),
        ):
            if folder and folder.is_dir():
                url = f"file://{folder.resolve()}"
                kind: dict[str, Any] = {"url": url, "source": is_source, "binary": not is_source}
                mirrors[name] = kind if is_source else {**kind, "signed": True}
        builtin = (self.packages / "repos/spack_repo/builtin").resolve()
        store: dict[str, Any] = {"root": str(self.root / "store"), "padded_length": PADDED}
        config: dict[str, Any] = {
            "install_tree": store,
            "build_stage": [str(self.root / "stage")],
            "source_cache": str(self.root / "source"),
            "misc_cache": str(self.root / "misc"),
        }
        if jobs:
            config["build_jobs"] = jobs
        scopes: Mapping[str, Any] = {
            "repos": {"builtin": str(builtin)},
            "config": config,
            # Without it Spack refuses to look for gpg; without sources it downloads nothing.
            "bootstrap": {"enable": True, "root": str(self.root / "bootstrap"), "sources:": []},
            "mirrors": mirrors,
        }
        for name in ("user", "system"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        for name, content in scopes.items():
            text = yaml.safe_dump({name: content})
            (self.root / f"user/{name}.yaml").write_text(text)

    def installed(self) -> dict[str, Path]:
        """Return the prefixes of what is installed, by hash, from Spack's own database."""
        found: dict[str, Path] = {}
        for index in (self.root / "store").glob("**/.spack-db/index.json"):
            records = json.loads(index.read_text())["database"]["installs"]
            for spec_hash, record in records.items():
                if record["installed"] and record["path"] and Path(record["path"]).is_dir():
                    found[spec_hash] = Path(record["path"])
        return found


def home_of(prefixes: Path, sources: Sources) -> SpackInstallation:
    """Return the home under `prefixes`; nothing is made."""
    root = prefixes / "spack"
    return SpackInstallation(
        root, sources.spack or root / "spack", sources.packages or root / "packages"
    )


def bootstrap(
    home: SpackInstallation, kit: Path, pins: Mapping[str, Any], sources: Sources, say: Say
) -> None:
    """Bring Spack, its recipes and the solver to their pins; nothing is done where they are.

    Raises:
        BadInput: a checkout is not at its pinned commit, or cannot be had.
    """
    for own, folder, pin, name in (
        (sources.spack, home.spack, pins["spack"], "spack.git"),
        (sources.packages, home.packages, pins["spack_packages"], "packages.git"),
    ):
        if head(folder) == pin["commit"]:
            continue
        if own:
            raise bad_input(folder, "HEAD", head(folder), f"{pin['commit']} ({pin['tag']})")
        address = f"file://{sources.bundle / name}" if sources.bundle else str(pin["git"])
        say(f"getting {pin['tag']} from {address}")
        _clone(address, pin["tag"], pin["commit"], folder)
    make_venv(home.root / "venv", kit / "requirements/spack.txt", sources.bundle, say)


def head(checkout: Path) -> str:
    """Return the commit that is checked out in a directory, in words where there is none."""
    if not (checkout / ".git").exists():
        return "no git checkout"
    done = _git("-C", str(checkout), "rev-parse", "HEAD")
    return done.stdout.strip() if done.returncode == 0 else "no git checkout"


def _clone(address: str, tag: str, commit: str, folder: Path) -> None:
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.parent.mkdir(parents=True, exist_ok=True)
    _git("init", "--quiet", str(fresh))
    there = ("-C", str(fresh))
    done = _git(*there, "fetch", "--quiet", "--depth=1", address, f"refs/tags/{tag}")
    if done.returncode != 0:
        raise bad_input(address, tag, done.stderr.strip(), "a repository with this tag")
    found = _git(*there, "rev-parse", "FETCH_HEAD^{commit}").stdout.strip()
    if found != commit:
        raise bad_input(address, tag, found, f"{commit}, the pinned commit")
    done = _git(*there, "checkout", "--quiet", "--detach", commit)
    if done.returncode != 0:
        raise bad_input(address, tag, done.stderr.strip(), "a whole repository")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    return run_command(["git", "-c", "advice.detachedHead=false", *words], environment=environment)


def make_venv(folder: Path, lock: Path, bundle: Path | None, say: Say) -> None:
    """Install the solver from a lock of hashes; the copy of the lock says that it is complete.

    Raises:
        BadInput: pip could not.
    """
    noted = folder / "lock.txt"
    if noted.is_file() and noted.read_bytes() == lock.read_bytes():
        return
    say("installing the solver of Spack")
    shutil.rmtree(folder, ignore_errors=True)
    offline = ["--no-index", f"--find-links={bundle / 'wheels'}"] if bundle else []
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--no-input"]
    pip += ["--disable-pip-version-check", "--require-hashes", "--no-deps", *offline]
    for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, "-r", str(lock)]):
        done = run_command(command)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise bad_input(lock, "", last, "wheels that pip can install here")
    shutil.copy(lock, noted)
