"""Submissions to IO500: which folder is one, what it states, and which rules it breaks.

``data/io500.yml`` has the phases and the rules, with their sources.
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from typing import Literal

from proofmark.cases.reader.values import Printed, shorten
from proofmark.cases.suite import Benchmarks
from proofmark.cli.command import Command
from proofmark.cli.inputs import kit_benchmarks
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.input_limits import MAX_WAIT_S
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.packages.foreign.output_folder import OutputFolder, opened
from proofmark.packages.foreign.output_text import output_text, read_others

MAX_SCORE = 1e9
"""GiB/s, kIOPS or score. The largest of the lists has some million kIOPS."""
INVALID = 2
"""The exit code if a submission breaks a rule."""
RESULTS = ("result.txt", "result_summary.txt")
"""The names of the file with the scores: of the program, and of the script before it."""
_GROUPS = ("BW", "MD")
_TOTALS = "SCORE"
_SCORES = (*_GROUPS, "SCORE")
_RELATIVE = 1e-4  # IOR prints six digits of its rate
_SUMMARY = re.compile(
    r"\[RESULT(?:-invalid)?\](?: (?:BW|IOPS) +phase \d+)? +(?P<phase>[\w-]+) +(?P<score>\S+) "
    r"(?:GB/s|GiB/s|k[Ii][Oo][Pp][Ss]) +: time +(?P<seconds>\S+) seconds.*"
)
_TOTAL = re.compile(
    r"\[SCORE *\] Bandwidth (?P<BW>\S+) \S+ : IOPS (?P<MD>\S+) kiops : TOTAL (?P<SCORE>[^\s\[]+).*"
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
    """A phase as the result file states it: score in GiB/s or kIOPS, seconds, command line.

    A number that is missing or out of range is NaN, and is one of `Submission.mistakes`.
    """

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
        mistakes: the numbers of the result file that are missing or out of range.
    """

    phases: Mapping[str, Phase]
    printed: Mapping[str, Printed]
    outputs: Mapping[str, str] = field(default_factory=dict)
    ini: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()
    mistakes: tuple[InputError, ...] = ()


@cache
def rules() -> Rules:
    """Return the content of ``data/io500.yml``."""
    return shipped_data("proofmark.packages.foreign", "io500.yml", Rules)


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
    named = [name for name in RESULTS if name in texts]
    stated: dict[str, _Section] = {}
    for name in named:
        sections = _sections(texts[name])
        if not rules().phases.keys() & sections.keys():
            sections = _summary(texts[name])
        for section, words in sections.items():
            stated.setdefault(section, _Section(name, section, words))
    numbers = _Numbers()
    phases = {
        name: Phase(
            numbers.read(stated[name], "score", MAX_SCORE),
            numbers.read(stated[name], "t_delta", MAX_WAIT_S),
            stated[name].words.get("exe", ""),
        )
        for name in rules().phases
        if name in stated
    }
    if not phases:
        raise ValueError(Message("io500-no-result", files=RESULTS))
    total = stated.get(_TOTALS, _Section(named[0], _TOTALS, {}))
    printed = {name: numbers.read(total, name.lower(), MAX_SCORE) for name in _SCORES}
    outputs = {phase: text for name, text in texts.items() if (phase := phase_of(name))}
    lines = chain.from_iterable(texts[name].splitlines() for name in named)
    invalid = dict.fromkeys(line.strip("; ") for line in lines if "INVALID" in line)
    inis = sorted(name for name in texts if name.endswith(".ini"))
    ini = next((parsed for name in inis if (parsed := _sections(texts[name]))), {})
    mistakes = tuple(numbers.mistakes)
    return Submission(phases, printed, outputs, ini, tuple(invalid), mistakes)


@dataclass(frozen=True)
class _Section:
    """A section of a result file, with the words of its keys."""

    file: str
    name: str
    words: Mapping[str, str]


class _Numbers:
    """The numbers of the result files; `mistakes` has those that are missing or out of range."""

    def __init__(self) -> None:
        self.mistakes: list[InputError] = []

    def read(self, section: _Section, key: str, most: float) -> Printed:
        """Return the number of a key, which is above 0 and at most `most`; else NaN."""
        words = section.words.get(key, "")
        number = Printed(next(iter(words.split()), ""))
        if 0 < number <= most:
            return number
        found, accepted = (
            shorten(words) if words else "nothing",
            f"a number above 0, at most {most:g}",
        )
        self.mistakes.append(InputError(section.file, f"{section.name}.{key}", found, accepted))
        return Printed("")


def findings(submission: Submission, benchmarks: Benchmarks) -> list[Message]:
    """Return what is wrong in a submission.

    That is: the numbers that cannot be used, the rules that it breaks, and the scores that its
    phases do not give.
    """
    scc = submission.ini.get("global", {}).get("scc", "").upper() == "TRUE"
    least = rules().least_seconds_scc if scc else rules().least_seconds
    found = [Message("io500-number", **vars(each)) for each in submission.mistakes]
    found += [Message("io500-invalid", words=line) for line in submission.complaints]
    for name, rule in rules().phases.items():
        phase = submission.phases.get(name)
        if phase is None:
            found.append(Message("io500-no-phase", phase=name))
            continue
        command = phase.command or _command(submission.outputs.get(name, ""))
        found += _broken(name, rule, phase, _options(command), least)
        value = score_of_output(submission, name, benchmarks)
        if value and phase.score > 0 and not _close(phase.score, value, 0.5 / rule.divisor):
            two = {"printed": f"{phase.score:g}", "computed": f"{value:g}"}
            found.append(Message("io500-phase-score", phase=name, **two))
    return found + _scores(submission)


