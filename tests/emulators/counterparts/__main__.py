"""``make counterparts``: builds what `recipes.yml` lists into a cache, and runs its tests.

What is built stays in the cache, the folder ``PROOFMARK_COUNTERPARTS``, else one of the user. The
next call only runs the tests. A source that cannot be had is named, and the call fails. Root only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from pydantic import RootModel
from tests.folders import ROOT

from proofmark.common.processes import run_command
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load

RECIPES = Path(__file__).with_name("recipes.yml")
PATHS = (
    *("analysis/proofmark/machine", "analysis/proofmark/jobs", "tests/emulators"),
    *("tests/roles/batch.py", "tests/roles/test_pbs.py", "tests/roles/test_flux.py"),
)
"""What the tests of counterparts test, and how."""
ASK_S = 60.0
FETCH_S = 1800.0
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a build finds programs. The Python of the kit's environment has no header files."""
BUILT = ".commit"
"""The file in the folder of an installation that has the commit of its source, written last."""


class Recipe(StrictModel):
    """A release of upstream, how it is built, and the tests that need it."""

    repository: str
    tag: str
    commit: str
    script: str
    program: str
    variable: str
    tests: tuple[str, ...]


class Recipes(RootModel[dict[str, Recipe]]):
    """The recipes by the name of the counterpart."""


def main(words: Sequence[str]) -> int:
    """Build what is missing, and run the tests; return 0 if all of them passed."""
    parser = argparse.ArgumentParser(prog="make counterparts", description=__doc__)
    parser.add_argument("names", nargs="*", help="some counterparts; without names all of them")
    parser.add_argument(
        "--sources", type=Path, help="a folder with git repositories, NAME or NAME.git of each"
    )
    parser.add_argument(
        "--since", metavar="COMMIT", help="nothing to do if what they test is as in COMMIT"
    )
    parser.add_argument(
        "--if-available", action="store_true", help="a source that cannot be had is no failure"
    )
    options = parser.parse_args(words)
    if options.since and not _changed(options.since):
        print(f"counterparts: nothing that they test has changed since {options.since}")
        return 0
    recipes = load(RECIPES, Recipes).root
    chosen = options.names or list(recipes)
    if unknown := [name for name in chosen if name not in recipes]:
        parser.error(f"{unknown[0]}: accepted: {', '.join(recipes)}")
    if os.geteuid() != 0:
        print("counterparts: they are built and run by root: found another user")
        return 1
    failed = 0
    for name in chosen:
        code = _build(name, recipes[name], options.sources)
        if code == 0:
            failed += _test(name, recipes[name])
        else:
            failed += code > 1 or not options.if_available
    return int(failed > 0)


def _changed(commit: str) -> bool:
    """Return whether `PATHS` differ from `commit`, also if a shallow clone does not have it."""
    done = run_command(["git", "-C", f"{ROOT}", "diff", "--quiet", commit, "--", *PATHS])
    return done.returncode != 0


def _cache() -> Path:
    usual = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "proofmark"
    return Path(os.environ.get("PROOFMARK_COUNTERPARTS", usual / "counterparts")).resolve()


def _prefix(name: str, recipe: Recipe) -> Path:
    return _cache() / f"{name}-{recipe.tag}"


def _build(name: str, recipe: Recipe, sources: Path | None) -> int:
    """Build a counterpart that the cache lacks.

    Returns:
        0, 1 if its source cannot be had, 2 if the build fails.
    """
    prefix = _prefix(name, recipe)
    built = prefix / BUILT
    if built.is_file() and built.read_text() == recipe.commit:
        return 0
    source, found = None, "no repository"
    for place in _places(name, recipe, sources):
        source, found = place, _commit(place, recipe.tag)
        if found == recipe.commit:
            break
    if source is None or found != recipe.commit:
        wanted = f"{recipe.tag} of {recipe.repository}, commit {recipe.commit}"
        print(f"counterparts: {name}: the source cannot be had: found {found}; accepted: {wanted}")
        print("  SOURCES=folder names a folder with git repositories of upstream")
        return 1
    print(f"counterparts: {name}: builds {recipe.tag} into {prefix}", flush=True)
    shutil.rmtree(prefix, ignore_errors=True)
    command = ["nice", "-n", "10", "sh", recipe.script, f"{source}", recipe.tag, f"{prefix}"]
    log = prefix.with_name(f"{prefix.name}.log")
    prefix.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PATH": SYSTEM_PATH}
    environment.pop("VIRTUAL_ENV", None)
    with log.open("wb") as messages:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=messages, stderr=messages, check=False
        )
    code = done.returncode
    if code or not (prefix / recipe.program).exists():
        print(f"counterparts: {name}: the build failed with exit code {code}; see {log}")
        return 2
    built.write_text(recipe.commit)
    return 0


def _places(name: str, recipe: Recipe, sources: Path | None) -> Iterator[Path]:
    """Yield the repositories that may have the release: those of the site, else one of upstream."""
    for given in (sources / name, sources / f"{name}.git") if sources else ():
        if given.exists():
            yield given
    own = _cache() / f"{name}-{recipe.tag}.git"
    if sources is None:
        if _commit(own, recipe.tag) != recipe.commit:
            shutil.rmtree(own, ignore_errors=True)
            own.parent.mkdir(parents=True, exist_ok=True)
            one = ("--bare", "--quiet", "--depth=1", f"--branch={recipe.tag}")
            _git(FETCH_S, "clone", *one, recipe.repository, f"{own}")
        yield own


def _commit(repository: Path, tag: str) -> str:
    """Return the id of the commit of `tag`; or why there is none."""
    if not repository.exists():
        return "no repository"
    code, printed = _git(ASK_S, "-C", f"{repository}", "rev-parse", f"{tag}^{{commit}}")
    return printed if code == 0 else f"no {tag} in {repository}"


def _git(seconds: float, *words: str) -> tuple[int, str]:
    """Return the exit code of git and its output; it asks no person."""
    command = ["git", "-c", "safe.directory=*", *words]
    try:
        done = run_command(command, timeout_s=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"counterparts: git {words[0]}: {error}")
        return 1, ""
    if done.returncode and words[0] == "clone":
        print(f"counterparts: git clone: {done.stderr.strip()}")
    return done.returncode, done.stdout.strip()


def _test(name: str, recipe: Recipe) -> bool:
    """Run the tests that need a counterpart; return whether one failed or was left out."""
    prefix = _prefix(name, recipe)
    results = prefix.with_name(f"{prefix.name}.xml")
    path = f"{(prefix / recipe.program).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, recipe.variable: f"{prefix}"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--tier=soak",
        f"--junitxml={results}",
        *recipe.tests,
    ]
    results.unlink(missing_ok=True)
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if not results.is_file():
        print(f"counterparts: {name}: no tests ran: pytest has exit code {code}")
        return True
    cases = [*ElementTree.parse(results).iter("testcase")]
    skipped = [f"{each.get('name')}" for each in cases if each.find("skipped") is not None]
    for each in skipped:
        print(f"counterparts: {name}: {each} was left out: is a package missing?")
    return bool(code or skipped or not cases)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
