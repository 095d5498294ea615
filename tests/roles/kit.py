"""A small kit for tests: the real roles, plugins and playbooks, with cases that take no time."""

from __future__ import annotations

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.fixtures.place import open_kit
from tests.folders import ROOT
from tests.forks import tools
from tests.processes import proc_files, running

LONGEST_S = 900
"""The time limit of a play. The longest takes half a minute on a quiet machine."""
DECLARED: dict[str, Any] = {
    "node": {
        "cpu_model": "a processor",
        "architecture": "x86_64",
        "topology": "pack:1 [numa(memory=4GiB)] l3:1(size=8MiB) core:2 pu:1",
    },
    "environment": "local",
    "provision_from": "system",
    "scheduler": "none",
    "scratch": {"path": "/tmp"},
}
"""The facts of a partition whose topology is declared."""
SHARED = [
    "analysis",
    "playbooks",
    "plugins",
    "roles",
    "acceptance.yml",
    "ansible.cfg",
    "galaxy.yml",
]

NAP = r"""
title: A program that sleeps and prints a rate
package: shell
program: sh
launch: process
arguments: [-c, "sleep {seconds}; echo nap {number}; echo rate: 100; echo done"]
sweep: {number: "{upto(2)}", seconds: 0}
cost: {seconds: "{seconds}", bytes: "{64 * MiB}"}
suites: {quick: {}, slow: {sweep: {seconds: [0, 4]}}}
metrics:
  rate: {unit: MB/s, better: higher, bound: universal, what: nothing at all}
read:
  finds: rate
  benchmark: nap
  parameters: {number: int}
  starts: 'nap \d+'
  facts: ['nap (?P<number>\d+)']
  keys: {'(?P<key>rate):(?P<value>.*)': {rate: rate}}
  require: {the end: done}
references:
  - metric: rate
    kind: contract
    value: 90
    unit: MB/s
    at_least: 0.9
    source: the output of the case
"""
SUITES = """
suites:
  quick: {title: two naps of no time}
  slow: {title: two naps of no time and two of four seconds}
"""
SYSTEM = """
packages:
  shell: {apt: [dash], programs: {sh: /bin/sh}}
"""


@dataclass(frozen=True)
class Played:
    """Exit code and output of a run of ansible-playbook."""

    code: int
    output: str

    def printed(self, words: str) -> bool:
        """Return whether `words` were printed, however Ansible broke the lines."""
        return words in " ".join(self.output.split())

    @property
    def recap(self) -> dict[str, int]:
        """Return the counts of the last line of the recap, by word."""
        lines = self.output.partition("PLAY RECAP")[2].splitlines()
        words = [line for line in lines if " ok=" in line][-1].partition(":")[2].split()
        return {key: int(count) for key, _, count in (word.partition("=") for word in words)}

    @property
    def of_hosts(self) -> dict[str, dict[str, int]]:
        """Return the counts of each host in the recap that are not 0."""
        lines = self.output.partition("PLAY RECAP")[2].splitlines()[1:]
        pairs = (line.split(":", 1) for line in lines if "ok=" in line)
        return {
            host.strip(): {
                word: int(count) for word, count in re.findall(r"(\w+)=([1-9]\d*)", counts)
            }
            for host, counts in pairs
        }

    @property
    def failed_hosts(self) -> set[str]:
        """Return the hosts that failed in the recap."""
        return {host for host, counts in self.of_hosts.items() if "failed" in counts}


