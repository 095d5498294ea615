"""Each command that takes a run, on each kind of run: no line ends with an internal error."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.fixtures.fleet import fleet_run, write_inventory
from tests.fixtures.verbs import World, world
from tests.folders import ROOT

from proofmark.cli.main import INTERNAL_ERROR
from proofmark.cli.parser import COMMANDS, command_of
from proofmark.packages.twin.twin_files import SimulatedRun, TwinFacts

LINES = """\
report ONE --language ko
report ONE --json --strict
status ONE --steps
status ONE --json
status ONE --plan
verdict ONE
verdict ONE --all
verdict ONE --json
verdict ONE --claims
verdict ONE RUN --claims --json
trend ONE
trend ONE RUN --nodes
export ONE --format csv -o NEW.csv
export ONE --format junit -o NEW.xml
export ONE --format nhc -o NEW.nhc
sign ONE --key KEY
verify ONE --signers SIGNERS
baseline accept ONE SITED --signers SIGNERS --label us --reason new
baseline accept ONE SITED --signers SIGNERS --reason new
baseline show ONE SITED
baseline export ONE SITED -o NEW.yml
baseline remove ONE SITED
modes check ONE SITED
modes enter ONE SITED --confirm-reboot
modes verify ONE SITED
modes restore ONE SITED --confirm-reboot
modes status ONE SITED
scratch check ONE SITED
scratch verify ONE SITED
scratch unmount ONE SITED
scratch clean ONE SITED
telemetry ONE SITED --once --credentials LOGIN
install ONE SITED --from preinstalled --check
install ONE SITED --from preinstalled
stage record-software ONE --installed | PROBES
stage check-programs ONE SITED --program /bin/sh
stage gate-decide ONE --accept-unjudged
stage collect ONE
rerun ONE 99
stage execute ONE --scripts
plan SITED --runs RUNS --create --run-id one
plan SITED --suite quick --runs NEW --create --baseline one --accept-unjudged
acceptance judge -i DEAL --run ONE -o NEW
acceptance waive -i DEAL --run ONE --item 4.2 --by ida@buyer --reason cable --key KEY
twin -i ROOT/inventory/p595 -l p595 --suite twin-p5 --measured ONE --plan
adopt ONE --accept --runs NEW
verdict ONE --json
"""
"""`ONE` is the run, and SITED its site; a line can have a standard input."""


class Runs:
    """Makes a run of each kind in an own checkout; sets the options of its site."""

    def __init__(self, made: World, name: str) -> None:
        self.made, self.names = made, made.place(name)
        self.names["SITED"] = "-i SITE -l local"
        self.root = Path(self.names["RUNS"])

    def call(self, words: str, stdin: str = "") -> tuple[int, str]:
        """Return the exit code of a command line, and what it printed."""
        return self.made.call(words.replace("SITED", self.names["SITED"]), self.names, stdin)

    def _made(self, words: str) -> Path:
        code, printed = self.call(f"{words} --runs RUNS --run-id one")
        assert code == 0, printed
        return self.root / "one"

    def measured(self) -> Path:
        return Path(self.names["RUN"])

    def adopted(self) -> Path:
        """Without a site: that of the commands is the folder of the vendor."""
        self.names["SITED"] = "-i OWN/imported -l imported"
        write_inventory(Path(self.names["OWN"]) / "imported", ["n1"])
        return self._made("adopt VENDOR --case fake=*.out --nodes n1")

    def adopted_at_a_site(self) -> Path:
        return self._made("adopt VENDOR --case fake=*.out --nodes HOST SITED")

    def twin(self) -> Path:
        facts = TwinFacts(selector="mpich", selectors=("mpich",), settings={}, assumptions=())
        rates = {f"n{number}": [100.0 + number] * 3 for number in range(1, 5)}
        folder = Path(self.names["OWN"]) / "twin"
        simulated = SimulatedRun("<platform/>", facts)
        predicted = {"origin": "predicted"}
        run = fleet_run(folder, rates, run_id="one", partition=predicted, twin=simulated)
        write_inventory(folder / "inventory", [*rates])
        self.names["SITED"] = f"-i {folder}/inventory -l local"
        return run.folder

    def rolling(self) -> Path:
        self.names["SITED"] = "-i PHI -l phi"
        return self._made("plan SITED --suite quick --rolling node --create")

    def stability(self) -> Path:
        """Planned, with jobs of the program of the checkout."""
        cases = Path(self.names["OWN"]) / "benchmarks"
        shutil.copyfile(ROOT / "benchmarks/stability.yml", cases / "stability.yml")
        for name, added in (("suites", {"title": "Stability"}), ("fake", {})):
            path = cases / f"{name}.yml"
            document = yaml.safe_load(path.read_text())
            document["suites"]["stability"] = added
            path.write_text(yaml.safe_dump(document))
        terms = "--stability-days 1min --stability-load 1"
        return self._made(f"plan SITED --suite stability {terms} --create")

    def without_outputs(self) -> Path:
        run = self.measured()
        for name in ("evidence", "workdir", "queue"):
            shutil.rmtree(run / name)
        return run

    def of_an_older_version(self) -> Path:
        return self._stated({"format": 4})

    def _stated(self, changes: dict[str, object]) -> Path:
        """Change ``run.json``, as the kit would have written it."""
        run = self.measured()
        stated = json.loads((run / "run.json").read_text())
        digest = hashlib.sha256((run / "plan.json").read_bytes()).hexdigest()
        stated["inputs"]["plan.json"] = digest
        stated |= {**changes, "sha256": ""}
        del stated["sha256"]
        text = json.dumps(stated, separators=(",", ":"), ensure_ascii=False)
        stated["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (run / "run.json").write_text(json.dumps(stated))
        return run


KINDS: dict[str, Callable[[Runs], Path]] = {
    name: each for name, each in vars(Runs).items() if name[0] != "_" and name != "call"
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("kinds")) as yielded:
        yield yielded


@pytest.mark.rest("40 commands on a site of its own")
@pytest.mark.parametrize(
    "kind",
    [
        each if each == "adopted_at_a_site" else pytest.param(each, marks=pytest.mark.soak)
        for each in KINDS
    ],
)
def test_no_command_ends_with_an_internal_error(made: World, kind: str) -> None:
    runs = Runs(made, kind)
    runs.names["ONE"] = f"{KINDS[kind](runs)}"
    wrong: list[str] = []
    for line in LINES.splitlines():
        words, _, stdin = line.partition(" | ")
        code, printed = runs.call(words, stdin)
        if code == INTERNAL_ERROR or code < 0 or "Traceback" in printed:
            wrong.append(f"{words}: {code}: {printed}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_with_a_run_has_a_line(name: str) -> None:
    parser = ArgumentParser(add_help=False)
    command_of(name).arguments(parser)
    if any(each.dest == "folder" and each.metavar == "RUN" for each in parser._actions):
        assert re.search(f"^{name} .*ONE", LINES, re.MULTILINE)
