"""Rehearse an acceptance on a virtual machine room: make rehearsal [SUITE=…] [FAULT=…].

Exit code: the playbooks' own; 3 for options that do not go together; 5 where a fault was injected
and they did not name it; 130 stopped.
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
from tests.rehearsal.play import Played, command, limit_of, play
from tests.rehearsal.room import Room
from tests.rehearsal.shapes import SHAPES

from proofmark.common.errors import BadInput

LONGEST = 40
"""Characters of a temporary folder below which a socket of ssh can be made."""
BAD_INPUT, NOT_NAMED, STOPPED = 3, 5, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    options = _parser().parse_args(arguments)
    if os.geteuid() != 0:
        print("only root can make namespaces and mounts; nothing was changed", file=sys.stderr)
        return BAD_INPUT
    fault = FAULTS[options.fault] if options.fault else None
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
        selected=limit_of(options.limit, names),
    )
    if options.fault:
        refuse(options.fault, FAULTS, ahead)
    _say(duration_line(ahead, options.checkout / "runs"))


def _rehearse(options: argparse.Namespace, fault: Fault | None) -> int:
    began = time.monotonic()
    with TemporaryDirectory(prefix="proofmark-rehearsal-", dir=place()) as folder:
        made = Room(Path(folder), options.limit, options.nodes, fault, [options.checkout])
        with made as room:
            _say(f"{len(room.names)} virtual nodes after {time.monotonic() - began:.1f} s")
            if fault:
                _say(f"fault {options.fault}: {fault.what.format(node=room.victim)}")
            call = command(room, options.suite, modes=not options.one_mode, more=options.more)
            _say(" ".join(call))
            played = play(room, options.checkout, call, _say)
    _say(f"the virtual cluster is gone; {time.monotonic() - began:.0f} s in all")
    run = (options.checkout / "runs/latest").resolve()
    if (run / "verdict.json").exists() and not played.stopped:
        named = named_by(json.loads((run / "verdict.json").read_text()))
        played = replace(played, output="\n".join([played.output, *named]))
        for line in (*named, f"the report: {run}/report.html"):
            _say(line)
    return answer(options.fault, fault, made.victim, played)


def place() -> str:
    """Return the folder for the files of a rehearsal: the temporary folder if it fits, else /tmp.

    The sockets of ssh need a short path. The address of a JuiceFS must not contain a blank.
    """
    found = gettempdir()
    return found if len(found) <= LONGEST and " " not in found else "/tmp"


def named_by(verdict: Mapping[str, Any]) -> list[str]:
    """Return what a verdict names: nodes that are bad, jobs that ended early."""
    bad = [f"bad node: {node['node']}: {node['likely']}" for node in verdict["fleet"]["nodes"]]
    return [*bad, *verdict["coverage"]["stopped"]]


def answer(name: str | None, fault: Fault | None, victim: str, played: Played) -> int:
    """Return the exit code; say whether the fault was named."""
    if played.stopped:
        return STOPPED
    if fault is None:
        return played.code
    words = fault.says.format(node=victim)
    named = played.printed(words) and (played.code == 0) == fault.ends_well
    _say(f"fault {name}: {'' if named else 'NOT '}named: {words} (exit code {played.code})")
    return played.code if named else NOT_NAMED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal", description=__doc__)
    parser.add_argument("--limit", choices=sorted(SHAPES), default="knl", help="which partition")
    parser.add_argument("--suite", default="rehearsal")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--nodes", type=int, choices=range(2, 9), default=8, metavar="2…8")
    parser.add_argument("--one-mode", action="store_true", help="without confirm_reboot=true")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose playbooks")
    parser.add_argument("more", nargs="*", help="further arguments of ansible-playbook, behind --")
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
