"""Rehearse an acceptance on a virtual cluster: make rehearsal [SUITE=…] [FAULT=…] [KEEP=1].

The exit code is that of the playbooks. It is 3 for options that exclude each other, 5 if the
playbooks did not name the injected fault, 130 if the rehearsal was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import FrameType
from typing import Any

from tests.emulators.vcluster.cluster import node_names
from tests.folders import ROOT
from tests.rehearsal.ahead import duration_line, look_ahead, refuse
from tests.rehearsal.faults import FAULTS, Fault
from tests.rehearsal.kept import HELD, end, hold, read_state, relay
from tests.rehearsal.play import Played, command, limit_of, play
from tests.rehearsal.room import Room
from tests.rehearsal.shapes import SHAPES

from proofmark.common.errors import BadInput

LONGEST = 40
"""Maximum length of the temporary folder, so that the path of an ssh socket is short enough."""
BAD_INPUT, NOT_NAMED, STOPPED = 3, 5, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    options = _parser().parse_args(arguments)
    if os.geteuid() != 0:
        print("only root can make namespaces and mounts; nothing was changed", file=sys.stderr)
        return BAD_INPUT
    if options.end:
        return end()
    if state := options.keep and read_state():
        print(f"{state['folder']}: a virtual cluster is kept: make rehearsal-end", file=sys.stderr)
        return BAD_INPUT
    if options.keep and HELD not in os.environ:
        return relay(sys.argv[1:] if arguments is None else arguments)
    fault = FAULTS[options.fault] if options.fault else None
    _choose(options, fault)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        _look_ahead(options)
        return _rehearse(options, fault)
    except BadInput as error:
        print(f"{error}\nnothing was changed", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return STOPPED


def _choose(options: argparse.Namespace, fault: Fault | None) -> None:
    """Set the options that were not given: by the fault, and by the partition."""
    options.limit = options.limit or (fault.limit if fault else "knl")
    options.suite = options.suite or (fault.suite if fault else "rehearsal")
    options.nodes = options.nodes or SHAPES[options.limit].nodes


def _look_ahead(options: argparse.Namespace) -> None:
    """Print the expected duration; refuse options with which the fault is not injected."""
    names = node_names(SHAPES[options.limit].prefix, options.nodes)
    ahead = look_ahead(
        options.checkout,
        options.limit,
        options.suite,
        options.nodes,
        one_mode=options.one_mode,
        more=options.more,
        names=names,
        selected=limit_of(SHAPES[options.limit], names),
    )
    if options.fault:
        refuse(options.fault, FAULTS, ahead)
    _print(duration_line(ahead))


def _rehearse(options: argparse.Namespace, fault: Fault | None) -> int:
    began = time.monotonic()
    with TemporaryDirectory(prefix="proofmark-rehearsal-", dir=place()) as folder:
        cluster = Room(Path(folder), options.limit, options.nodes, fault, [options.checkout])
        with cluster as room:
            _print(f"{len(room.names)} virtual nodes after {time.monotonic() - began:.1f} s")
            if fault:
                what = fault.what.format(node=room.victim, server=room.server)
                _print(f"fault {options.fault}: {what}")
            call = command(room, options.suite, modes=not options.one_mode, more=options.more)
            _print(" ".join(call))
            played = play(room, options.checkout, call, _print)
            if options.keep and not played.stopped:
                hold(room, options.checkout, _outcome(options, fault, cluster.victim, played))
                return 0
    _print(f"the virtual cluster has ended; {time.monotonic() - began:.0f} s in all")
    return _outcome(options, fault, cluster.victim, played)


def _outcome(options: argparse.Namespace, fault: Fault | None, victim: str, played: Played) -> int:
    """Print what the verdict names and where the report is; return the exit code."""
    run = (options.checkout / "runs/latest-rehearsal").resolve()
    judged = (run / "verdict.json").exists() and f" {run.name}" in f" {played.output}"
    if judged and not played.stopped:
        named = named_by(json.loads((run / "verdict.json").read_text()))
        played = replace(played, output="\n".join([played.output, *named]))
        for line in (*named, f"the report: {run}/report.html"):
            _print(line)
    return exit_code(options.fault, fault, victim, played, judged=judged)


def place() -> str:
    """Return the folder for the files of a rehearsal: the temporary folder if it fits, else /tmp.

    The sockets of ssh need a short path. The address of a JuiceFS must not contain a blank.
    """
    folder = gettempdir()
    return folder if len(folder) <= LONGEST and " " not in folder else "/tmp"


def named_by(verdict: Mapping[str, Any]) -> list[str]:
    """Return the bad nodes, broken file systems and jobs that ended early, one line each."""
    bad = [f"bad node: {node['node']}: {node['likely']}" for node in verdict["fleet"]["nodes"]]
    faults = [fault["line"] for fault in verdict["file_systems"]]
    elements = verdict.get("links", {"elements": []})["elements"]
    slow = [f"slow element: {element['name']}" for element in elements]
    return [*bad, *slow, *faults, *verdict["coverage"]["stopped"]]


def exit_code(
    name: str | None, fault: Fault | None, victim: str, played: Played, *, judged: bool = True
) -> int:
    """Return the exit code; print whether the fault was named, and whether there is a verdict."""
    if played.stopped:
        return STOPPED
    if fault is None:
        return played.code
    message = fault.message.format(node=victim)
    if not judged:
        _print(f"fault {name}: the playbooks ended before they judged the run")
    named = played.printed(message) and (played.code == 0) == fault.ends_well
    _print(f"fault {name}: {'' if named else 'NOT '}named: {message} (exit code {played.code})")
    return played.code if named else NOT_NAMED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal", description=__doc__)
    parser.add_argument("--limit", choices=sorted(SHAPES), help="which partition")
    parser.add_argument("--suite", help="without it: that of the fault, or rehearsal")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--nodes", type=int, choices=range(2, 17), metavar="2…16")
    parser.add_argument("--keep", action="store_true", help="the cluster stays after the run")
    parser.add_argument("--end", action="store_true", help="end a cluster that was kept")
    parser.add_argument("--one-mode", action="store_true", help="without confirm_reboot=true")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose playbooks")
    parser.add_argument("more", nargs="*", help="further arguments of ansible-playbook, behind --")
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
