"""Submissions to IO500: which folder is one, what it states, and which rules it breaks.

``data/io500.yml`` has the phases and the rules, with their sources.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise
from pathlib import PurePosixPath
from typing import Literal

import yaml

from proofmark.cases.reader.engine import read_output
from proofmark.cases.reader.values import Printed
from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel

RESULTS = ("result.txt", "result_summary.txt")
"""The names of the file with the scores: of the program, and of the script before it."""
_GROUPS = ("BW", "MD")
_RELATIVE = 1e-4  # IOR prints six digits of its rate
_SUMMARY = re.compile(
    r"\[RESULT(?:-invalid)?\](?: (?:BW|IOPS) +phase \d+)? +(?P<phase>[\w-]+) +(?P<score>\S+) "
    r"(?:GB/s|GiB/s|k[Ii][Oo][Pp][Ss]) +: time +(?P<seconds>\S+) seconds.*"
)
_TOTAL = re.compile(
    r"\[SCORE *\] Bandwidth (?P<BW>\S+) \S+ : IOPS (?P<MD>\S+) kiops : TOTAL (?P<SCORE>[\d.]+).*"
)
_COMMAND = re.compile(r"Command line(?: used)?\s*: (.*)")


class PhaseRule(StrictModel):
    """What the rules require of a phase; ``data/io500.yml`` explains the fields."""

    group: Literal["BW", "MD"]
    case: str = ""
    metric: str = ""
    divisor: float = 1
    stonewall: str | None = None
    options: Mapping[str, str] = {}
    needs: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()


class Rules(StrictModel):
    """The content of ``data/io500.yml``."""

    least_seconds: float
    least_seconds_scc: float
    phases: Mapping[str, PhaseRule]


@dataclass(frozen=True)
class Phase:
    """A phase as the result file states it: score in GiB/s or kIOPS, seconds, command line."""

    score: Printed
    seconds: Printed
    command: str = ""


@dataclass(frozen=True)
class Submission:
    """A submission.

    Attributes:
        phases: by their names of today: ``ior-easy-write``.
        printed: the scores ``BW``, ``MD`` and ``SCORE`` that the result file states.
        outputs: phase → the text of its output.
        ini: section → key → value of the configuration.
        complaints: lines by which the program itself calls the run invalid.
    """

    phases: Mapping[str, Phase]
    printed: Mapping[str, Printed]
    outputs: Mapping[str, str] = field(default_factory=dict)
    ini: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()


@cache
def rules() -> Rules:
    """Return the content of ``data/io500.yml``."""
    text = (files("proofmark.cases") / "data/io500.yml").read_text(encoding="utf-8")
    return Rules.model_validate(yaml.safe_load(text))


def phase_of(name: str) -> str | None:
    """Return the phase whose output a file of this name is, or None."""
    phase = name.removesuffix(".txt").replace("_", "-")
    return phase if name.endswith(".txt") and phase in rules().phases else None


def submission_folders(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the folders among `paths` that are submissions, each with the paths of its files.

    A submission has the file of the scores and an output of IOR and of mdtest beside it. An ini
    file in the folder above is of it, if the folder has none.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(f"{PurePosixPath(path).parent}", []).append(path)
    chosen = {}
    for folder, members in found.items():
        names = {PurePosixPath(path).name for path in members}
        cases = {rules().phases[phase].case for name in names if (phase := phase_of(name))}
        if cases >= {"ior", "mdtest"} and not names.isdisjoint(RESULTS):
            above = found.get(f"{PurePosixPath(folder).parent}", [])
            inis = [path for path in above if path.endswith(".ini")]
            own = any(name.endswith(".ini") for name in names)
            chosen[folder] = sorted(members if own else {*members, *inis})
    return chosen


def read_submission(texts: Mapping[str, str]) -> Submission:
    """Return the submission whose files have these names and texts.

    Raises:
        ValueError: no file has scores. Its argument is a message.
    """
    named = [texts[name] for name in RESULTS if name in texts]
    phases, printed = _result(named[0]) if named else ({}, {})
    for text in named[1:] if phases else named:
        summary, totals = _summary(text)
        phases, printed = {**summary, **phases}, {**totals, **printed}
    if not phases:
        raise ValueError(Message("io500-no-result", files=RESULTS))
    outputs = {phase: text for name, text in texts.items() if (phase := phase_of(name))}
    lines = chain.from_iterable(text.splitlines() for text in named)
    invalid = dict.fromkeys(line.strip("; ") for line in lines if "INVALID" in line)
    inis = sorted(name for name in texts if name.endswith(".ini"))
    ini = next((parsed for name in inis if (parsed := _sections(texts[name]))), {})
    return Submission(phases, printed, outputs, ini, tuple(invalid))


def findings(submission: Submission, benchmarks: Benchmarks) -> list[Message]:
    """Return which rules a submission breaks, and which of its scores its phases do not give."""
    scc = submission.ini.get("global", {}).get("scc", "").upper() == "TRUE"
    least = rules().least_seconds_scc if scc else rules().least_seconds
    found = [Message("io500-invalid", words=line) for line in submission.complaints]
    for name, rule in rules().phases.items():
        phase = submission.phases.get(name)
        if phase is None:
            found.append(Message("io500-no-phase", phase=name))
            continue
        command = phase.command or _command(submission.outputs.get(name, ""))
        found += _broken(name, rule, phase, _options(command), least)
        value = score_of_output(submission, name, benchmarks)
        if value is not None and not _close(phase.score, value, 0.5 / rule.divisor):
            two = {"printed": f"{phase.score:g}", "computed": f"{value:g}"}
            found.append(Message("io500-phase-score", phase=name, **two))
    return found + _scores(submission)


def scores(submission: Submission) -> dict[str, float]:
    """Return ``BW`` in GiB/s, ``MD`` in kIOPS and ``SCORE``, computed from the phases.

    Each group is a geometric mean, and the score the geometric mean of both (calc_score() in
    src/main.c). A group without one of its phases has no mean.
    """
    computed = {}
    for group in _GROUPS:
        wanted = [name for name, rule in rules().phases.items() if rule.group == group]
        if all(name in submission.phases for name in wanted):
            values = [float(submission.phases[name].score) for name in wanted]
            computed[group] = math.prod(values) ** (1 / len(values))
    if len(computed) == len(_GROUPS):
        computed["SCORE"] = math.sqrt(math.prod(computed.values()))
    return computed


def _scores(submission: Submission) -> list[Message]:
    # The mean is as exact as the printed digits of its phases.
    shares = [each.score.half / each.score for each in submission.phases.values() if each.score]
    slack = max(shares, default=0.0)
    return [
        Message("io500-score", name=name, printed=f"{printed:g}", computed=f"{value:g}")
        for name, value in scores(submission).items()
        if (printed := submission.printed.get(name)) and not _close(printed, value, slack * value)
    ]


def _close(printed: Printed, value: float, slack: float) -> bool:
    return abs(printed - value) <= printed.half + slack + _RELATIVE * abs(value)


def _broken(
    name: str, rule: PhaseRule, phase: Phase, options: Mapping[str, str], least: float
) -> list[Message]:
    found = []
    if rule.stonewall and phase.seconds < least:
        seconds = f"{phase.seconds:g}"
        found.append(Message("io500-short", phase=name, seconds=seconds, least=f"{least:g}"))
    if not options:
        return found
    if rule.stonewall and not Printed(options.get(rule.stonewall, "0")) >= least:
        both = {"option": rule.stonewall, "word": options.get(rule.stonewall, "–")}
        found.append(Message("io500-stonewall", phase=name, least=f"{least:g}", **both))
    for option, accepted in rule.options.items():
        if (other := options.get(option)) != accepted:
            both = {"option": option, "word": other or "–", "accepted": accepted}
            found.append(Message("io500-option", phase=name, **both))
    for option in rule.needs:
        if option not in options:
            found.append(Message("io500-lacks", phase=name, option=option))
    for option in rule.forbids:
        if options.get(option, "0") != "0":
            found.append(Message("io500-forbidden", phase=name, option=option))
    return found


def _options(command: str) -> dict[str, str]:
    """Return the options of a command line, each with its word; empty for one without a word."""
    words = [word.strip("'\"") for word in command.split()]
    options = {}
    for word, following in pairwise([*words, ""]):
        if word.startswith("-"):
            name, has_word, value = word.partition("=")
            options[name] = value if has_word else "" if following.startswith("-") else following
    return options


def score_of_output(submission: Submission, phase: str, benchmarks: Benchmarks) -> float | None:
    """Return the score of `phase` in its output, in GiB/s or kIOPS; None if it has none."""
    rule, output = rules().phases.get(phase), submission.outputs.get(phase)
    if output is None or rule is None:
        return None
    readings = read_output(benchmarks.case(rule.case).reader(), rule.case, output)
    values = [each.value for each in readings if each.metric == rule.metric and each.value]
    return max(values) / rule.divisor if values else None


def _command(output: str) -> str:
    match = _COMMAND.search(output)
    return match[1] if match else ""


def _result(text: str) -> tuple[dict[str, Phase], dict[str, Printed]]:
    sections = _sections(text)
    phases = {
        name: Phase(
            Printed(each["score"].split()[0]), Printed(each["t_delta"]), each.get("exe", "")
        )
        for name, each in sections.items()
        if name in rules().phases and each.get("score") and each.get("t_delta")
    }
    total = sections.get("SCORE", {})
    return phases, {
        key.upper(): Printed(word.split()[0]) for key, word in total.items() if key != "hash"
    }


def _summary(text: str) -> tuple[dict[str, Phase], dict[str, Printed]]:
    phases, printed = {}, {}
    for line in text.splitlines():
        if match := _SUMMARY.fullmatch(line.strip()):
            name = match["phase"].replace("_", "-")
            phases[name] = Phase(Printed(match["score"]), Printed(match["seconds"]))
        elif match := _TOTAL.fullmatch(line.strip()):
            printed = {name: Printed(word) for name, word in match.groupdict().items()}
    return phases, printed


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Return the sections of an ini file; empty if it is none."""
    parser = ConfigParser(
        interpolation=None, strict=False, allow_no_value=True, comment_prefixes=("#", ";")
    )
    try:
        parser.read_string(text)
    except IniError:
        return {}
    return {
        name: {key: value or "" for key, value in parser[name].items()}
        for name in parser.sections()
    }
