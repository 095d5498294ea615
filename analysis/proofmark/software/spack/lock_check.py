"""Makes and checks the locks of ``environments/``; checks the instructions of programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archspec.cpu
import yaml

from proofmark.common.command import run_command
from proofmark.common.environment import without_secrets
from proofmark.common.errors import InputError, bad_input, nearest
from proofmark.software.spack.lock import read_lock
from proofmark.software.spack.lock_rules import (
    canonicalise,
    check_lock,
    forbidden_instructions,
    overlay_digest,
    root_names,
)
from proofmark.software.spack.sources import FILE, check_sources, sources_from_spack
from proofmark.software.spack.system import release_variables, this_system, write_release

OVERLAY = Path("spack-repo/spack_repo/proofmark")
PINS = Path("environments/common/spack-pins.yaml")


@dataclass(frozen=True)
class Environment:
    """The root packages of an environment's folder, and its target."""

    roots: set[str]
    target: str


def read_environment(directory: Path, operating_system: str) -> Environment:
    """Read ``spack.yaml`` and the files that it includes for one operating system.

    Raises:
        BadInput: there is no such environment or operating system, or not exactly one target.
    """
    source, environment = _spack_yaml(directory)
    definitions = _definitions([environment, *_included(source, environment, operating_system)])
    return Environment(roots=root_names(environment, definitions), target=read_target(directory))


def read_roots(directory: Path) -> set[str]:
    """Return the root packages of an environment. They are the same on all operating systems.

    Raises:
        BadInput: there is no such environment.
    """
    source, environment = _spack_yaml(directory)
    shared = [name for name in environment.get("include", []) if "$" not in name]
    scopes = _included(source, {"include": shared}, "")
    return root_names(environment, _definitions([environment, *scopes]))


def read_target(directory: Path) -> str:
    """Return archspec's name of the processor that an environment builds for.

    Raises:
        BadInput: there is no such environment, or not exactly one target in its ``spack.yaml``.
    """
    source, environment = _spack_yaml(directory)
    words = _definitions([environment]).get("arch", [])
    targets = [str(word).removeprefix("target=") for word in words]
    if len(targets) != 1:
        raise bad_input(source, "definitions.arch", str(targets), "one target=<name>")
    return targets[0]


def _spack_yaml(directory: Path) -> tuple[Path, dict[str, Any]]:
    source = directory / "spack.yaml"
    if not source.is_file():
        known = sorted(path.parent.name for path in directory.parent.glob("*/spack.yaml"))
        hint = nearest(directory.name, known)
        raise bad_input(directory, "", f"no spack.yaml{hint}", ", ".join(known))
    return source, _load(source)["spack"]


def _definitions(scopes: list[dict[str, Any]]) -> dict[str, list[Any]]:
    definitions: dict[str, list[Any]] = {}
    for scope in scopes:
        for definition in scope.get("definitions", []):
            for name, values in definition.items():
                definitions.setdefault(name, []).extend(values)
    return definitions


def _included(source: Path, environment: dict[str, Any], system: str) -> list[dict[str, Any]]:
    """Return the content of the files that an environment includes."""
    scopes = []
    for name in environment.get("include", []):
        path = source.parent / name.replace("$operating_system", system)
        if not path.is_file():
            raise bad_input(source, "include", name, f"an operating system that has {path.name}")
        scopes.append(_load(path))
    return scopes


def _load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text())
    if not isinstance(loaded, dict):
        raise bad_input(path, "", type(loaded).__name__, "a mapping")
    return loaded


def check(root: Path, arch: str, operating_system: str) -> list[InputError]:
    """Return all errors of one committed lock and of the list of its sources.

    Raises:
        BadInput: the lock, the digest of its recipes, or the list is missing.
    """
    directory = root / "environments" / arch
    environment = read_environment(directory, operating_system)
    lock = directory / operating_system / "spack.lock"
    digest = lock.with_name("overlay.sha256")
    for path in (lock, digest):
        if not path.is_file():
            accepted = f"the file that `make lock ARCH={arch} OS={operating_system}` writes"
            raise bad_input(path, "", "no such file", accepted)
    mistakes = check_lock(
        str(lock.relative_to(root)),
        lock.read_text(),
        digest.read_text(),
        roots=environment.roots,
        target=environment.target,
        os=operating_system,
        overlay=root / OVERLAY,
        pins=_load(root / PINS),
    )
    return [*mistakes, *check_sources(read_lock(lock))]


