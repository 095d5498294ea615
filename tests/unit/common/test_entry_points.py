"""Plug-ins: those of the kit, and those that a site installs beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit
from tests.folders import ROOT

from proofmark.cli.check import site_checks
from proofmark.common import plugins
from proofmark.common.errors import BadInput
from proofmark.common.plugins import Plugins
from proofmark.jobs import launchers
from proofmark.jobs.launcher import LAUNCHERS, launcher
from proofmark.machine.bmc.back_end import BACK_ENDS
from proofmark.machine.scheduler import SCHEDULERS
from proofmark.site.execution import LaunchSettings
from proofmark.software.installed import ProvisionRequest
from proofmark.software.provider import PROVIDERS, check_provider, packages_at

LAUNCHER = """
from proofmark.jobs.launcher import Launcher

class Own(Launcher):
    def lines(self, launch):
        return ["exec own-launcher"]

class Unfinished(Launcher):
    pass

def function():
    return None
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package of a site, with its entry points."""
    (tmp_path / "site_launcher.py").write_text(LAUNCHER)
    info = tmp_path / "site_launcher-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-launcher\nVersion: 1.0\n")
    words = {"own": "Own", "unfinished": "Unfinished", "function": "function", "plain": "Own"}
    words["absent"] = "Absent"
    lines = [f"{name} = site_launcher:{target}" for name, target in words.items()]
    lines += ["no-module = no_such_module:Own", "broken = site_broken:Own"]
    (tmp_path / "site_broken.py").write_text("1 / 0\n")
    text = "\n".join(["[proofmark.jobs.launchers]", *lines]) + "\n"
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "site_launcher", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "kind",
    [SCHEDULERS, LAUNCHERS, BACK_ENDS, PROVIDERS],
    ids=lambda kind: kind.package,
)
def test_every_name_of_the_kit_is_one_plug_in(kind: Plugins[object]) -> None:
    classes = [kind.get(name) for name in kind.names()]
    assert len(set(classes)) == len(classes) > 2
    assert all(issubclass(each, kind.base) for each in classes)


def test_a_launcher_of_the_kit_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LAUNCHER.replace("class Own(Launcher):", "class Own(Launcher):\n    name = 'another'")
    (tmp_path / "another_file.py").write_text(text)
    monkeypatch.setattr(launchers, "__path__", [*launchers.__path__, f"{tmp_path}"])
    monkeypatch.setattr(plugins, "_modules", plugins._modules.__wrapped__)
    assert "another" in LAUNCHERS.names()
    assert type(launcher("another")).__name__ == "Own"


@pytest.mark.usefixtures("installed")
def test_a_site_adds_its_own_launcher_without_a_change_of_the_kit() -> None:
    assert "own" in LAUNCHERS.names()
    assert type(launcher("own")).__name__ == "Own"


@pytest.mark.usefixtures("installed")
def test_the_kits_own_plug_in_is_not_replaced() -> None:
    assert launcher("plain").__class__.__module__ == "proofmark.jobs.launchers.mpi"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["unfinished", "function"])
def test_a_plug_in_that_is_no_launcher_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not a concrete subclass; accepted: a concrete"):
        launcher(name)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absent", "site_launcher:Absent: AttributeError"),
        ("no-module", "no_such_module:Own: ModuleNotFoundError"),
        ("broken", "site_broken:Own: ZeroDivisionError"),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_refused(name: str, problem: str) -> None:
    with pytest.raises(BadInput, match=f"found {problem}: .*; accepted: a concrete subclass"):
        launcher(name)


@pytest.mark.usefixtures("installed")
def test_validate_checks_the_plug_ins_of_a_site(tmp_path: Path) -> None:
    def check(name: str) -> None:
        site = make_kit(tmp_path / name).site()
        launch = LaunchSettings(launcher=name)
        partition = site.partition.model_copy(update={"launch": launch})
        checks = site_checks(ROOT)
        checks["launch.launcher"](site.model_copy(update={"partition": partition}))

    check("own")
    with pytest.raises(BadInput, match="found site_broken:Own: ZeroDivisionError"):
        check("broken")
    with pytest.raises(BadInput, match="found 'owm', did you mean 'own'"):
        check("owm")


PROVIDER = """
from proofmark.api import Installed, Provider

class Modules(Provider):
    def missing(self):
        return []

    def install(self):
        packages = {
            name: {"version": "7", "prefix": "/opt", "programs": {}}
            for name in self.request.programs
        }
        return Installed(origin="site-modules", packages=packages)
"""


def test_a_site_adds_its_own_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = make_kit(tmp_path / "kit")
    (tmp_path / "site_provider.py").write_text(PROVIDER)
    info = tmp_path / "site_provider-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-provider\nVersion: 1.0\n")
    group = "[proofmark.software.providers]"
    (info / "entry_points.txt").write_text(f"{group}\nsite-modules = site_provider:Modules\n")
    with pytest.raises(BadInput, match="provision_from: found 'site-modules'"):
        check_provider("site-modules", ROOT)  # the control
    monkeypatch.syspath_prepend(str(tmp_path))
    check_provider("site-modules", ROOT)
    site = kit.site()
    partition = site.partition.model_copy(update={"provision_from": "site-modules"})
    site = site.model_copy(update={"partition": partition})
    assert packages_at(ROOT, site) is None  # it lists no packages: nothing is known to be lacking
    request = ProvisionRequest(ROOT, "local", {"fake": ["fake"]}, tmp_path)
    installed = PROVIDERS.get("site-modules")(request).install()
    assert (installed.origin, list(installed.packages)) == ("site-modules", ["fake"])


def test_without_the_package_there_is_no_such_launcher() -> None:
    """The control: the name comes from the entry points alone."""
    with pytest.raises(BadInput, match="'own'"):
        launcher("own")
