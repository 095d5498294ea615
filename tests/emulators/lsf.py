#!/usr/bin/env python3
"""Emulates bsub, bjobs, bkill and bhosts of LSF 10.1, written from public sources alone.

The sources, by the names that the comments use:

- CR, CFG, ADM: the Command Reference, Configuration Reference and Administration of IBM Spectrum
  LSF 10.1 (ibm.com/docs, SSWRJV_10.1.0: lsf_command_ref, lsf_config_ref, lsf_admin).
- OL: the source of OpenLava, which is compatible with LSF 4 and has its texts (lsbatch/...).
- VL: the source of Volclava, a fork of OpenLava (lsbatch/cmd/cmd.sub.c).
- SEEN: output of a real LSF that a public client or issue quotes; the comment names it.

Files of the folder set what the administrator sets: ``queues`` (default: normal), ``threshold``
(the number of submissions that MAX_PEND_JOBS refuses), ``sub_try_interval`` (seconds), ``denied``
(the jobs are of another user), ``consistent_exit_code`` (LSB_BJOBS_CONSISTENT_EXIT_CODE=Y) and
``hosts.json``.
A job has STAT, JOB_NAME and, if it ended, ``ended_s``: the seconds since then.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.emulators.frame import FOLDER, Job, jobs, run, setting

VALUES = {
    "-J": r"[\s\S]{1,4094}",  # CR bsub -J: up to 4094 characters
    "-W": r"(\d+:)?\d+(/[\w.-]+)?",  # CR bsub -W: [hour:]minute[/host_name | /host_model]
    "-n": r"\d+(,\d*)?",
    **dict.fromkeys(("-o", "-e", "-i", "-q", "-P", "-U", "-hostfile", "-m", "-R", "-ext"), r".+"),
    **dict.fromkeys(("-a", "-app", "-cwd", "-env", "-G", "-M", "-b", "-t", "-w", "-u"), r".+"),
}
"""Options of bsub with a value (CR, chapter bsub); each has the form of its value."""
FLAGS = ("-x", "-r", "-rn", "-H", "-N", "-B", "-K")
CONFLICTS = {"-hostfile": ("-ext", "-n", "-m", "-R")}
"""CR bsub -hostfile: "Do not use with the following options: -ext, -n, -m, -R res-req"."""
FIELDS = frozenset(
    (
        *("jobid", "jobindex", "stat", "user", "queue", "job_name", "job_description"),
        *("proj_name", "exit_code", "exit_reason", "pend_reason", "from_host", "first_host"),
        *("exec_host", "submit_time", "start_time", "finish_time", "run_time", "alloc_slot"),
    )
)
"""Fields of CR bjobs -o that a public client asks for (aiida-core, toil, buildtest, balsam)."""
UNFINISHED = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "WAIT", "UNKWN", "ZOMBI", "PROV")
"""ADM, About job states. All others have ended."""
CLEAN_PERIOD_S = 3600
"""CFG lsb.params CLEAN_PERIOD: by default an ended job is listed for one hour."""
SUB_TRY_INTERVAL_S = 60
"""CFG lsb.params SUB_TRY_INTERVAL; SEEN in Roddy: "Retrying in 60 seconds..."."""
HOSTS = {
    **{"n1": ("ok", 0), "n2": ("ok", 4), "n3": ("closed_Excl", 4), "n4": ("closed_Adm", 0)},
    **{"n5": ("unavail", 0)},
}


def fail(words: str) -> int:
    """OL cmd.sub.c do_sub: each refusal of bsub ends so; exit(-1) is 255."""
    print(f"{words}. Job not submitted.", file=sys.stderr)
    return 255


def directive_words(line: str) -> list[str]:
    """Split a #BSUB line as parseLine of OL cmd.sub.c and getNextValueQ_ of lib.words.c do.

    The mark of a value is the first quote in the rest of the line. A value in marks starts with
    its mark, and one blank joins its words. A word that starts with # ends the line.
    """
    rest, words = line.split(), []
    while rest:
        first = re.search(r"['\"]", " ".join(rest))
        mark = first.group() if first else '"'
        word = rest.pop(0)
        if word.startswith(mark):
            word = word[1:]
            while mark not in word and rest:
                word += " " + rest.pop(0)
            word = word.partition(mark)[0]
        if word.startswith("#"):
            break
        words.append(word)
    return words


def embedded_words(text: str) -> list[str]:
    """OL cmd.sub.c parseScript: each line ``#BSUB -...`` of the script; a backslash joins lines."""
    words: list[str] = []
    for line in re.sub(r"\\\n", "", text).splitlines():
        if match := re.fullmatch(r"\s*#\s*BSUB\s*(-.*)", line):
            words += directive_words(match[1])
    return words


