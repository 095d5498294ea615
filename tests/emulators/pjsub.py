#!/usr/bin/env python3
"""Emulates pjsub, pjstat and pjdel of the Fujitsu Technical Computing Suite V4, from its manuals.

CR is the Command Reference of the Job Operation Software, J2UL-2549-01ENZ0(08), chapters 3.1.4
(pjdel), 3.1.13 (pjstat), 3.1.14 (pjsub); EG the End-user's Guide, J2UL-2534-01ENZ0(09). RIKEN
publishes both. Each message has its number there.

Files of the folder: ``rscgrps`` (names of resource groups; default: normal), ``accept_limit``
(exists: the limit of accepted jobs is reached) and ``nodes`` (the most nodes of a job).
A job has ST, name and, as its end requires, PC (the PJM code), why (REASON), ended_days.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.emulators.frame import FOLDER, jobs, run, setting

COUNT = r"[1-9]\d{0,9}"
ELAPSE = r"((\d+:)?\d+:)?\d+|(\d+[hH])?(\d+[mM])?(\d+[sS])?|unlimited"
"""CR pjsub, Limit about time: no blank beside the colons."""
SIZE = r"\d+(Ki|Mi|Gi|Ti|Pi)?|unlimited"
RESOURCES = {
    # CR pjsub -L, FX server
    "node": rf"{COUNT}(x{COUNT}){{0,2}}(:(torus|mesh|noncont))?(:(no-)?io-exclusive)?",
    "elapse": ELAPSE,
    "node-mem": SIZE,
    **dict.fromkeys(("rscunit", "ru", "rscgrp", "rg"), r"\S{1,63}"),
}
MPI = {
    "proc": COUNT,
    "max-proc-per-node": COUNT,
    "shape": rf"{COUNT}(x{COUNT}){{0,2}}",
    "rank-map-bynode": r"[XYZ]*",
    "rank-map-bychip": r"[XYZ]*",
    "rank-map-hostfile": r".+",
}
VALUES = {
    **dict.fromkeys(("-N", "--name"), r"[A-Za-z][^/]{0,62}"),  # 63 bytes, first a letter, no "/"
    **dict.fromkeys(("-L", "--rsc-list"), r".+"),
    **dict.fromkeys(("-o", "--out", "-e", "--err", "-g", "--gname", "--gid", "--mpi"), r".+"),
    **dict.fromkeys(("--llio", "-x", "--comment", "-m", "--mail-list", "--spath"), r".+"),
    "-p": r"\d{1,3}",
}
FLAGS = ("-j", "-s", "--stats", "-S", "--STATS", "-X", "--restart", "--norestart")
ENDED = ("EXT", "CCL", "RJT")
"""EG 2.4.4: EXIT, CANCEL and REJECT; pjstat shows them with -H only."""
COLUMNS = {"jid": "JOB_ID", "jnam": "JOB_NAME", "jmdl": "MD", "st": "ST", "usr": "USER"}
COLUMNS |= {"pc": "PC", "ec": "EC", "sn": "SN", "ermsg": "REASON", "lst": "LST", "rscg": "RSC_GRP"}
"""CR pjstat, Specification of items, with the heading of each."""
STATISTICS = {"jid": "JOB ID", "jnam": "JOB NAME", "st": "STATE", "usr": "USER"}
"""The headings with -s: EG 2.4.2."""
CUT = {"jnam": 10, "ermsg": 16, "usr": 8}
"""CR pjstat: only the first characters, but not with -s."""


def fail(number: str, words: str) -> int:
    """CR: error messages go to the standard error output, and the end status is 1."""
    print(f"[ERR.] PJM {number} {words}", file=sys.stderr)
    return 1


def unknown_option(command: str, number: str, option: str) -> int:
    hint = f"\nTry `{command} --help` for more information."
    return fail(number, f"{command} Unknown option or no option argument: {option}.{hint}")


def directives(text: str) -> list[tuple[int, str]]:
    """CR pjsub: #PJM lines count until a line appears that is no comment."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#PJM "):
            found.append((number, line.removeprefix("#PJM ")))
    return found


def wrong_list(option: str, value: str, accepted: dict[str, str]) -> int:
    """Read "name=value[,...]" of -L and --mpi; return the end status of a refusal, or 0."""
    for item in value.split(","):
        name, _, amount = item.strip().partition("=")
        if name not in accepted:
            return fail("0003", f"pjsub Unknown option argument: {option} {item}.")
        if not re.fullmatch(accepted[name], amount):
            return fail("0004", f"pjsub Invalid option argument: {option} {item}.")
        if name in ("rscgrp", "rg") and amount not in setting("rscgrps", "normal").split():
            return fail("0058", f"pjsub rscgrp={amount} does not exist.")
        limit = int(setting("nodes", "384"))
        if name == "node" and int(amount.split(":")[0].split("x")[0]) > limit:
            return fail("0057", f"pjsub node={amount} is greater than the upper limit ({limit}).")
    return 0


