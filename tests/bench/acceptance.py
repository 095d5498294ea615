"""The cost of an acceptance of thousands of nodes for the controller, without the measurements.

  python -m tests.bench.acceptance --nodes 8437

The playbooks, roles and commands are the real ones. The nodes are stubs: a small program replaces
ssh and prints the reports of a node. The stage run is a stub too: ``stage execute`` does nothing,
so there are no results. The processor time is that of all processes. The part of the stubs is
printed, and how often they were started.
The bench fails if the play has another end than the verdict that no step was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.folders import ROOT
from tests.roles.kit import SHARED

INVALID = 2
"""The exit code of the play: no step was measured."""
NODE = r"""
#include <stdio.h>
#include <string.h>
static char text[1 << 20];
/* node NAME: reads a script, and prints its output on a node. */
int main(int count, char **word) {
    size_t size = fread(text, 1, sizeof text - 1, stdin);
    text[size] = 0;
    if (count < 2) return 1;
    char file[4096];
    snprintf(file, sizeof file, "%s.starts", word[0]);
    FILE *starts = fopen(file, "a");
    if (starts) fputs("x", starts), fclose(starts);
    if (strstr(text, "proofmark-probe 1 mode")) {
        puts("proofmark-probe 1 mode\n=== boot\n| id: 1\n| clock: 1\n=== numa");
        puts("| node0 cpus: 0-271\n| node0 memory_kb: 98563072");
        puts("| node1 cpus: \n| node1 memory_kb: 16777216");
        puts("=== smbios\n! smbios: a stub\n=== end");
        return 0;
    }
    if (!strstr(text, "proofmark-probe 1 scratch")) return 0;
    char mark[256] = "", *at = strstr(text, " -r ");
    if (!at || at > strchr(text, '#')) at = strstr(text, " -k ");
    if (!at || at > strchr(text, '#')) at = 0;
    if (at) sscanf(at + 4, "%255s", mark);
    printf("proofmark-probe 1 scratch\n=== host\n| hostname: %s\n| user: root\n", word[1]);
    puts("=== directory\n| path: /PFS/proofmark\n| nearest: /PFS/proofmark\n| device: 77");
    puts("| root_device: 1\n| available: 9000000000000 4096\n=== mount");
    puts("| mgs@o2ib:/fs /PFS lustre rw,flock 0 0\n=== quota\n! quota: no such tool: quota");
    puts(at ? "=== write\n| result: ok" : "=== write\n! write: not tried");
    if (at) printf("=== layout\n| stripe_count: 1\n=== shared\n| %s\n", mark);
    puts("=== end");
    return 0;
}
"""
COMMAND = """#!/bin/sh
verb=
for word; do
    case $word in -*) ;; stage) verb="stage ";; *) verb=$verb$word; break;; esac
