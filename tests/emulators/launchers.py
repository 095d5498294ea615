#!/usr/bin/env python3
"""Emulates flux run and the mpiexec of PALS: a line of JSON for each rank, and no process.

The program is called by the name of a command. It refuses what the manuals do not accept: unknown
options, and task maps without a node of the job.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

FLUX_RUN = {
    "nodes": r"[1-9]\d*",
    "ntasks": r"[1-9]\d*",
    "tasks-per-node": r"[1-9]\d*",
    "cores": r"[1-9]\d*",
    "exclusive": "",
    "requires": r"host:.+",
    "taskmap": r"hostfile:.+",
}
SHELL_OPTIONS = {
    "cpu-affinity": r"off|map:\d+(,\d+)*(;\d+(,\d+)*)*",
    "pmi": r"off|simple|pmix|cray-pals",
    "exit-on-error": "",
}
PALS = {
    "-n": r"[1-9]\d*",
    "--ppn": r"[1-9]\d*",
    "--hostfile": r".+",
    "--envall": None,
    "--cpu-bind": r"none|list:\d+(,\d+)*(:\d+(,\d+)*)*",
    "--pmi": r"cray|pmix|none",
}
"""The options of PALS, with the form of their values; None: an option without a value."""


class RefusedError(Exception):
    """The real command refuses this."""


def show(rank: int, host: str, cpus: Sequence[int] | None, words: Sequence[str]) -> None:
    print(json.dumps({"rank": rank, "host": host, "cpus": cpus, "words": words}))


def flux(verb: str, *words: str) -> None:
    """Emulate flux run, and flux job submit of what ``--dry-run`` prints."""
    if (verb, *words) == ("job", "submit"):
        job = json.load(sys.stdin)
        total = job["tasks"][0]["count"].get("total", 0)
        Path("submitted").write_text(json.dumps([total, *job["tasks"][0]["command"]]))
        print("f23")
        return
    if (verb, *words) == ("job", "attach", "f23"):
        total, *words = json.loads(Path("submitted").read_text())
        start_by_flux(words, total)
        return
    if verb != "run":
        raise RefusedError(f"unknown command: {verb}")
    if "--dry-run" in words:
        request = [word for word in words if word != "--dry-run"]
        task = {"command": request, "slot": "task", "count": {"per_slot": 1}}
        print(json.dumps({"tasks": [task]}))
        return
    start_by_flux(words, 0)


def start_by_flux(words: Sequence[str], total_of_request: int) -> None:
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("--"):
        name, _, value = rest.pop(0).removeprefix("--").partition("=")
        accepted = FLUX_RUN
        if name == "setopt":
            name, _, value = value.partition("=")
            accepted = SHELL_OPTIONS
        if name not in accepted or not re.fullmatch(accepted[name], value):
            raise RefusedError(f"unrecognized arguments: --{name}={value}")
        options[name] = value
    if {"ntasks", "tasks-per-node"} <= options.keys():
        raise RefusedError("per-resource options can't be used with per-task options")
    if {"ntasks", "cores"} <= options.keys():
        raise RefusedError("per-resource options can't be used with per-task options")
    hosts = list(NodeSet(options["requires"].removeprefix("host:").replace("@", "")))
    if len(hosts) != int(options["nodes"]):
        raise RefusedError(f"{options['nodes']} nodes of {hosts}")
    each = int(options.get("tasks-per-node", 0))
    total = total_of_request or int(options.get("ntasks", each * len(hosts)))
    if total < len(hosts):
        raise RefusedError("more nodes than tasks")
    # The block distribution, or one host of the file for each task.
    more, fewer = total % len(hosts), total // len(hosts)
    places = [host for n, host in enumerate(hosts) for _ in range(fewer + (n < more))]
    if file := options.get("taskmap", "").removeprefix("hostfile:"):
        listed = [line.replace("@", "") for line in Path(file).read_text().splitlines()]
        if set(hosts) - set(listed):
            raise RefusedError("taskmap: a host of the job is not in the file")
        places = [listed[number % len(listed)] for number in range(total)]
    lists = options["cpu-affinity"].removeprefix("map:").split(";")
    for number, host in enumerate(places):
        local = places[:number].count(host)
        bound = options["cpu-affinity"] != "off"
        cpus = [int(cpu) for cpu in lists[local % len(lists)].split(",")] if bound else None
        show(number, host, cpus, rest)


def mpiexec(*words: str) -> None:
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)
        form = PALS.get(name, "")
        value = "" if form is None else rest.pop(0)
        if form is not None and not (form and re.fullmatch(form, value)):
            raise RefusedError(f"no such option: {name} {value}")
        options[name] = value
    listed = Path(options["--hostfile"]).read_text().splitlines()
    total, each = int(options["-n"]), int(options["--ppn"])
    if total > each * len(listed):
        raise RefusedError(f"{total} ranks on {len(listed)} hosts with {each} each")
    lists = options["--cpu-bind"].removeprefix("list:").split(":")
    for number in range(total):
        bound = options["--cpu-bind"] != "none"
        cpus = [int(cpu) for cpu in lists[number % each].split(",")] if bound else None
        show(number, listed[number // each], cpus, rest)


def main() -> int:
    try:
        command: Callable[..., None] = globals()[Path(sys.argv[0]).name]
        command(*sys.argv[1:])
    except RefusedError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
