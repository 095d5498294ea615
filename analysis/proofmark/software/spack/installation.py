"""An installation of Spack at its pinned commits, with a separate configuration.

One folder contains Spack, its recipes, the virtual environment with the solver, the installed
programs and the configuration. No configuration of the user's or the system's Spack is read.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from proofmark.common.errors import bad_input
from proofmark.common.processes import environment_of, run_command, run_git
from proofmark.common.progress_lines import while_working
from proofmark.common.text import one_line
from proofmark.software.installed import Sources

Json = Any
"""A value read from JSON or YAML."""

OS_RELEASE = Path("/etc/os-release")
ORIGINAL = "rhel"
"""The system that others are built from: CentOS Stream, Rocky, AlmaLinux and Oracle Linux.

They have its compiler and C library, and so its locks. Since release 8 they have its PLATFORM_ID,
``platform:el9``; CentOS 7 has only ID_LIKE. Fedora and Amazon Linux have another PLATFORM_ID.
"""
_OF_DISTRO = {"opensuse-leap": "opensuse"}
"""Names of systems in the package distro, which Spack asks, by their ID (`NORMALIZED_OS_ID`)."""


@dataclass(frozen=True)
class OperatingSystem:
    """An operating system under the names of Spack: ``rhel`` and ``9``."""

    id: str
    version: str

    @property
    def name(self) -> str:
        """The name in Spack, which is the name of the folder of a lock."""
        return self.id + self.version


def operating_system(os_release: str) -> OperatingSystem:
    """Return the operating system of an ``/etc/os-release``; of a rebuild, its original.

    Raises:
        BadInput: the text has no system, or no version.
    """
    release: dict[str, str] = {}
    for line in os_release.splitlines():
        with suppress(ValueError):  # a quotation mark without its partner
            release |= (word.partition("=")[::2] for word in shlex.split(line, comments=True))
    # openEuler's ID has capitals, which distro and Spack lower. Debian testing has no VERSION_ID.
    system = release.get("ID", "").lower()
    version = release.get("VERSION_ID") or release.get("VERSION_CODENAME")
    if not system or not version:
        accepted = "ID, and VERSION_ID or VERSION_CODENAME"
        raise bad_input(OS_RELEASE, "ID, VERSION_ID", str(release), accepted)
    major = version.partition(".")[0]
    if platform := re.fullmatch(r"platform:el(\d+)", release.get("PLATFORM_ID", "")):
        return OperatingSystem(ORIGINAL, platform[1])
    if ORIGINAL in release.get("ID_LIKE", "").split():
        return OperatingSystem(ORIGINAL, major)
    # As the package distro and Spack name it: openSUSE Leap 15.6 is opensuse15.
    name = _OF_DISTRO.get(system, system).replace("-", "")
    return OperatingSystem(name, version if system == "ubuntu" else major)


def release_variables(folder: Path) -> dict[str, str]:
    """Return the variables with which Spack reads the ``os-release`` of `write_configuration`.

    Spack has a copy of the Python package distro, which reads it in the folder UNIXCONFDIR. Its git
    reads the commit for the lock, also in a checkout of another user.
    """
    return {
        "UNIXCONFDIR": str(folder / "release"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def this_system() -> OperatingSystem:
    """Return the operating system of the controller."""
    return operating_system(OS_RELEASE.read_text(encoding="utf-8"))


PADDED = 128
"""Length of an install prefix in characters.