def make(
    root: Path,
    arch: str,
    operating_system: str,
    spack: Path,
    packages: Path,
    python: Path = Path(sys.executable),
) -> None:
    """Concretize one environment at the pinned commits; write its canonical lock and its sources.

    Spack works on a copy in a temporary folder with a separate configuration. So the lock depends
    on neither the user's configuration nor the path of the checkout.

    Args:
        root: the checkout of Proofmark.
        arch: the environment.
        operating_system: the name that Spack uses for it.
        spack: a checkout of Spack, at the pinned commit.
        packages: a checkout of spack-packages, at the pinned commit.
        python: the Python that runs Spack and that has the solver.

    Raises:
        BadInput: a checkout is not at its pinned commit, Spack runs on another operating system, or
            its solver finds no solution.
    """
    read_environment(root / "environments" / arch, operating_system)
    pins = _load(root / PINS)
    for checkout, pin in ((spack, pins["spack"]), (packages, pins["spack_packages"])):
        head = _head(checkout)
        if head != pin["commit"]:
            raise bad_input(checkout, "HEAD", head, f"{pin['commit']} ({pin['tag']})")
    with tempfile.TemporaryDirectory() as scratch:
        lock, sources = _concretize(
            root, arch, operating_system, spack, packages, python, Path(scratch)
        )
    directory = root / "environments" / arch / operating_system
    directory.mkdir(exist_ok=True)
    (directory / "spack.lock").write_text(lock)
    (directory / FILE).write_text(sources)
    (directory / "overlay.sha256").write_text(overlay_digest(root / OVERLAY) + "\n")


def _concretize(
    root: Path, arch: str, system: str, spack: Path, packages: Path, python: Path, scratch: Path
) -> tuple[str, str]:
    """Run the solver in the folder `scratch`; return the texts of its lock and of its sources."""
    for part in ("environments", "spack-repo"):
        shutil.copytree(root / part, scratch / part)
    for name in ("user", "system"):
        (scratch / name).mkdir()
    builtin = (packages / "repos/spack_repo/builtin").resolve()
    (scratch / "user/repos.yaml").write_text(f"repos:\n  builtin: {builtin}\n")
    variables = {
        **without_secrets(),
        "SPACK_USER_CONFIG_PATH": str(scratch / "user"),
        "SPACK_SYSTEM_CONFIG_PATH": str(scratch / "system"),
        "SPACK_PYTHON": str(python),
        **release_variables(scratch),
    }
    write_release(scratch, this_system())
    command = [str(spack / "bin/spack"), "-c", "bootstrap:enable:false"]
    spack_system = _output(*command, "arch", "-o", env=variables)
    if spack_system != system:
        accepted = f"{spack_system}, because Spack runs on it"
        raise bad_input("OS", "", system, accepted)
    environment = scratch / "environments" / arch
    concretize = [*command, "-e", str(environment), "concretize", "--force"]
    done = subprocess.run(concretize, env=variables, check=False, stdout=sys.stderr)
    if done.returncode:
        found = f"no solution (exit code {done.returncode}, the message of Spack is above)"
        accepted = f"an environment that the compiler of {system} can build"
        raise bad_input(root / "environments" / arch, "spack concretize", found, accepted)
    lock: dict[str, Any] = yaml.safe_load((environment / "spack.lock").read_text())
    return canonicalise(lock), sources_from_spack(command, environment, variables)


def guard(target: str, programs: list[Path]) -> list[InputError]:
    """Return an error for each program with Xeon Phi instructions that its target lacks.

    Raises:
        BadInput: archspec has no such target.
    """
    if target not in archspec.cpu.TARGETS:
        hint = nearest(target, archspec.cpu.TARGETS)
        raise bad_input("--target", "", f"{target}{hint}", "an archspec name")
    features = frozenset(archspec.cpu.TARGETS[target].features)
    mistakes = []
    for program in programs:
        listing = _output("objdump", "-d", "--no-show-raw-insn", str(program))
        if instructions := forbidden_instructions(listing, features):
            accepted = f"instructions of {target}"
            mistakes.append(InputError(str(program), "", ", ".join(instructions), accepted))
    return mistakes


def _head(checkout: Path) -> str:
    """Return the commit that is checked out in a folder, or ``"no git checkout"``."""
    try:
        return _output("git", "-C", str(checkout), "rev-parse", "HEAD")
    except subprocess.CalledProcessError:
        return "no git checkout"


def _output(*command: str, env: dict[str, str] | None = None) -> str:
    done = run_command(command, environment=env)
    done.check_returncode()
    return done.stdout.strip()
