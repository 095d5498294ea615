"""Exports a verdict in the form of JUnit, for CI servers."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from proofmark.common.files import write_atomic_bytes
from proofmark.common.text import one_line
from proofmark.judge.limit_outcomes import ItemOutcome
from proofmark.judge.verdict import SINGLE_RUN, Result, Verdict
from proofmark.packages.exports.export import Export
from proofmark.records.columns import Records
from proofmark.runs.run import Run

_ELEMENTS = {"FAIL": "failure", "INVALID": "error", "UNJUDGED": "skipped"}
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Junit(Export):
    """The verdict of each figure and item of the contract, and each fault, as a test case."""

    content = "the verdict of each figure as a test case"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``junit.xml``."""
        path = folder / "junit.xml"
        content = tostring(suite_of(verdict), encoding="utf-8", xml_declaration=True)
        write_atomic_bytes(path, content + b"\n")
        return [path]


def suite_of(verdict: Verdict) -> Element:
    """Return the test cases of a verdict."""
    suite = Element("testsuite", name=allowed(verdict.run))
    if verdict.degraded:
        _label(suite, verdict.degraded.label)
    for fault in verdict.faults:
        _case(suite, "node", fault.node, "FAIL", fault.reason)
    for stage in verdict.conditions.open_stages:
        _case(suite, "stage", stage.nodes, "UNJUDGED", stage.reason)
    for item in (*verdict.checks, *(each for each in verdict.contract if each.item)):
        _item(suite, item)
    for result in verdict.results:
        name, word = figure_name(result), result.verdict
        case = _case(suite, result.record.case, name, word, result.reason)
        if result.degraded:
            _label(case, result.degraded)
        if result.single_run:
            SubElement(case, "system-out").text = SINGLE_RUN
    suite.set("tests", f"{len(suite.findall('testcase'))}")
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, f"{len(suite.findall(f'testcase/{tag}'))}")
    return suite


def figure_name(result: Result) -> str:
    """Return the name of a figure, unique within its case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])


def allowed(value: str) -> str:
    """Return a text as one line without the characters that XML forbids."""
    return one_line(_CONTROL.sub("\ufffd", value))


def _item(suite: Element, of: ItemOutcome) -> None:
    word = of.outcome if of.binding or of.outcome == "PASS" else "UNJUDGED"
    missed = [f"{node}: {text}" for node, text in of.missed.items()]
    message = "; ".join([of.outcome, *missed, *map(str, of.not_evaluated)])
    case = _case(suite, "contract", of.name, word, message)
    if of.excuses:
        SubElement(case, "system-out").text = "".join(f"{allowed(each)}\n" for each in of.excuses)


def _case(suite: Element, kind: str, name: str, word: str, message: str) -> Element:
    case = SubElement(suite, "testcase", classname=allowed(kind), name=allowed(name))
    if word in _ELEMENTS:
        SubElement(case, _ELEMENTS[word], message=allowed(message))
    return case


def _label(of: Element, label: str) -> None:
    properties = SubElement(of, "properties")
    SubElement(properties, "property", name="degraded", value=allowed(label))