It is part of the path of each program that was built.
"""

NO_PROXY = "http://127.0.0.1:9"
"""The discard port: nothing listens there, and nothing leaves the machine."""
CONFIGURATION = "etc/spack"
"""The folder of a checkout of Spack whose files Spack reads before those of the user."""
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy")
NO_NETWORK = {
    **dict.fromkeys(_PROXIES, NO_PROXY),
    **dict.fromkeys(map(str.upper, _PROXIES), NO_PROXY),
    "no_proxy": "",
    "NO_PROXY": "",
    "GIT_ALLOW_PROTOCOL": "file",
}
"""The variables with which urllib, curl, wget and git reach no address."""


@dataclass(frozen=True)
class SpackInstallation:
    """The folder of Spack with all files that it writes, and the checkouts that it uses."""

    root: Path
    spack: Path
    packages: Path
    offline: bool = False
    """Whether Spack may ask no address."""

    @property
    def python(self) -> Path:
        """The Python that runs Spack and that has the solver."""
        return self.root / "venv/bin/python"

    @property
    def mirror(self) -> Path:
        """The mirror with links to the sources of a lock."""
        return self.root / "mirror"

    @property
    def index(self) -> Path:
        """The folder of Spack's index of all recipes, for locks and for installations."""
        return self.root / "misc"

    @property
    def builtin(self) -> str:
        """The folder of the recipes of Spack."""
        return str((self.packages / "repos/spack_repo/builtin").resolve())

    def command(self, *words: str) -> list[str]:
        """Return the command line of Spack with the arguments `words`."""
        return [str(self.spack / "bin/spack"), "--color=never", *words]

    def environment(self) -> dict[str, str]:
        """Return the variables with which Spack reads only the files of this folder.

        Offline, each address is behind a proxy that does not exist, and git reads files only.
        """
        return environment_of("spack", self.variables(self.root))

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the variables with which Spack reads only the configuration in `folder`."""
        return {
            "SPACK_USER_CONFIG_PATH": str(folder / "user"),
            "SPACK_SYSTEM_CONFIG_PATH": str(folder / "system"),
            "SPACK_USER_CACHE_PATH": str(folder / "cache"),
            "SPACK_PYTHON": str(self.python),
            **release_variables(folder),
            **(NO_NETWORK if self.offline else {}),
        }

    def configure(self, sources: Sources) -> None:
        """Write Spack's configuration and the name of the operating system.

        The builtin recipes are in the user's scope. Its priority is lower than the environment's,
        so that the recipes of this repository replace builtin ones. Offline, our mirrors replace
        those of Spack, and are not added to them.
        """
        mirrors: dict[str, Any] = {}
        for name, folder in (
            ("bundle", sources.bundle and sources.bundle / "mirror"),
            ("links", self.mirror),
            ("sources", sources.mirror),
        ):
            if folder and folder.is_dir():
                url = f"file://{folder.resolve()}"
                mirrors[name] = {"url": url, "source": True, "binary": False}
        store: dict[str, Any] = {"root": str(self.root / STORE), "padded_length": PADDED}
        config: dict[str, Any] = {
            "install_tree": store,
            "build_stage": [str(self.root / "stage")],
            "source_cache": str(self.root / "source"),
            "misc_cache": str(self.index),
        }
        scopes: Mapping[str, Any] = {
            "repos": {"builtin": self.builtin},
            "config": config,
            # With no sources Spack downloads nothing for itself.
            "bootstrap": {"enable": True, "root": str(self.root / "bootstrap"), "sources:": []},
            "mirrors:" if self.offline else "mirrors": mirrors,
        }
        write_configuration(self.root, scopes)

    def installed(self) -> dict[str, Path]:
        """Return the prefixes of the installed specs, by hash, from the database of Spack."""
        prefixes: dict[str, Path] = {}
        for index in (self.root / STORE).glob("**/.spack-db/index.json"):
            records = json.loads(index.read_text())["database"]["installs"]
            for spec_hash, record in records.items():
                if record["installed"] and record["path"] and Path(record["path"]).is_dir():
                    prefixes[spec_hash] = Path(record["path"])
        return prefixes


def write_configuration(folder: Path, scopes: Mapping[str, Any]) -> None:
    """Write a configuration of Spack into `folder`, and an ``os-release``.

    By the latter Spack gives specs on a rebuild of a system the name of the original.

    Args:
        scopes: the content by section; a colon at the end of its name replaces that of Spack.
    """
    for name in ("user", "system", "release"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    system = this_system()
    release = f"ID={system.id}\nVERSION_ID={system.version}\n"
    (folder / "release/os-release").write_text(release, encoding="utf-8")
    for name, content in scopes.items():
        text = yaml.safe_dump({name: content})
        (folder / f"user/{name.rstrip(':')}.yaml").write_text(text)


UNFINISHED = "clone-"
"""The begin of the name of a folder into which a checkout is cloned before it is whole."""

LOCK_SCRIPT = Path(__file__).with_name("lock_script.py")


@dataclass(frozen=True)
class CopiedEnvironment:
    """A copy of an environment, and what starts Spack on it.

    Attributes:
        folder: the folder of the copy, with ``spack.yaml`` and, once it is made, ``spack.lock``.
        originals: by path of a copied file or folder the original, which messages name.
    """

    words: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str]
    originals: Mapping[str, Path] = field(default_factory=dict)

    def output_of(self, name: str, *arguments: Json) -> str:
        """Return what `LOCK_SCRIPT` prints for the property `name`.

        Raises:
            BadInput: it failed; repeats its error.
        """
        file, accepted = self.folder / "spack.lock", "a lock of these pins"
        words = ("python", str(LOCK_SCRIPT), name, *map(json.dumps, arguments))
        with while_working(f"Spack reads the lock and its recipes: {name}"):
            return self._printed(words, file, name, accepted)

    def packages(self) -> dict[str, Any]:
        """Return the configuration of packages that Spack merged from all files.

        Raises:
            BadInput: a file is no configuration of Spack; repeats its error.
        """
        words, accepted = ("config", "get", "packages"), "a configuration that Spack can read"
        printed = self._printed(words, self.folder / "spack.yaml", "packages", accepted)
        merged: dict[str, Any] = unmarked(yaml.load(printed, Loader=yaml.CSafeLoader))["packages"]
        return merged

    def _printed(self, words: Sequence[str], file: Path, key: str, accepted: str) -> str:
        done = run_command(
            [*self.words, "-e", str(self.folder), *words], environment=self.variables
        )
        if not done.returncode:
            return done.stdout
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        first = next((n for n, line in enumerate(lines) if "Error:" in line), -SHOWN_LINES)
        found = " / ".join(lines[first:][:SHOWN_LINES]) or f"exit code {done.returncode}"
        path = f"{file}"
        for copied, original in self.originals.items():
            found, path = (text.replace(copied, f"{original}") for text in (found, path))
        raise bad_input(path, key, found, accepted)


SHOWN_LINES = 3
"""The lines of an error of Spack that a message repeats."""


def unmarked(configuration: Json) -> Json:
    """Return a configuration without Spack's marks of keys: ``require::`` replaces other files."""
    if isinstance(configuration, list):
        return [unmarked(each) for each in configuration]
    if not isinstance(configuration, dict):
        return configuration
    return {f"{name}".rstrip(":+-"): unmarked(each) for name, each in configuration.items()}


