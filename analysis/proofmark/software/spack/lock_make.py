"""Makes locks at the pinned commits, and compares them with the pinned recipes by Spack's hashes.

Spack computes two hashes of a spec that it builds. The hash of the recipe is over the methods of
the recipe, the checksum of the source and the patches. The hash of the spec is over its version,
variants, target, recipe and dependencies. A comparison takes seconds, because nothing is solved. It
does not notice a directive of a recipe that would change the solution, such as a new dependency,
and it reads no external: these are no part of the hashes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from proofmark.common.errors import InputError, bad_input, nearest, refuse
from proofmark.common.processes import environment_of, run_command
from proofmark.common.progress_lines import while_working
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line
from proofmark.software.spack.installation import (
    CopiedEnvironment,
    SpackInstallation,
    unmarked,
    write_configuration,
)
from proofmark.software.spack.lock_check import (
    OVERLAY,
    PACKAGES,
    canonicalise,
    digest_of_inputs,
    external_mistakes,
    load_mapping,
    overlay_digest,
    read_environment,
    read_target,
)
from proofmark.software.spack.lock_file import REQUEST, SiteRequest
from proofmark.software.spack.mirror import SOURCES_FILE, sources_from_spack


def lock_variables(spack: SpackInstallation, folder: Path) -> dict[str, str]:
    """Write a configuration into `folder`; return the variables with which Spack reads it alone.

    Spack's index of all recipes, which needs minutes, is that of the installation.
    """
    scopes = {
        "repos": {"builtin": spack.builtin},
        "bootstrap": {"enable": False},
        "config": {"misc_cache": f"{spack.index}"},
    }
    write_configuration(folder, scopes)
    return spack.variables(folder)


def make(root: Path, source: Path, folder: Path, spack: SpackInstallation) -> None:
    """Concretize the file `source`; write its canonical lock and its sources into `folder`.

    Args:
        spack: an installation at its pins (`bootstrap`).
        source: the ``spack.yaml``; its paths of `include` start in a folder of ``environments/``.
        folder: the folder of the lock, ``…/<environment>/<operating system>``.

    Raises:
        BadInput: Spack runs on another operating system, or its solver finds no solution.
    """
    of_site = source.parent == folder
    arch, system = folder.parts[-2:]
    if not of_site:
        read_environment(root / "environments" / arch, system)  # refuses an unknown one
    with copied_environment(root, source, folder, spack) as copied:
        request = _site_request(root, source, copied, spack) if of_site else None
        words = [*copied.words, "-e", str(copied.folder), "concretize", "--force"]
        with while_working("Spack reads its recipes and solves"):
            done = subprocess.run(words, env=copied.variables, check=False, stdout=sys.stderr)
        if done.returncode:
            found = f"no solution (exit code {done.returncode}, the message of Spack is above)"
            accepted = f"an environment that the compiler of {folder.name} can build"
            raise bad_input(source.parent, "spack concretize", found, accepted)
        if of_site:
            _refuse_unmet(source.parents[2] / PACKAGES, copied)
        lock: dict[str, Any] = yaml.safe_load((copied.folder / "spack.lock").read_text())
        sources = sources_from_spack(copied)
        # Of the copy that was solved: somebody can edit a recipe meanwhile.
        digest = overlay_digest(copied.folder.parents[1] / OVERLAY)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spack.lock").write_text(canonicalise(lock))
    (folder / SOURCES_FILE).write_text(sources)
    (folder / "overlay.sha256").write_text(digest + "\n")
    if request:
        text = json.dumps(request.model_dump(), indent=1, sort_keys=True)
        (folder / REQUEST).write_text(f"{text}\n")


def _site_request(
    root: Path, source: Path, copied: CopiedEnvironment, spack: SpackInstallation
) -> SiteRequest:
    """Return what a site asks, as Spack merged it, whose strongest scope is that of the site.

    Raises:
        BadInput: Spack cannot read a file, or knows no such package; or an external has not the
            version that is required.
    """
    arch, system = source.parent.parts[-2:]
    merged = copied.packages()
    mistakes = [*external_mistakes(source, merged)]
    required, target = merged.get("all", {}).get("require", "nothing"), read_target(copied.folder)
    if f"target={target}" not in required:
        accepted = f"target={target} too: what `::` replaces is no longer asked"
        mistakes.append(InputError(f"{source}", "packages.all.require", f"{required}", accepted))
    choice = source.parents[2] / PACKAGES
    if choice.is_file():
        asked = asked_in(choice)
        recipes = (Path(spack.builtin) / "packages", root / OVERLAY / "packages")
        known = {each.name.strip("_").replace("_", "-") for at in recipes for each in at.glob("*")}
        known |= {"all", *merged.get("all", {}).get("providers", {})}  # all, and virtual packages
        for name in sorted(asked.keys() - known):
            found = f"no recipe has this name{nearest(name, known)}"
            mistakes.append(InputError(f"{choice}", name, found, "a package of Spack"))
    refuse(mistakes)
    inputs = digest_of_inputs(source, root / "environments" / arch, system)
    return SiteRequest(inputs=inputs, packages=merged)


def asked_in(choice: Path) -> dict[str, Any]:
    """Return what a ``packages.yaml`` asks, without the marks of its keys."""
    asked: dict[str, Any] = unmarked(load_mapping(choice)).get("packages") or {}
    return asked


class Unmet(StrictModel):
    """A wish of ``packages.yaml`` that the solved specs do not fulfil."""

    key: str
    found: str
    asked: str


_UNMET = TypeAdapter(tuple[Unmet, ...])


def _refuse_unmet(choice: Path, copied: CopiedEnvironment) -> None:
    """Refuse a lock without something that the site asks, as Spack itself compares specs.

    The solver follows a preference only as far as no requirement speaks against it.

    Raises:
        BadInput: names each such wish, and the spec that was solved.
    """
    unmet = copied.output_of("unmet", asked_in(choice)) if choice.is_file() else "[]"
    mistakes = [
        InputError(
            f"{choice}",
            f"packages.{each.key}",
            f"{each.asked}, but the solver gives {each.found}",
            "what no requirement speaks against, such as one of the kit; `require` instead",
        )
        for each in _UNMET.validate_json(unmet)
    ]
    refuse(mistakes)


@contextmanager
def copied_environment(
    root: Path, source: Path, folder: Path, spack: SpackInstallation
) -> Iterator[CopiedEnvironment]:
    """Copy the environment of the file `source` into a temporary folder, for Spack.

    Spack has a separate configuration there. So its results depend on neither the user's
    configuration nor the path of the checkout. The arguments are those of `make`.

    Raises:
        BadInput: Spack runs on another operating system.
    """
    arch, system = folder.parts[-2:]
    with TemporaryDirectory() as name:
        scratch = Path(name)
        for part in ("environments", "spack-repo"):
            shutil.copytree(root / part, scratch / part)
        environment = scratch / "environments" / arch
        shutil.copy(source, environment / "spack.yaml")
        command = spack.command()
        of_site = folder.parents[1] / PACKAGES
        if of_site.is_file():
            (scratch / "site").mkdir()
            shutil.copy(of_site, scratch / "site" / PACKAGES)
            command += ["--config-scope", str(scratch / "site")]
        originals = {f"{environment / 'spack.yaml'}": source, f"{environment}": folder}
        originals |= {f"{scratch / 'site'}": of_site.parent, f"{scratch}": root}
        variables = environment_of("spack", lock_variables(spack, scratch))
        done = run_command([str(spack.spack / "bin/spack"), "arch", "-o"], environment=variables)
        if (spack_system := done.stdout.strip()) != system:
            accepted = f"{spack_system or one_line(done.stderr)}, because Spack runs on it"
            raise bad_input("OS", "", system, accepted)
        yield CopiedEnvironment(tuple(command), environment, variables, originals)


class SpecHashes(StrictModel):
    """The hashes of a spec in a lock, and the same ones computed now.

    Attributes:
        recipe: the hash of the pinned recipe; None: there is none.
    """

    label: str
    locked_spec: str
    spec: str
    locked_recipe: str
    recipe: str | None

    @property
    def difference(self) -> str:
        """How the spec differs from the pinned recipes; empty if it does not."""
        if self.recipe is None:
            return "no recipe at the pins"
        if self.spec != self.locked_spec:
            return "the lock was edited: its hash is not that of its content"
        if self.recipe != self.locked_recipe:
            return "the recipe, its source or a patch differs: make the lock again"
        return ""


_HASHES = TypeAdapter(tuple[SpecHashes, ...])


def hashes_of_lock(environment: CopiedEnvironment) -> tuple[SpecHashes, ...]:
    """Return the hashes of each spec that the lock in `environment` builds.

    Raises:
        BadInput: Spack failed, or printed something else.
    """
    printed = environment.output_of("hashes")
    try:
        return _HASHES.validate_json(printed)
    except ValidationError:
        accepted = "the hashes of each package of the lock"
        raise bad_input(
            environment.folder / "spack.lock", "hashes", printed[:80], accepted
        ) from None
