#!/usr/bin/env python3
"""Commands of PBS Pro and LoadLeveler that answer in the real ones' formats, and take nothing else.

Called by the name of a command, with the folder ``FAKE_BATCH``: ``jobs.json`` holds what is in the
queue, ``refuse`` a message to fail with. An option, directive or value that the real command does
not know ends in its usage message, exit code 2.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

HERE = Path(os.environ["FAKE_BATCH"])
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


def usage(command: str, found: str) -> int:
    print(f"usage: {command}: {found}", file=sys.stderr)
    return 2


def jobs() -> dict[str, dict[str, object]]:
    path = HERE / "jobs.json"
    found: dict[str, dict[str, object]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def wrong(lines: list[str], known: dict[str, str]) -> str:
    """Return the first directive that the command would not take."""
    for line in lines:
        begins = [key for key in known if line.startswith(key)]
        key = max(begins, key=len, default=None)
        value = line[len(key) :].lstrip(" =") if key else ""
        if key is None or not re.fullmatch(known[key], value):
            return line
    return ""


def qsub(script: str) -> int:
    lines = Path(script).read_text().splitlines()
    directives = [line.removeprefix("#PBS ") for line in lines if line.startswith("#PBS")]
    if bad := wrong(directives, PBS):
        return usage("qsub", bad)
    print("1234.pbs01")
    return 0


def qstat(*arguments: str) -> int:
    if arguments[:4] != ("-x", "-f", "-F", "json") or not arguments[4:]:
        return usage("qstat", " ".join(arguments))
    known = {job: jobs()[job] for job in arguments[4:] if job in jobs()}
    top = {"timestamp": 1480000000, "pbs_version": "14.1.0", "pbs_server": "pbs01"}
    print(json.dumps({**top, **({"Jobs": known} if known else {})}))
    unknown = [job for job in arguments[4:] if job not in known]
    for job in unknown:
        print(f"qstat: Unknown Job Id {job}", file=sys.stderr)
    return 153 if unknown else 0


def qselect(*arguments: str) -> int:
    if len(arguments) != 2 or arguments[0] != "-N":
        return usage("qselect", " ".join(arguments))
    print("\n".join(job for job, told in jobs().items() if told["Job_Name"] == arguments[1]))
    return 0


def qdel(*ids: str) -> int:
    for job in ids:
        if job not in jobs():
            print(f"qdel: Unknown Job Id {job}", file=sys.stderr)
    return 153 if set(ids) - set(jobs()) else 0


def pbsnodes(*arguments: str) -> int:
    if arguments != ("-a", "-F", "json"):
        return usage("pbsnodes", " ".join(arguments))
    print((HERE / "nodes.json").read_text())
    return 0


def llsubmit(script: str) -> int:
    lines = [line.removeprefix("# @ ") for line in Path(script).read_text().splitlines()[1:]]
    directives = lines[: lines.index("queue") + 1]
    if bad := wrong(directives, LOADLEVELER):
        print(f"llsubmit: 2512-051 This job has not been submitted: {bad}", file=sys.stderr)
        return 1
    print("INFO: Project: pr00ab")
    print('llsubmit: The job "srv24ib.840220" has been submitted.')
    return 0


def llq(*arguments: str) -> int:
    if arguments[0] != "-u" or arguments[2:] != ("-r", "%id", "%st", "%jn"):
        return usage("llq", " ".join(arguments))
    for job, told in jobs().items():
        print(f"{job}.0!{told['state']}!{told['name']}")
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
    with (HERE / "calls").open("a") as calls:
        calls.write(" ".join([command, *sys.argv[1:]]) + "\n")
    if (HERE / "refuse").exists():
        print((HERE / "refuse").read_text(), file=sys.stderr)
        return 1
    code: int = globals()[command](*sys.argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