def installation_in(prefixes: Path, sources: Sources) -> SpackInstallation:
    """Return the installation under `prefixes`; create no file."""
    root = prefixes / "spack"
    spack, packages = sources.spack or root / "spack", sources.packages or root / "packages"
    return SpackInstallation(root, spack, packages, sources.offline)


def bootstrap(
    installation: SpackInstallation, kit: Path, pins: Mapping[str, Any], sources: Sources
) -> None:
    """Install Spack, its recipes and the solver at their pins, unless they are installed.

    Raises:
        BadInput: a checkout is not at its pinned commit, or cannot be cloned.
    """
    for site_checkout, folder, pin, name in (
        (sources.spack, installation.spack, pins["spack"], "spack.git"),
        (sources.packages, installation.packages, pins["spack_packages"], "packages.git"),
    ):
        for left in installation.root.glob(f"{UNFINISHED}*"):  # by a clone that was killed
            shutil.rmtree(left, ignore_errors=True)
        with while_working(f"comparing {folder} with its pin"):
            found = not_pinned(folder, pin)
        if not found:
            continue
        if site_checkout:
            raise bad_input(folder, "HEAD", found, f"{pin['commit']} ({pin['tag']}), unchanged")
        address = f"file://{sources.bundle / name}" if sources.bundle else str(pin["git"])
        with while_working(f"cloning {pin['tag']} from {address}"):
            _clone(address, pin["tag"], pin["commit"], folder)
    make_venv(installation.root / "venv", kit / "requirements/spack.txt", sources.bundle)


def not_pinned(checkout: Path, pin: Mapping[str, Any]) -> str:
    """Return how a checkout differs from its pin; empty if it does not.

    A file that is not as in the commit counts: another recipe builds another program under the same
    hash. So does a configuration inside the checkout, which git ignores and Spack reads.
    """
    if not (checkout / ".git").exists():
        return "no git checkout"
    own = ("--others", "--ignored", "--exclude-standard", "--", CONFIGURATION)
    printed = []
    for done in (
        run_git(checkout, "rev-parse", "HEAD"),
        run_git(checkout, "status", "--porcelain", "--untracked-files=all"),
        run_git(checkout, "ls-files", *own),
    ):
        if done.returncode:  # what git cannot list is not known to be unchanged
            return f"git: {one_line(done.stderr) or f'exit code {done.returncode}'}"
        printed.append(done.stdout)
    commit, changed, ignored = printed
    if commit.strip() != pin["commit"]:
        return commit.strip()
    files = [line[len("?? ") :] for line in changed.splitlines()] + ignored.splitlines()
    return f"the commit with {len(files)} changed files: {files[0]}" if files else ""