def read_options(words: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Return the options, the command and what is wrong (empty: nothing)."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)
        if name in FLAGS:
            options[name] = ""
        elif name not in VALUES:
            return options, rest, f"bsub: illegal option -- {name[1:]}\n"  # OL lib.misc.c
        elif not rest:
            return options, rest, f"bsub: option requires an argument -- {name[1:]}\n"
        else:
            options[name] = rest.pop(0)
            if not re.fullmatch(VALUES[name], options[name]):
                wrong = {"-W": f"{options[name]}: Bad RUNLIMIT specification"}  # OL lsb.sub.c
                # SEEN in Ensembles/ert, issue 1453
                return options, rest, wrong.get(name, f"Bad argument for option {name}")
    return options, rest, ""


def bsub(*arguments: str) -> int:
    options, command, wrong = read_options(list(arguments))
    if not wrong and not command:  # CFG LSB_BSUB_PARSE_SCRIPT=N: only a script from stdin is read
        text = sys.stdin.read()
        embedded, _, wrong = read_options(embedded_words(text))
        options = {**embedded, **options}  # OL fillReq: the command line comes first
        lines = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
        if not wrong and not lines:
            wrong = "No command is specified in the script file"  # OL cmd.sub.c
    for name, others in CONFLICTS.items():
        if found := next((other for other in others if name in options and other in options), ""):
            wrong = wrong or f"{name}: cannot be used with {found}"  # wording not public
    if wrong:
        return fail(wrong)
    queues = setting("queues", "normal").split()
    queue = options.get("-q", queues[0])
    if queue not in queues:
        return fail(f"{queue}: No such queue")  # SEEN in equinor/ert, issue 8774
    if not wait_for_threshold():
        return fail("User <tester>: Pending job threshold reached")
    default = "" if "-q" in options else "default "
    stream = sys.stderr if os.environ.get("BSUB_STDERR") else sys.stdout
    print(f"Job <771> is submitted to {default}queue <{queue}>.", file=stream)  # OL postSubMsg
    return 0


def wait_for_threshold() -> bool:
    """Try again while MAX_PEND_JOBS is reached; false after LSB_NTRIES attempts.

    CFG lsb.params MAX_PEND_JOBS: bsub tries again each SUB_TRY_INTERVAL, LSB_NTRIES times, and
    without LSB_NTRIES for ever. The texts: VL do_sub, SEEN in Roddy (eilslabs).
    """
    refusals = int(setting("threshold", "0"))
    interval = float(setting("sub_try_interval", str(SUB_TRY_INTERVAL_S)))
    tries = int(os.environ.get("LSB_NTRIES") or 2**31 - 1)
    for attempt in range(1, tries + 1):
        if attempt > refusals:
            return True
        if attempt < tries:
            words = f"Retrying in {interval:g} seconds..."
            print(f"User <tester>: Pending job threshold reached. {words}", file=sys.stderr)
            time.sleep(interval)
    return False


def value_of(job: str, fields: Job, field: str) -> str:
    shown = {"jobid": job, "user": "tester", "queue": "normal", **fields}
    return str({key.lower(): value for key, value in shown.items()}.get(field, ""))


def bjobs(*arguments: str) -> int:
    """CR bjobs, and the selection and the errors of OL cmd/bjobs.c and cmd.err.c.

    With job ids ended jobs are listed as well (do_options: ALL_JOB), for CLEAN_PERIOD.
    """
    rest, flags, values = list(arguments), set(), {}
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)
        if name in ("-o", "-J", "-u", "-q", "-m", "-P") and rest:
            values[name] = rest.pop(0)
        elif name in ("-json", "-noheader", "-a", "-d", "-w", "-X"):
            flags.add(name)
        else:
            print(f"bjobs: illegal option -- {name[1:]}", file=sys.stderr)
            return 255
    asked = values.get("-o", "").lower().split()
    if {"-json", "-noheader"} <= flags or not set(asked) <= FIELDS:  # CR bjobs -json
        print("Usage: bjobs [options] [job_ID ...]", file=sys.stderr)
        return 255
    listed = {}
    for job, fields in jobs().items():
        ended = fields["STAT"] not in UNFINISHED
        kept = not ended or int(str(fields.get("ended_s", 0))) <= CLEAN_PERIOD_S
        if kept and (rest or "-a" in flags or ended == ("-d" in flags)):
            listed[job] = fields
    if "-J" in values:
        listed = {job: fields for job, fields in listed.items() if fits(fields, values["-J"])}
    unknown = [job for job in rest if job not in listed]
    shown = {job: listed[job] for job in rest or listed if job in listed}
    words = [f"Job <{job}> is not found" for job in unknown]
    if not rest and not shown:
        ended_or_not = "No job found" if "-a" in flags else "No unfinished job found"
        words = [f"Job <{values['-J']}> is not found" if "-J" in values else ended_or_not]
    if "-json" in flags and asked and (shown or unknown):
        print_json(asked, shown, unknown)
    else:
        print_table(shown, "-w" in flags)
        print("".join(f"{line}\n" for line in words), end="", file=sys.stderr)
    # CFG lsf.conf LSB_BJOBS_CONSISTENT_EXIT_CODE: N by default, and its examples exit with 0
    return 255 if words and (FOLDER / "consistent_exit_code").exists() else 0