done
[ "$verb" != "stage execute" ] || exit 0
{proofmark} "$@"
code=$?
{{ echo "$verb"; times; }} >>{log}
exit $code
"""
"""Runs a command and logs its processor time, with that of its children."""


@dataclass(frozen=True)
class Cost:
    """The cost of an acceptance.

    Attributes:
        starts: the processes that were started on nodes.
        stub_s: the part of the stubs of nodes.
    """

    nodes: int
    starts: int
    wall_s: float
    cpu_s: float
    stub_s: float
    memory_mb: float
    commands: dict[str, float]


def make(folder: Path, nodes: int) -> Path:
    """Make a checkout whose only site has `nodes` Xeon Phi nodes; return its Python."""
    kit = folder / "kit"
    for name in (*SHARED, "benchmarks", "environments"):
        source = ROOT / name
        kit.mkdir(exist_ok=True)
        (kit / name).symlink_to(source)
    for name in ("roles", "playbooks", "plugins", "galaxy.yml"):
        (kit / name).unlink()
        where = ROOT / name
        if where.is_dir():
            # playbooks/collections leads back to the checkout: a copy that follows it has no end.
            shutil.copytree(where, kit / name, symlinks=True)
        else:
            shutil.copy(where, kit / name)
    link = kit / ".ansible/collections/ansible_collections/proofmark/kit"
    link.parent.mkdir(parents=True)
    link.symlink_to(kit)
    stub = folder / "node"
    (folder / "node.c").write_text(NODE)
    subprocess.run(["gcc", "-O1", "-o", stub, folder / "node.c"], check=True)
    facts = yaml.safe_load(
        (ROOT / "inventory/nurion/group_vars/knl/partition.yml").read_text(encoding="utf-8")
    )["partition"]
    programs = {"prefix": "/opt", "version": "1", "programs": {}}
    facts |= {
        "provision_from": "preinstalled",
        "preinstalled": {
            "hpl": {**programs, "programs": {"xhpl": "/bin/true"}},
            "stream": {**programs, "programs": {"stream_c": "/bin/true"}},
            "ior": {**programs, "programs": {"ior": "/bin/true"}},
            "osu-micro-benchmarks": {**programs, "programs": {"osu_bw": "/bin/true"}},
        },
    }
    facts["modes"] = {"quadrant-flat": facts["modes"]["quadrant-flat"]}
    facts["firmware"] = {
        "back_end": "manual",
        "attributes": {"cluster": "Cluster Mode", "memory": "Memory Mode"},
        "remote_shell": [str(stub), "{node}"],
    }
    group = kit / "inventory/many/group_vars/knl"
    group.mkdir(parents=True)
    variables = {"partition": facts, "ansible_connection": "local"}
    (group / "partition.yml").write_text(yaml.safe_dump(variables))
    hosts = {"compute": {"children": {"knl": {"hosts": {f"knl[0001:{nodes:04d}]": None}}}}}
    (kit / "inventory/many/hosts.yml").write_text(yaml.safe_dump({"all": {"children": hosts}}))
    return _python(folder)


def _python(folder: Path) -> Path:
    """Make a copy of this environment in which ``proofmark stage execute`` does nothing."""
    prefix = Path(sys.prefix)
    copy = folder / "venv"
    (copy / "bin").mkdir(parents=True)
    (copy / "lib").symlink_to(prefix / "lib")
    shutil.copy(prefix / "pyvenv.cfg", copy / "pyvenv.cfg")
    python = copy / "bin/python"
    python.symlink_to(Path(sys.executable).resolve())
    stub = copy / "bin/proofmark"
    paths = {"proofmark": prefix / "bin/proofmark", "log": folder / "commands"}
    stub.write_text(COMMAND.format_map({name: shlex.quote(f"{paths[name]}") for name in paths}))
    stub.chmod(0o755)
    return python


def measure(nodes: int, log: Path | None = None) -> Cost:
    """Run ``acceptance.yml`` once.

    Raises:
        SystemExit: the play did not reach its end, or a node failed before the stage run.
    """
    with tempfile.TemporaryDirectory(prefix="proofmark-many-") as name:
        folder = Path(name)
        python = make(folder, nodes)
        command = [str(python), "-m", "ansible", "playbook", "acceptance.yml"]
        call = [*command, "-i", "inventory/many", "-l", "knl", "-e", "suite=node"]
        call += ["-e", "accept_unjudged=true"]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "ANSIBLE_FORCE_COLOR": "0"}
        start, before = time.monotonic(), _cpu_s()
        done = subprocess.run(
            call,
            cwd=folder / "kit",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        wall, cpu = time.monotonic() - start, _cpu_s() - before
        if log:
            log.write_text(done.stdout + done.stderr)
        if mistake := mistake_of(done.returncode, folder / "kit/runs/latest-many/verdict.json"):
            raise SystemExit(f"{done.stdout[-3000:]}{done.stderr}acceptance.yml: {mistake}")
        commands = _commands((folder / "commands").read_text())
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        starts = (folder / "node.starts").stat().st_size
        stub = _stub_s(folder / "node", starts)
    return Cost(nodes, starts, wall, cpu, stub, memory, commands)


def mistake_of(code: int, verdict: Path) -> str:
    """Return how the end of the play differs from that without a measured step; "" if not."""
    if not verdict.exists():
        return f"found the exit code {code} and no verdict; accepted: a verdict"
    found = json.loads(verdict.read_text())
    stages = [f"{fault['stage']}: {fault['text']}" for fault in found.get("stage_faults", ())]
    if (code, stages, found["coverage"]["measured"]) == (INVALID, [], 0):
        return ""
    return f"found the exit code {code}, {stages}; accepted: {INVALID}, no stage that failed"


def _commands(text: str) -> dict[str, float]:
    """Return the processor time of each command in seconds, from the output of `times`."""
    seconds: dict[str, float] = {}
    lines = text.splitlines()
    # `times` prints two lines. The second line is that of the children.
    for name, children in zip(lines[::3], lines[2::3], strict=True):
        parts = [each.removesuffix("s").split("m") for each in children.split()]
        spent = sum(60 * float(whole) + float(rest) for whole, rest in parts)
        seconds[name] = seconds.get(name, 0.0) + spent
    return seconds


def _stub_s(stub: Path, starts: int) -> float:
    """Return the processor time of so many starts of the stub, in seconds."""
    before = _cpu_s()
    loop = f'n=0; while [ $n -lt {starts} ]; do "$1" knl </dev/null; n=$((n + 1)); done'
    subprocess.run(["sh", "-c", loop, "sh", stub], check=True)
    return _cpu_s() - before


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=8437)
    options.add_argument("--log", type=Path, help="the file for the output of the playbooks")
    chosen = options.parse_args(arguments)
    print(sentence(measure(chosen.nodes, chosen.log)))


def sentence(cost: Cost) -> str:
    """Return the cost in a sentence."""
    return (
        f"acceptance.yml, {cost.nodes} nodes, run stage stubbed: {cost.starts:,} starts on nodes, "
        f"{cost.cpu_s:.1f} s of CPU "
        f"({cost.stub_s:.1f} s of it for the stubs of nodes), {cost.wall_s:.1f} s, "
        f"{cost.memory_mb:.0f} MB at most\n"
        + ", ".join(f"{name} {spent:.1f} s" for name, spent in cost.commands.items())
    )


if __name__ == "__main__":
    main()