def _clone(address: str, tag: str, commit: str, folder: Path) -> None:
    """Clone a tag, which must be of `commit`, into `folder`, which is whole or as before.

    Raises:
        BadInput: there is no such tag, it is of another commit, or the repository is not complete.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=UNFINISHED) as scratch:
        fresh = Path(scratch) / folder.name
        words = ("--quiet", "--depth=1", f"--branch={tag}", "--config=advice.detachedHead=false")
        done = run_git(folder.parent, "clone", *words, address, str(fresh))
        if done.returncode:
            raise bad_input(address, tag, done.stderr.strip(), "a whole repository with this tag")
        fetched = run_git(fresh, "rev-parse", "HEAD").stdout.strip()
        if fetched != commit:
            raise bad_input(address, tag, fetched, f"{commit}, the pinned commit")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)


def make_venv(folder: Path, lock: Path, bundle: Path | None) -> None:
    """Install the solver from a lock of hashes, unless it is installed.

    A copy of the lock is written last. It marks a complete installation.

    Raises:
        BadInput: pip failed.
    """
    lock_copy = folder / "lock.txt"
    if lock_copy.is_file() and lock_copy.read_bytes() == lock.read_bytes():
        return
    offline = ["--no-index", f"--find-links={bundle / 'wheels'}"] if bundle else []
    install = [str(folder / "bin/python"), *PIP, "install", *HASHED, *offline, f"-r{lock}"]
    with while_working("installing the solver of Spack"):
        shutil.rmtree(folder, ignore_errors=True)
        run_python(lock, [sys.executable, "-P", "-m", "venv", str(folder)])
        run_python(lock, install)
    shutil.copy(lock, lock_copy)


PIP = ("-P", "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")
"""The arguments of Python before a command of pip."""
HASHED = ("--require-hashes", "--no-deps")
"""The options of pip for a lock of hashes."""


def run_python(lock: Path, command: Sequence[str]) -> None:
    """Run a command of Python about the distributions of `lock`.

    Raises:
        BadInput: it failed; repeats its last line.
    """
    done = run_command(command, environment=environment_of("pip"))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise bad_input(lock, "", last, "wheels for this Python and this system")


# The folders under which Spack can install: short ones, without blanks.
#
# Spack begins a script whose first line is too long for the system with another first line, which
# calls ``sbang`` in the root of the store. It refuses a store in which the path of ``sbang`` is
# longer than the system allows (``hooks/sbang.py`` of Spack: `system_shebang_limit`), but only
# after it has built the first package.

STORE = "store"
"""The folder of the installed specs, in the folder of Spack."""
SHEBANG_LIMIT = 127
"""Characters of a path that Linux accepts in the first line of a script, as Spack counts them."""
BELOW = f"/spack/{STORE}/bin/sbang"
"""The path of ``sbang`` below the folder of all installed programs."""
LONGEST = SHEBANG_LIMIT - len(BELOW)
"""Characters of the longest folder of all installed programs."""


def check_path(prefixes: Path) -> None:
    """Refuse a folder under which Spack cannot install; configure and make split words at blanks.

    Raises:
        BadInput: its path is too long, or has a blank.
    """
    length = len(str(prefixes))
    if length > LONGEST:
        accepted = (
            f"at most {LONGEST} characters, because Spack's limit for {BELOW[1:]} below it is "
            f"{SHEBANG_LIMIT}; set provision_prefixes to a shorter folder that every node sees"
        )
        raise bad_input("provision_prefixes", "", f"{prefixes}, {length} characters", accepted)
    if any(letter.isspace() for letter in str(prefixes)):
        accepted = "a path without blanks; set provision_prefixes to a folder that every node sees"
        raise bad_input("provision_prefixes", "", f"{prefixes}", accepted)