@dataclass(frozen=True)
class Kit:
    """A separate checkout, with the site `local` and a separate scratch directory."""

    folder: Path
    scratch: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def partition(self, **facts: Any) -> None:
        """Write the facts of the site's partition; `facts` are added to the usual ones."""
        path = self.folder / "inventory/local/group_vars/local/partition.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        usual = {
            "environment": "local",
            "provision_from": "system",
            "scheduler": "none",
            "scratch": {"path": str(self.scratch)},
        }
        path.write_text(yaml.safe_dump({"partition": {**usual, **facts}}))

    def settings(self, **options: Any) -> None:
        """Write options of roles into the inventory, in place of earlier ones."""
        path = self.folder / "inventory/local/group_vars/local/settings.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(options))

    def start(
        self, playbook: str, *arguments: str, command: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Start ansible-playbook in a new session, with the words of `command` before it.

        These words may be another Python or another user: then no fork takes the place of the
        start, and all users can read the programs. The caller waits for it:
        `tests.processes.running`.
        """
        folder = open_kit()[1] if command else tools()
        environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_FORCE_COLOR": "0",
            "COLUMNS": "200",
            **self.environment,
        }
        environment.pop("PYTHONUNBUFFERED", None)
        call = [*command, f"{folder / 'ansible-playbook'}", playbook]
        site = ["-i", "inventory/local", "-l", "local"] if "-i" not in arguments else []
        return subprocess.Popen(
            [*call, *arguments, *site],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def play(self, playbook: str, *arguments: str, command: tuple[str, ...] = ()) -> Played:
        """Run ansible-playbook to its end."""
        with running(self.start(playbook, *arguments, command=command)) as process:
            output, _ = process.communicate(timeout=LONGEST_S)
        return Played(process.returncode, output)

    def run(self) -> Path:
        """Return the folder of the newest run of all sites; one that is missing if none has one."""
        links = (path for path in (self.folder / "runs").glob("latest-*") if path.exists())
        missing = self.folder / "runs/none"
        return max(links, key=lambda link: link.lstat().st_mtime_ns, default=missing).resolve()

    def files(self) -> dict[str, tuple[int, int]]:
        """Return size and time of every file of the checkout and of scratch, except caches."""
        states = {}
        for top in (self.folder, self.scratch):
            for path in [top, *top.rglob("*")] if top.exists() else []:
                if "__pycache__" not in path.parts and path.parent != path:
                    state = path.lstat()
                    states[f"{path}"] = (state.st_size, state.st_mtime_ns)
        return states

    def verdict(self) -> dict[str, Any]:
        """Return verdict.json of the newest run."""
        content: dict[str, Any] = json.loads((self.run() / "verdict.json").read_text())
        return content

    def whens(self) -> dict[str, str]:
        """Return the text of each finished step's when.json, by step."""
        return {
            path.parent.parent.name: path.read_text()
            for path in self.run().glob("workdir/steps/*/execution-1/when.json")
        }


def make_kit(top: Path) -> Kit:
    """Make a kit in `top`, which every user may enter."""
    top.chmod(0o755)
    folder = top / "kit"
    ignored = shutil.ignore_patterns("__pycache__", "collections")
    for name in SHARED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    link = folder / ".ansible/collections/ansible_collections/proofmark/kit"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../..")
    (folder / "collections").symlink_to(".ansible/collections")
    (folder / "playbooks/collections").symlink_to("../.ansible/collections")
    for name, text in {
        "benchmarks/nap.yml": NAP,
        "benchmarks/suites.yml": SUITES,
        "environments/local/system.yml": SYSTEM,
        "inventory/local/hosts.yml": (ROOT / "inventory/local/hosts.yml").read_text(),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    # Python writes its bytecode at the first import; a test compares the files of the kit.
    compileall.compile_dir(folder / "plugins", quiet=1)
    # The run user reads the state of root, which is that of this kit only.
    made = Kit(folder, top / "scratch", {"PROOFMARK_STATE": f"{top / 'state'}"})
    made.partition()
    return made


def make_real_kit(top: Path) -> Kit:
    """Make a kit in `top` with the cases, environments and programs of the checkout."""
    kit = make_kit(top)
    for name in ("benchmarks", "environments", "requirements"):
        shutil.rmtree(kit.folder / name, ignore_errors=True)
        shutil.copytree(ROOT / name, kit.folder / name)
    (ROOT / ".provision").mkdir(exist_ok=True)
    (kit.folder / ".provision").symlink_to(ROOT / ".provision")
    text = (ROOT / "inventory/local/group_vars/local/partition.yml").read_text(encoding="utf-8")
    kit.partition(facts=yaml.safe_load(text)["partition"].get("facts", {}))
    return kit


def accept_disturbance(kit: Kit) -> None:
    """Let the cases of `kit` measure beside other work, which the machine of a test may have."""
    for path in (kit.folder / "benchmarks").glob("*.yml"):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name != "suites.yml":
            case["undisturbed"] = {"least_seconds": 3600}
            path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of live processes that name `folder`."""
    lines = []
    for path in proc_files("cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it has just ended
        if str(folder) in line:
            lines.append(line)
    return lines


def main() -> None:
    """Make the kit of a scenario of molecule: ``python -m tests.roles.kit FOLDER QUICK``.

    QUICK is JSON: the entry of the suite `quick` in the case.
    """
    folder, quick = sys.argv[1:]
    made = make_kit(Path(folder))
    case = {**yaml.safe_load(NAP), "suites": {"quick": json.loads(quick)}}
    (made.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (made.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: naps}}\n")


if __name__ == "__main__":
    main()
