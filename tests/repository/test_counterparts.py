"""The recipes of real schedulers: a source counts by its commit, and each test has its recipe."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.emulators.counterparts import __main__ as counterparts
from tests.folders import ROOT

from proofmark.common.yaml_models import load

RECIPE = """
one:
  repository: https://upstream.example/one
  tag: v1.0
  commit: {commit}
  script: {script}
  program: bin/one
  variable: ONE
  tests: [tests/none.py]
"""
SCRIPT = 'git -C "$1" cat-file -e "$2:file" && mkdir -p "$3/bin" && : >"$3/bin/one"\n'


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", f"{folder}", *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("changed", "options", "code"),
    [(False, [], 0), (True, [], 1), (True, ["--if-available"], 0)],
)
def test_a_source_counts_by_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool, options: list[str], code: int
) -> None:
    source = tmp_path / "sources/one"
    source.mkdir(parents=True)
    (source / "file").write_text("source\n")
    git(source, "init", "--quiet")
    git(source, "add", "file")
    git(source, "commit", "--quiet", "-m", "one")
    commit = git(source, "rev-parse", "HEAD")
    if changed:
        (source / "file").write_text("another\n")
        git(source, "commit", "--quiet", "-am", "two")
    git(source, "tag", "v1.0")
    script = tmp_path / "build.sh"
    script.write_text(SCRIPT)
    recipes = tmp_path / "recipes.yml"
    recipes.write_text(RECIPE.format(commit=commit, script=script))
    tested: list[str] = []

    def test(name: str, _recipe: object) -> bool:
        tested.append(name)
        return False

    monkeypatch.setattr(counterparts, "RECIPES", recipes)
    monkeypatch.setattr(counterparts, "_test", test)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PROOFMARK_COUNTERPARTS", f"{tmp_path}/cache")
    assert counterparts.main(["--sources", f"{source.parent}", *options]) == code
    assert (tmp_path / "cache/one-v1.0/bin/one").exists() is not changed
    assert counterparts.main(["--sources", f"{tmp_path}/none", *options]) == code
    assert tested == ([] if changed else ["one", "one"])  # the second time from the cache


def test_each_test_that_needs_a_counterpart_is_one_of_its_recipe() -> None:
    named = [
        path
        for recipe in load(counterparts.RECIPES, counterparts.Recipes).root.values()
        for path in recipe.tests
    ]
    skips = tomllib.loads((ROOT / "tests/skips.toml").read_text())["skip"]
    skipped = (each["test"] for each in skips if "make counterparts" in each["missing"])
    needing = {name.partition("::")[0] for name in skipped}
    assert needing == set(named)
    assert all((ROOT / path).is_file() for path in named)