def pjsub(*arguments: str) -> int:
    words, script = list(arguments[:-1]), arguments[-1]
    text = Path(script).read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if len(line.encode()) >= 4096:  # with the newline
            at = f"\nScript file {script} line {number}."
            return fail("0025", f"pjsub Line length too long.{at}")
    for number, line in directives(text):
        try:
            words += shlex.split(line)
        except ValueError:
            at = f"\nScript file {script} line {number}."
            return fail("0008", f"pjsub Option arguments must be enclosed in quotation mark.{at}")
    seen = set()
    while words:
        option = words.pop(0)
        seen.add(option)
        if option in FLAGS:
            continue
        if option not in VALUES or not words:
            return unknown_option("pjsub", "0001", option)
        value = words.pop(0)
        if not re.fullmatch(VALUES[option], value):
            return fail("0004", f"pjsub Invalid option argument: {option} {value}.")
        accepted = RESOURCES if option in ("-L", "--rsc-list") else MPI
        if option in ("-L", "--rsc-list", "--mpi") and (
            code := wrong_list(option, value, accepted)
        ):
            return code
    if {"--restart", "--norestart"} <= seen:
        return fail("0002", "pjsub Invalid combination: --restart and --norestart")
    if (FOLDER / "accept_limit").exists():
        return fail("0072", "pjsub Job exceeded the accept limit: ru-accept.")
    print("[INFO] PJM 0000 pjsub Job 9714 submitted.")
    return 0


def pjstat(*arguments: str) -> int:
    """CR pjstat: a job id that does not exist is ignored, without a message.

    -H shows the jobs that ended in the last three days; ``day=`` (1 to 365) sets the days.
    SEEN in OpenComposer of RIKEN and a fork of ood_core: ``--choose=`` with --data, -E and -s.
    """
    columns = COLUMNS
    rest, data, days, chosen = list(arguments), False, 0, ["jid", "jnam", "jmdl", "st", "usr"]
    while rest and not re.match(r"\d", rest[0]):
        option, _, value = rest.pop(0).partition("=")
        if option == "--choose":
            chosen = (value or rest.pop(0)).split(",")
        elif option in ("-H", "--history"):
            days = 3
            if rest and (match := re.fullmatch(r"day=(\d+)", rest[0])):
                rest.pop(0)
                days = int(match[1])
                if not 1 <= days <= 365:
                    return fail("0204", f"pjstat Invalid option argument: {option} day={days}.")
        elif option == "--data":
            data = True
        elif option == "-s":
            columns = STATISTICS
            if "-v" in arguments:
                return fail("0202", "pjstat Invalid combination of options: -v and -s.")
        elif option not in ("-v", "-E", "-A", "--all", "--expand"):
            return unknown_option("pjstat", "0201", option)
    for job in rest:
        if not re.fullmatch(r"\d+(-\d+)?(_\d+|\[\d+\])?", job):
            return fail("0211", f"pjstat Invalid jobid: {job}.")
    chosen = [item for item in chosen if item in columns]
    heads = [columns[item] for item in chosen]
    # EG 2.4.1: "H," before the heads, and each job begins with the delimiter
    print("H," + ",".join(heads) if data else " ".join(heads))
    for job, fields in jobs().items():
        ended = fields["ST"] in ENDED
        old = ended and int(str(fields.get("ended_days", 0))) >= max(days, 1)
        if ended != bool(days) or old or (rest and job not in rest):
            continue
        cells = {"jid": job, "jnam": fields["name"], "st": fields["ST"], "jmdl": "NM"}
        cells |= {"pc": fields.get("PC", "0"), "ermsg": fields.get("why", "-"), "usr": "tester"}
        cut = {} if columns is STATISTICS else CUT
        row = [str(cells.get(item, "-"))[: cut.get(item)] for item in chosen]
        print("," + ",".join(row) if data else " ".join(row))
    return 0


def pjdel(*ids: str) -> int:
    """CR pjdel: all jobs are processed; one error makes the end status 1."""
    if not ids:
        return fail(
            "0110", "pjdel No jobid(s) specified.\nTry `pjdel --help` for more information."
        )
    code = 0
    for job in ids:
        state = jobs().get(job, {}).get("ST")
        if not re.fullmatch(r"\d+(-\d+)?(_\d+|\[\d+\])?", job):
            code = fail("0111", f"pjdel Invalid jobid: {job}.")
        elif state is None:
            code = fail("0112", f"pjdel Job {job} does not exist.")
        elif state in ENDED:
            code = fail("0113", f"pjdel Job {job} is not in the state that pjdel can be accepted.")
        else:
            print(f"[INFO] PJM 0100 pjdel Accepted job {job}.")
    return code


if __name__ == "__main__":
    sys.exit(run({"pjsub": pjsub, "pjstat": pjstat, "pjdel": pjdel}))
