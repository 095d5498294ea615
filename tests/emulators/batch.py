#!/usr/bin/env python3
"""Emulates commands of PBS Pro and LoadLeveler, with the output formats of the real commands.

The program is called by the name of a command. In the folder ``FAKE_BATCH`` the file ``jobs.json``
contains the jobs of the queue, and ``refuse`` a message with which each command fails. Each call is
appended to ``calls``. An option, directive or value that the real command does not accept causes
its usage message, exit code 2.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

FOLDER = Path(os.environ["FAKE_BATCH"])
CLOCK = r"\d\d+:[0-5]\d:[0-5]\d"
PBS = {
    "-N": r"[A-Za-z]\S{0,14}",
    "-l select=": r"1:host=[\w.-]+(\+1:host=[\w.-]+)*",
    "-l place=": r"(free|pack|scatter|vscatter)(:(excl|shared|exclhost))?",
    "-l walltime=": CLOCK,
    "-j": r"oe|eo|n",
    "-o": r"/\S+|'/[^']+'",
    "-r": r"y|n",
    "-q": r"\w+(@\w+)?",
    "-A": r"\S+",
}
LOADLEVELER = {
    "job_name": r"\S+",
    "job_type": r"serial|parallel|bluegene",
    "node": r"\d+(,\d+)?",
    "tasks_per_node": r"\d+",
    "requirements": r'\(Machine == \{"[\w.-]+"( "[\w.-]+")*\}\)',
    "node_usage": r"shared|not_shared|slice_not_shared",
    "wall_clock_limit": CLOCK,
    "output": r"/\S.*",
    "error": r"/\S.*",
    "restart": r"yes|no",
    "class": r"\w+",
    "account_no": r"\S+",
    "ll_res_id": r"\S+",
    "queue": "",
}


def usage(command: str, words: str) -> int:
    print(f"usage: {command}: {words}", file=sys.stderr)
    return 2


def jobs() -> dict[str, dict[str, object]]:
    path = FOLDER / "jobs.json"
    queue: dict[str, dict[str, object]] = json.loads(path.read_text()) if path.exists() else {}
    return queue


def first_invalid(lines: list[str], accepted: dict[str, str]) -> str:
    """Return the first directive that the command refuses; empty if there is none."""
    for line in lines:
        keys = [key for key in accepted if line.startswith(key)]
        key = max(keys, key=len, default=None)
        value = line[len(key) :].lstrip(" =") if key else ""
        if key is None or not re.fullmatch(accepted[key], value):
            return line
    return ""


def qsub(script: str) -> int:
    lines = Path(script).read_text().splitlines()
    directives = [line.removeprefix("#PBS ") for line in lines if line.startswith("#PBS")]
    if invalid := first_invalid(directives, PBS):
        return usage("qsub", invalid)
    print("1234.pbs01")
    return 0


def qstat(*arguments: str) -> int:
    if arguments[:4] != ("-x", "-f", "-F", "json") or not arguments[4:]:
        return usage("qstat", " ".join(arguments))
    known = {job: jobs()[job] for job in arguments[4:] if job in jobs()}
    header = {"timestamp": 1480000000, "pbs_version": "14.1.0", "pbs_server": "pbs01"}
    print(json.dumps({**header, **({"Jobs": known} if known else {})}))
    unknown = [job for job in arguments[4:] if job not in known]
    for job in unknown:
        print(f"qstat: Unknown Job Id {job}", file=sys.stderr)
    return 153 if unknown else 0


def qselect(*arguments: str) -> int:
    if len(arguments) != 2 or arguments[0] != "-N":
        return usage("qselect", " ".join(arguments))
    print("\n".join(job for job, fields in jobs().items() if fields["Job_Name"] == arguments[1]))
    return 0


def qdel(*ids: str) -> int:
    for job in ids:
        if job not in jobs():
            print(f"qdel: Unknown Job Id {job}", file=sys.stderr)
    return 153 if set(ids) - set(jobs()) else 0


def pbsnodes(*arguments: str) -> int:
    if arguments != ("-a", "-F", "json"):
        return usage("pbsnodes", " ".join(arguments))
    print((FOLDER / "nodes.json").read_text())
    return 0


def llsubmit(script: str) -> int:
    lines = [line.removeprefix("# @ ") for line in Path(script).read_text().splitlines()[1:]]
    directives = lines[: lines.index("queue") + 1]
    if invalid := first_invalid(directives, LOADLEVELER):
        print(f"llsubmit: 2512-051 This job has not been submitted: {invalid}", file=sys.stderr)
        return 1
    print("INFO: Project: pr00ab")
    print('llsubmit: The job "srv24ib.840220" has been submitted.')
    return 0


def llq(*arguments: str) -> int:
    if arguments[0] != "-u" or arguments[2:] != ("-r", "%id", "%st", "%jn"):
        return usage("llq", " ".join(arguments))
    for job, fields in jobs().items():
        print(f"{job}.0!{fields['state']}!{fields['name']}")
    if not jobs():
        print("llq: There is currently no job status to report.")
    return 0


def llcancel(*ids: str) -> int:
    for job in ids:
        print(f'llcancel: Cancel command has been sent to the central manager for "{job}".')
    return 0


def llstatus(*arguments: str) -> int:
    if arguments != ("-r", "%n", "%sta"):
        return usage("llstatus", " ".join(arguments))
    print("p595-01.kisti!Idle\np595-02.kisti!Run\np595-03.kisti!Down")
    return 0


def main() -> int:
    command = Path(sys.argv[0]).name
    with (FOLDER / "calls").open("a") as calls:
        calls.write(" ".join([command, *sys.argv[1:]]) + "\n")
    if (FOLDER / "refuse").exists():
        print((FOLDER / "refuse").read_text(), file=sys.stderr)
        return 1
    code: int = globals()[command](*sys.argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