def fits(fields: Job, name: str) -> bool:
    return re.fullmatch(re.escape(name).replace(r"\*", ".*"), str(fields["JOB_NAME"])) is not None


def print_json(asked: list[str], shown: dict[str, Job], unknown: list[str]) -> None:
    """SEEN in toil (test_lsf_client) and buildtest: one key a line, all values are strings."""
    records = [
        {field.upper(): value_of(job, fields, field) for field in asked}
        for job, fields in shown.items()
    ]
    records += [{"JOBID": job, "ERROR": f"Job <{job}> is not found"} for job in unknown]
    head = {"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}
    print(json.dumps(head, indent=2, separators=(",", ":")))


def print_table(shown: dict[str, Job], wide: bool) -> None:
    """OL cmd/bjobs.c displayJobs: without -w a name longer than 10 is * and its last 9."""
    if shown:
        print("JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME")
    for job, fields in shown.items():
        name = str(fields["JOB_NAME"])
        name = name if wide or len(name) <= 10 else "*" + name[-9:]
        print(f"{job:7} {'tester':7} {fields['STAT']:5} {'normal':10} {'':11} {'':11} {name:10}")


def bkill(*ids: str) -> int:
    """OL cmd.sig.c signalJobs and bkill.c: 255 if one of the jobs was not signalled.

    CR bkill and ADM, Kill jobs: bjobs may still show a job as running for a while.
    """
    failed = False
    for job in ids:
        state = jobs().get(job, {}).get("STAT")
        if state in UNFINISHED and not (FOLDER / "denied").exists():
            print(f"Job <{job}> is being terminated")
            continue
        failed = True
        why = "User permission denied" if state in UNFINISHED else "Job has already finished"
        why = why if state else "No matching job found"  # OL lsb.err.c
        print(f"Job <{job}>: {why}", file=sys.stderr)
    return 255 if failed else 0


def bhosts(*arguments: str) -> int:
    """OL cmd/bhosts.c prtHostsShort: without -w the reason of "closed" is not shown, names are cut.

    -X (CR bhosts): the members of condensed host groups one by one.
    """
    flags = {word for word in arguments if word.startswith("-")}
    names = [word for word in arguments if not word.startswith("-")]
    if not flags <= {"-w", "-X", "-a"}:
        print(f"bhosts: illegal option -- {min(flags)[1:]}", file=sys.stderr)
        return 255
    hosts = json.loads(setting("hosts.json", "null")) or HOSTS
    for name in names:
        if name not in hosts:  # OL lsb.err.c, LSBE_BAD_HOST
            print(f"{name}: Bad host name, host group name or cluster name", file=sys.stderr)
            return 255
    wide = "-w" in flags
    width = 14 if wide else 11
    print(f"{'HOST_NAME':18} {'STATUS':{width}}  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV ")
    for name in sorted(names or hosts):
        status, used = hosts[name]
        if not wide:
            name, status = f"{name:18.18}", str(status).partition("_")[0]
        counts = "".join(f" {count:6}" for count in (4, used, used, 0, 0, 0))
        print(f"{name:18} {status:{width}}      -{counts}")
    return 0


if __name__ == "__main__":
    sys.exit(run({"bsub": bsub, "bjobs": bjobs, "bkill": bkill, "bhosts": bhosts}))
