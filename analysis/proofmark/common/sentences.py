"""Sentences of other rooms in the language of the page: reasons, faults, causes."""

from __future__ import annotations

import re
from functools import cache

from proofmark.common.message import OF_OTHERS, English, Message, rendered
from proofmark.common.translation import ENGLISH, language, translated

LONGEST = 400
"""The largest number of characters of a sentence that is compared with the templates."""

_FIELD = re.compile(r"\{(\w+)\}")


def localized(sentence: str) -> str:
    """Return a sentence of another room in the current language.

    `verdict.json` has these sentences in English, with values inside. The sentence is compared with
    each of `TEMPLATES`. The translation of the first that matches gets the values, which are
    sentences or words themselves. Sentences that ``; `` joins are translated one by one; a sentence
    can have ``; `` itself.

    A sentence without a template is returned as `English`. On an English page each sentence is
    returned as it is.
    """
    if isinstance(sentence, Message) and sentence.code not in OF_OTHERS:
        return rendered(sentence)
    if language() == ENGLISH or not sentence:
        return sentence
    known = _localized(language(), sentence)
    return English(sentence) if known is None else known


def localized_trait(trait: str) -> str:
    """Return the name of a trait in the current language; the name of a package stays."""
    package, separator, name = trait.rpartition(": ")
    return f"{package}{separator}{localized(name)}"


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each template with the pattern of its sentences, the longest literal text first."""
    ordered = sorted(TEMPLATES, key=lambda each: -len(_FIELD.sub("", each)))
    return tuple((template, pattern_of(template)) for template in ordered)


def pattern_of(template: str) -> re.Pattern[str]:
    """Return the pattern of the sentences of a template; its groups are the fields.

    A value is as short as possible, a text as long as possible.
    """
    parts = _FIELD.split(template)
    text = re.escape(parts[0])
    for field, after in zip(parts[1::2], parts[2::2], strict=True):
        text += f"(?P<{field}>{'.+' if _is_text(field) else '.+?'})" + re.escape(after)
    return re.compile(text)


def _is_text(field: str) -> bool:
    return field.startswith("text")


@cache
def _localized(of: str, sentence: str) -> str | None:
    """Return `sentence` in the language `of`, the current one; None if it has no translation."""
    if len(sentence) > LONGEST:
        return None
    known = translated(sentence)
    if known != sentence:
        return known
    # First the parts: a value of a template could contain the end of one sentence and the next.
    parts = sentence.split("; ")
    for place in range(1, len(parts)):
        first = _whole(of, "; ".join(parts[:place]))
        rest = _localized(of, "; ".join(parts[place:])) if first is not None else None
        if first is not None and rest is not None:
            return f"{first}; {rest}"
    return _by_template(of, sentence)


def _whole(of: str, sentence: str) -> str | None:
    """Return one sentence in the language `of`, without a look for parts."""
    known = translated(sentence)
    return known if known != sentence else _by_template(of, sentence)


def _by_template(of: str, sentence: str) -> str | None:
    for template, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            fields = {name: _field(of, name, value) for name, value in found.groupdict().items()}
            known = {name: value for name, value in fields.items() if value is not None}
            if len(known) == len(fields):
                return translated(template).format(**known)
    return None


def _field(of: str, name: str, value: str) -> str | None:
    """Return the value of a field in the language `of`; None for a text without a translation."""
    if _is_text(name):
        return _localized(of, value)
    return _by_template(of, value) or value


# The sentences of all rooms that a report shows: reasons, faults, causes, with their fields.
#
# A sentence is compared with these templates to find its translation.
# A field takes a value; its own translation is used if it is a sentence of this list. A field whose
# name begins with ``text`` takes only a text that has a translation.

TEMPLATES: tuple[str, ...] = (
    # judge: past runs and their traits
    "program {program}",
    "library {library}",
    # readers: problems of an output
    "the program gave up: {message}",
    # site: facts that a node does not report
    "{tool} is not installed",
    "no such file: {path}",
    "no such tool: {tool}",
    "no EDAC driver is loaded",
    "no memory controller is watched: no EDAC driver is loaded",
    "needs root",
    "needs root: {path}",
    "empty or unreadable: {path}",
    "this processor has no such counter",
    "this kernel or processor counts none",
    "the driver reports none",
    "dmidecode reports no memory device",
    "no interface is hardware",
    "this shell has no such limit",
    "ipmitool printed no number of entries",
    "no relevant line in {path}",
    "the node was restarted",
    "a counter that the kit does not know",
    "the counter was reset: the number of events is unknown",
    "the counter existed before the job and does not exist any more",
    # software: findings
    "{library} chose {kernel} ({isa}) on a CPU with {vector} ({processor}): expect {text}; "
    "{remedy}.",
    "{library} chose {kernel} ({isa}) because the environment requests {forced} on a CPU with "
    "{vector} ({processor}): expect {text}; {remedy}.",
    "set {setting}",
    "some loss in HPL and DGEMM",
    "a two-fold loss in HPL and DGEMM",
    "a several-fold loss in HPL and DGEMM",
    "{library} chose {kernel}, which needs {features}: this processor ({processor}) lacks it, "
    "and ends the program at an illegal instruction (SIGILL); {remedy}.",
    "{library} has no kernel for the {vector} of this processor ({processor}): {kernel} "
    "({isa}) uses {bits} of {all} bits. Another BLAS may be faster.",
    "{program} is linked with the reference BLAS ({library}), which is not optimised: expect a "
    "many-fold loss in HPL and DGEMM; install an optimised BLAS.",
    "{program}: the kernel of its {library} is not known: {reason}.",
    "{program} cannot start: {library} is not found by the dynamic linker.",
)

WORDS: tuple[str, ...] = (
    # the verdicts, the kinds of references, the origins
    *("PASS", "FAIL", "INVALID", "UNJUDGED"),
    *("contract", "published", "derived", "baseline", "fleet", "expected", "links", "over time"),
    *("measured", "emulated", "predicted", "imported"),
    # the states of jobs that ended
    *("lost a node", "stopped at its time limit", "cancelled by another user"),
    *("requeued too often", "preempted"),
    # the parts of the baseline
    *("the same node in the baseline", "the like nodes in the baseline"),
    # the answers to claims, the states of a step, statistics
    *("holds", "does not hold", "cannot be told"),
    *("waiting", "running", "interrupted", "done"),
    *("mean", "min", "max"),
    "single run",
    # the properties in which nodes differ
    *("rack", "switch", "processor", "sockets", "cores online", "threads per core", "microcode"),
    *("stepping", "kernel", "kernel command line", "operating system", "governor", "turbo"),
    *("transparent huge pages", "memory", "DIMM part", "DIMM speed", "adapter firmware"),
    *("fabric rate", "NIC firmware", "PCIe link", "BIOS date", "board"),
    *("NIC driver", "frequency driver", "version", "provider", "build", "BLAS kernel"),
)
"""Words of all rooms that a report shows. A word that equals its translation is not listed."""
