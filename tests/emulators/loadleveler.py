#!/usr/bin/env python3
"""Emulates llsubmit, llq, llcancel and llstatus of LoadLeveler, from public sources alone.

The sources, by the names that the comments use:

- UA22: Using and Administering, release 2.2 (cenapad.unicamp.br, LoadLeveler_2.2/lllv2mstNNN).
- UA31: Using and Administering for AIX 5L (ncsa.illinois.edu, LoadL/html/am2ugmstNNN).
- LONI: LoadLeveler_Command_File_Syntax of docs.loni.org. MHPCC: keywords.html of mhpcc.edu.
- JSC: the manual page of llsubmit at fz-juelich.de.
- SEEN: what a public client reads or quotes of the real commands; the comment names it.

Not emulated because no public text was found: the messages 2512-NNN of llsubmit and what llcancel
prints about a job that it does not know. A refusal has its exit code only, and words of ours.

Files of the folder: ``domain``, which llsubmit puts after the short host name of an id, and
``hosts.json``: the state of the startd daemon of each machine. A job has state and name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.emulators.frame import jobs, run, setting

GEOMETRY = r"\{ *\(\d+(,\d+)*\)( *\(\d+(,\d+)*\))* *\}"
"""UA22 lllv2mst127: commas only between task ids, blanks only between nodes."""
TIME = r"((\d+:)?\d+:)?\d+(\.\d+)?|rlim_infinity|unlimited|copy"
"""MHPCC: {{hours:}minutes:}seconds{.fraction} or a word."""
KEYWORDS = {
    "account_no": r"\w+",  # MHPCC: a combination of numbers and letters
    "class": r"\S+",
    "job_name": r"\S+",
    "job_type": r"serial|parallel|pvm3|bluegene",
    "node": r"\d+(,\d+)?",
    "tasks_per_node": r"\d+",
    "total_tasks": r"\d+",
    "blocking": r"\d+|unlimited",
    "task_geometry": GEOMETRY,
    "node_usage": r"shared|not_shared|slice_not_shared",  # UA31 am2ugmst156
    "requirements": r".+",  # UA31 am2ugmst163: a Boolean expression; only its brackets are read
    "wall_clock_limit": rf"({TIME})(, *({TIME}))?",
    "restart": r"yes|no",
    **dict.fromkeys(("output", "error", "input", "executable", "arguments", "environment"), r".+"),
    **dict.fromkeys(("initialdir", "shell", "notification", "notify_user", "comment"), r".+"),
    **dict.fromkeys(("resources", "rset", "mcm_affinity_options", "task_affinity"), r"\S.*"),
    **dict.fromkeys(("ll_res_id", "network.MPI", "network.LAPI"), r"\S.*"),
    "queue": "",
}
WITH_GEOMETRY = ("tasks_per_node", "total_tasks", "node", "min_processors", "blocking")
"""UA22 lllv2mst127: none of these with task_geometry."""
MACHINES = {
    **{"p595-01.example.org": "Idle", "p595-02.example.org": "Running"},
    **{"p595-03.example.org": "Down", "p595-04.example.org": "Busy"},
    **{"p595-05.example.org": "Drained", "p595-06.example.org": "Draining"},
}
"""SEEN in xCAT (RollingUpdate.pm): llstatus prints long names. The states: UA22 lllv2mst50."""


def statements(text: str) -> list[tuple[str, str]]:
    """Return the keyword statements up to the last ``queue``.

    LONI: they begin with # @, with any blanks between the two; a backslash continues a statement,
    and the line that continues it does not begin with # @; keywords in any case.
    """
    found, lines = [], iter(text.splitlines())
    for line in lines:
        match = re.match(r"\s*#\s*@\s*(.*)", line)
        if not match:
            continue
        statement = match[1].rstrip()
        while statement.endswith("\\"):
            following = next(lines, "")
            if re.match(r"\s*#\s*@", following):
                return [("", statement)]
            statement = statement[:-1].rstrip() + " " + following.lstrip("# ").rstrip()
        keyword, _, value = statement.partition("=")
        known = {each.lower(): each for each in KEYWORDS}.get(keyword.strip().lower(), "")
        found.append((known, value.strip() if known else statement))
    return found


def first_wrong(text: str) -> str:
    """Return what llsubmit refuses in a job command file; empty if nothing."""
    step: dict[str, str] = {}
    for keyword, value in statements(text):
        if not keyword:
            return value
        if keyword == "queue":
            continue
        if not re.fullmatch(KEYWORDS[keyword], value):
            return f"{keyword} = {value}"
        step[keyword] = value
    geometry = step.get("task_geometry", "")
    tasks = sorted(map(int, re.findall(r"\d+", geometry)))
    both = [keyword for keyword in WITH_GEOMETRY if keyword in step]
    if geometry and (step.get("job_type") != "parallel" or both or tasks != [*range(len(tasks))]):
        return f"task_geometry = {geometry}"
    if step.get("job_type", "serial") == "serial" and any(
        key.startswith("network") for key in step
    ):
        return "network"  # UA22 lllv2mst140: a keyword of parallel jobs
    balanced = step.get("requirements", "()")
    for opened, closed in ("()", "{}"):
        if balanced.count(opened) != balanced.count(closed):
            return f"requirements = {balanced}"
    return "" if re.search(r"#\s*@\s*queue\s*$", text, re.M) else "no queue statement"


def llsubmit(script: str) -> int:
    if wrong := first_wrong(Path(script).read_text()):
        print(f"llsubmit: {wrong}", file=sys.stderr)
        return 1
    # SEEN in xsub (HTCF): lines of a site before the line of llsubmit
    print("KBGT60003-I Budget function authenticated bu0701.")
    domain = setting("domain", "")
    # SEEN in abipy (JUQUEEN): the long host name here, and the short one in llq
    print(f'llsubmit: The job "srv24ib{domain}.840220" has been submitted.')
    return 0


def long_name(job: str) -> str:
    host, _, number = job.rpartition(".")
    return f"{host}{setting('domain', '')}.{number}"


def llq(*arguments: str) -> int:
    """UA31 llq: -r prints the categories raw; SEEN in ESP (LOADL.pm) and a web client: with "!".

    SEEN in UNICORE and rose: all on standard output, and exit code 0 also if there is no such job.
    A job that LoadLeveler has removed from its queue is not listed.
    """
    words = list(arguments)
    categories: list[str] = []
    if "-r" in words:
        at = words.index("-r")
        while at + 1 < len(words) and words[at + 1].startswith("%"):
            categories.append(words.pop(at + 1))
        words.pop(at)
    everyone = words[:1] == ["-u"]
    known = {"%id": "", "%st": "state", "%jn": "name", "%o": "owner", "%c": "class"}
    if (
        not categories
        or not set(categories) <= set(known)
        or len(set(categories)) < len(categories)
    ):
        print("llq: usage", file=sys.stderr)  # UA31: no category twice
        return 1
    asked = {word.removesuffix(".0") for word in ([] if everyone else words)}
    rows = []
    for job, fields in jobs().items():
        if everyone or not asked or asked & {job, long_name(job)}:
            values = [
                f"{job}.0" if each == "%id" else str(fields.get(known[each], ""))
                for each in categories
            ]
            rows.append("!".join(values))
    # SEEN in rose, DIET, gc3: the same line for an empty queue and an unknown job
    print("\n".join(rows) if rows else "llq: There is currently no job status to report.")
    return 0


def llcancel(*ids: str) -> int:
    """SEEN in cylc: it does not say whether the job was cancelled. UA22: ask llq."""
    if not ids:
        print("llcancel: usage", file=sys.stderr)
        return 1
    print("llcancel: Cancel command has been sent to the central manager.")
    return 0


def llstatus(*arguments: str) -> int:
    """UA31 am2ugmst213: %n the name, %sta the availability, %sts the state of the startd daemon.

    SEEN in xCAT (RollingUpdate.pm) and NorduGrid ARC: %sta is 1 or 0.
    """
    machines = json.loads(setting("hosts.json", "null")) or MACHINES
    if arguments[:1] != ("-r",) or not set(arguments[1:]) <= {"%n", "%sta", "%sts", "%r"}:
        print("llstatus: usage", file=sys.stderr)
        return 1
    for name, state in machines.items():
        available = "0" if state == "Down" else "1"
        values = {"%n": name, "%sta": available, "%sts": state, "%r": "0"}
        print("!".join(values[each] for each in arguments[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(run({"llsubmit": llsubmit, "llq": llq, "llcancel": llcancel, "llstatus": llstatus}))
