#!/usr/bin/env python3
"""Emulates commands of PBS Pro and Flux, with their output formats.

The program is called by the name of a command; frame.py says which files it reads. An option,
directive or value that the real command does not accept causes its usage message, exit code 2.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.emulators.frame import FOLDER, jobs, run

CLOCK = r"\d\d+:[0-5]\d:[0-5]\d"
PBS_LINE = 4095
"""qsub of PBS Pro 14 to 19 reads this number of characters of a line."""
CHUNK = r"1:host=[\w.-]+:ncpus=[1-9]\d*(:mem=\d+(kb|mb|gb))?:mpiprocs=1:ompthreads=\d+"
PBS = {
    "-N": r"[A-Za-z]\S{0,14}",
    "-l place=": r"(free|pack|scatter|vscatter)(:(excl|shared|exclhost))?",
    "-l walltime=": CLOCK,
    "-j": r"oe|eo|n",
    "-o": r"/\S+|'/[^']+'",
    "-r": r"y|n",
    "-q": r"\w+(@\w+)?",
    "-A": r"\S+",
}
FLUX_ENDED = ("CD", "F", "CA", "TO")
"""flux-jobs(1), JOB STATUS: the abbreviations of inactive jobs."""
FLUX_BATCH = {
    "--job-name": r"\S+",
    "--nodes": r"[1-9]\d*",
    "--nslots": r"[1-9]\d*",
    "--cores-per-slot": r"[1-9]\d*",
    "--exclusive": "",
    "--requires": r"host:[\w.-]*(\[[\d,-]+\][\w.-]*)?(,[\w.-]+(\[[\d,-]+\])?)*",
    "--time-limit": r"\d+(\.\d+)?[smhd]?",
    "--output": r"/.+",
    "--error": r"/.+",
    "--setopt": r"output\.mode=(append|truncate)",
    "--queue": r"\w+",
    "--bank": r"\S+",
}


def usage(command: str, words: str) -> int:
    print(f"usage: {command}: {words}", file=sys.stderr)
    return 2


def first_invalid(lines: list[str], accepted: dict[str, str]) -> str:
    """Return the first directive that the command refuses; empty if there is none."""
    for line in lines:
        keys = [key for key in accepted if line.startswith(key)]
        key = max(keys, key=len, default=None)
        value = line[len(key) :].lstrip(" =") if key else ""
        if key is None or not re.fullmatch(accepted[key], value):
            return line
    return ""


def qsub(*arguments: str) -> int:
    if len(arguments) != 3 or arguments[0] != "-l":
        return usage("qsub", " ".join(arguments))
    if not re.fullmatch(rf"select={CHUNK}(\+{CHUNK})*", arguments[1]):
        return usage("qsub", arguments[1])
    lines = [line[:PBS_LINE] for line in Path(arguments[2]).read_text().splitlines()]
    directives = [line.removeprefix("#PBS ") for line in lines if line.startswith("#PBS")]
    if invalid := first_invalid(directives, PBS):
        return usage("qsub", invalid)
    print("1234.pbs01")
    return 0


def qstat(*arguments: str) -> int:
    """As src/cmds/qstat.c of OpenPBS 23.06: the exit code is the last byte of the last error.

    The file ``history`` is ``job_history_enable``, which is not set by default: ``-x`` then lists
    no job, also none that waits or runs, and the exit code is 0.
    """
    flags = [word for word in arguments if word.startswith("-")]
    names = [word for word in arguments if word[0] not in "-j"]
    if flags[:2] == ["-Q", "-f"] and names:
        queues = json.loads((FOLDER / "queues.json").read_text())
        print(json.dumps({"timestamp": 1480000000, "Queue": {q: queues[q] for q in names}}))
        return 0
    if sorted(flags) not in (["-F", "-f"], ["-F", "-f", "-x"]) or not names:
        return usage("qstat", " ".join(arguments))
    known: dict[str, dict[str, object]] = {}
    code = 0
    for job in names:
        if "-x" in flags and not (FOLDER / "history").exists():
            print(f"qstat: PBS is not configured to maintain job history {job}", file=sys.stderr)
        elif job not in jobs():
            print(f"qstat: Unknown Job Id {job}", file=sys.stderr)
            code = 153
        elif str(jobs()[job]["job_state"]) not in "FM" or "-x" in flags:
            known[job] = jobs()[job]
        else:
            print(f"qstat: {job} Job has finished, use -x or -H to obtain …", file=sys.stderr)
            code = 35
    header = {"timestamp": 1480000000, "pbs_version": "23.06.06", "pbs_server": "pbs01"}
    print(json.dumps({**header, **({"Jobs": known} if known else {})}))
    return code


def qselect(*arguments: str) -> int:
    if len(arguments) != 2 or arguments[0] != "-N":
        return usage("qselect", " ".join(arguments))
    print("\n".join(job for job, fields in jobs().items() if fields["Job_Name"] == arguments[1]))
    return 0


def qdel(*ids: str) -> int:
    """As a real OpenPBS 23.06: the exit code is that of the last job that was not deleted."""
    code, known = 0, jobs()
    for job in ids:
        fields = known.get(job)
        if fields is None:
            code, text = 153, "Unknown Job Id"
        elif str(fields.get("Job_Owner", "")).startswith("other@"):
            code, text = 159, "Unauthorized Request"
        elif fields["job_state"] == "E":
            code, text = 168, "Request invalid for state of job"
        else:
            continue
        print(f"qdel: {text} {job}", file=sys.stderr)
    return code


def pbsnodes(*arguments: str) -> int:
    """As src/cmds/pbsnodes.c of OpenPBS 23.06: without ``-v`` it lists hosts.

    nodes.json has the hosts and vnodes.json, if it exists, the virtual nodes. ``-o`` and ``-r``
    change each known host, and fail at an unknown one.
    """
    nodes = json.loads((FOLDER / "nodes.json").read_text())["nodes"]
    if arguments[0] in ("-o", "-r"):
        unknown = [name for name in arguments[3:] if name not in nodes]
        for name in unknown:
            print(f"Error marking node {name} - Unknown node", file=sys.stderr)
        return bool(unknown)
    if arguments == ("-a", "-v", "-F", "json"):
        print((FOLDER / "vnodes.json").read_text())
    elif arguments == ("-a", "-F", "json"):
        print(json.dumps({"nodes": nodes}))
    elif arguments[:2] == ("-F", "json") and arguments[2:]:
        found = {name: nodes.get(name, {name: "Unknown node"}) for name in arguments[2:]}
        print(json.dumps({"nodes": found}))
    else:
        return usage("pbsnodes", " ".join(arguments))
    return 0


def flux(verb: str, *arguments: str) -> int:
    if verb == "batch" and len(arguments) == 1:
        return flux_batch(Path(arguments[0]).read_text())
    if verb == "jobs" and arguments[:2] == ("--no-header", "--count=0"):
        return flux_jobs(*arguments[2:])
    if verb == "cancel" and len(arguments) == 1:
        job = jobs().get(arguments[0])
        if job is None or job["status_abbrev"] in FLUX_ENDED:
            why = "unknown job id" if job is None else "job is inactive"
            print(f"flux-cancel: ERROR: {arguments[0]}: {why}", file=sys.stderr)
            return 1
        return 0
    listed = "list --no-header --states=free,allocated,down --format={state}|{nodelist}"
    if verb != "resource" or " ".join(arguments) != listed:
        return usage("flux", " ".join([verb, *arguments]))
    print("free|n[1-2]\nallocated|n2,n3\ndown|n4-ib\nextra")
    return 0


def flux_batch(text: str) -> int:
    lines = text.splitlines()
    directives = [line for line in lines if line.startswith("# flux: ")]
    if directives != lines[1 : 1 + len(directives)]:
        return usage("flux batch", "orphan directive")
    options = [shlex.split(line.removeprefix("# flux: "), comments=True) for line in directives]
    words = [word for option in options for word in option]
    for word in words:
        name, _, value = word.partition("=")
        if name not in FLUX_BATCH or not re.fullmatch(FLUX_BATCH[name], value):
            return usage("flux batch", f"unrecognized arguments: {word}")
    if any(word == "--exclusive" for word in words) and "--nodes" not in " ".join(words):
        return usage("flux batch", "--exclusive can only be used with --nodes")
    print("ƒM7Zq9AKHno")
    return 0


def flux_jobs(*arguments: str) -> int:
    form, rest = arguments[0].removeprefix("--format="), arguments[1:]
    if len(rest) == 1 and not rest[0].startswith("-") and rest[0] not in jobs():
        print(f"JobID {rest[0]} unknown", file=sys.stderr)
        return 1
    for job, fields in jobs().items():
        active = fields["status_abbrev"] not in FLUX_ENDED
        if rest in (("-a",), (job,)) or (rest == (f"--name={fields['name']}",) and active):
            line = form
            values = {
                "urgency": 16,
                "queue": "",
                "exception.type": "",
                "exception.note": "",
                "id.f58plain": job,
                **fields,
            }
            for key, value in values.items():
                line = line.replace(f"{{{key}}}", f"{value}")
            print(line)
    return 0


if __name__ == "__main__":
    commands = (qsub, qstat, qselect, qdel, pbsnodes, flux)
    sys.exit(run({command.__name__: command for command in commands}))