def scores(submission: Submission) -> dict[str, float]:
    """Return ``BW`` in GiB/s, ``MD`` in kIOPS and ``SCORE``, computed from the phases.

    Each group is a geometric mean, and the score the geometric mean of both (calc_score() in
    src/main.c). A group without the score of one of its phases has no mean.
    """
    computed = {}
    for group in _GROUPS:
        wanted = [name for name, rule in rules().phases.items() if rule.group == group]
        values = [float(each.score) for name in wanted if (each := submission.phases.get(name))]
        mean = math.prod(values) ** (1 / len(values)) if len(values) == len(wanted) else math.nan
        if mean > 0:
            computed[group] = mean
    if len(computed) == len(_GROUPS):
        computed["SCORE"] = math.sqrt(math.prod(computed.values()))
    return computed


def _scores(submission: Submission) -> list[Message]:
    # The mean is as exact as the printed digits of its phases.
    phases = submission.phases.values()
    shares = [each.score.half / each.score for each in phases if each.score > 0]
    slack = max(shares, default=0.0)
    return [
        Message("io500-score", name=name, printed=f"{printed:g}", computed=f"{value:g}")
        for name, value in scores(submission).items()
        if (printed := submission.printed[name]) > 0 and not _close(printed, value, slack * value)
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
    if rule.stonewall and not least <= Printed(options.get(rule.stonewall, "0")) <= MAX_WAIT_S:
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
    readings = read_others(benchmarks.case(rule.case).reader(), rule.case, output)
    values = [each.value for each in readings if each.metric == rule.metric and each.value]
    return max(values) / rule.divisor if values else None


def _command(output: str) -> str:
    match = _COMMAND.search(output)
    return match[1] if match else ""


def _summary(text: str) -> dict[str, dict[str, str]]:
    """Return the lines of the summary as sections of a result file."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if match := _SUMMARY.fullmatch(line.strip()):
            name = match["phase"].replace("_", "-")
            found[name] = {"score": match["score"], "t_delta": match["seconds"]}
        elif match := _TOTAL.fullmatch(line.strip()):
            found[_TOTALS] = {name.lower(): word for name, word in match.groupdict().items()}
    return found


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Return the sections of an ini file, with their keys in small letters; empty if it is none."""
    found: dict[str, dict[str, str]] = {}
    words: dict[str, str] | None = None
    for each in text.split("\n"):
        line = each.strip()
        if line.startswith("[") and "]" in line:
            words = found.setdefault(line[1 : line.rindex("]")], {})
        elif line and not line.startswith(("#", ";")):
            if words is None:
                return {}
            place = min((at for mark in "=:" if (at := line.find(mark)) >= 0), default=len(line))
            words[line[:place].strip().lower()] = line[place + 1 :].strip()
    return found


_ACCEPTED = "a folder with result.txt or result_summary.txt, and outputs of IOR and mdtest"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="of one or more submissions")


def io500(options: Namespace) -> int:
    """Print the scores of each submission below a folder, and the rules that it breaks."""
    with opened(options.folder) as outputs:
        return INVALID if _any_broken(outputs) else 0


def _any_broken(outputs: OutputFolder) -> bool:
    """Print the submissions among `outputs`; return whether one of them breaks a rule.

    Raises:
        BadInput: a submission cannot be read, or has a number that is missing or out of range.
    """
    found = submission_folders(outputs.paths)
    if not found:
        raise bad_input("FOLDER", "", f"{outputs.folder}: no submission", _ACCEPTED)
    benchmarks, broken = kit_benchmarks(), False
    mistakes: list[InputError] = []
    for folder, paths in found.items():
        place = outputs.folder / folder
        print_line(f"{place}:")
        try:
            submission = read_submission(_texts(outputs, paths))
        except (OSError, ValueError) as error:
            mistakes.append(InputError(f"{place}", "", str(error), _ACCEPTED))
            continue
        print_table(
            ("figure", "printed", "computed", "unit", "seconds"), _rows(submission, benchmarks)
        )
        for message in (said := findings(submission, benchmarks)):
            print_line(message, indent="  ")
        broken = broken or bool(said)
        mistakes += (replace(each, file=f"{place / each.file}") for each in submission.mistakes)
    if mistakes:
        raise BadInput(*mistakes)
    return broken


def _texts(outputs: OutputFolder, paths: list[str]) -> dict[str, str]:
    names = {path: PurePosixPath(path).name for path in paths}
    return {
        name: output_text(outputs.read(path))
        for path, name in names.items()
        if name in RESULTS or phase_of(name) or name.endswith(".ini")
    }


def _rows(submission: Submission, benchmarks: Benchmarks) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, phase in submission.phases.items():
        unit = "GiB/s" if name.startswith("ior") else "kIOPS"
        computed = score_of_output(submission, name, benchmarks)
        seconds = _number(phase.seconds)
        rows.append((name, _number(phase.score), _number(computed), unit, seconds))
    units, means = {"BW": "GiB/s", "MD": "kIOPS", "SCORE": ""}, scores(submission)
    for name, value in submission.printed.items():
        rows.append((name, _number(value), _number(means.get(name)), units[name], ""))
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:g}"


COMMANDS = {"io500": Command(io500, "io500 submissions/2026-isc", _arguments)}
