"""From a run's folder to its verdict, and the files that keep it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from proofmark.collect import nodes_of
from proofmark.node.software import Software
from proofmark.records import Record, read_run, table
from proofmark.runs import Run, benchmarks_of, read_json, site_of
from proofmark.tickets import stopped_jobs
from proofmark.verdict import Result, Verdict, judge


def judged(run: Run) -> Verdict:
    """Read and judge `run`; writes nothing."""
    return _judged(run)[1]


def conclude(run: Run) -> Verdict:
    """Read and judge `run`; write records.parquet, verdict.json and junit.xml."""
    records, verdict = _judged(run)
    table(records).write_parquet(run.folder / "records.parquet")
    (run.folder / "verdict.json").write_text(json.dumps(verdict.as_json(), indent=1) + "\n")
    junit(verdict).write(run.folder / "junit.xml", encoding="utf-8", xml_declaration=True)
    return verdict


def _judged(run: Run) -> tuple[list[Record], Verdict]:
    benchmarks, site = benchmarks_of(run), site_of(run)
    software = read_json(run.folder / "software.json", Software)
    records = read_run(run, benchmarks, site, software, nodes_of(run))
    limits = site.partition.limits
    return records, judge(run.id, run.plan, records, benchmarks, limits, stopped_jobs(run))


def junit(verdict: Verdict) -> ElementTree.ElementTree[ElementTree.Element]:
    """Return the verdict as JUnit XML: FAIL is a failure, INVALID an error, UNJUDGED skipped."""
    counts = verdict.counts
    suite = ElementTree.Element(
        "testsuite",
        name=verdict.run,
        tests=str(len(verdict.results)),
        failures=str(counts["FAIL"]),
        errors=str(counts["INVALID"]),
        skipped=str(counts["UNJUDGED"]),
    )
    for result in verdict.results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=result.record.case, name=figure_name(result)
        )
        element = {"FAIL": "failure", "INVALID": "error", "UNJUDGED": "skipped"}
        if result.verdict in element:
            ElementTree.SubElement(case, element[result.verdict], message=result.reason)
    return ElementTree.ElementTree(suite)


def figure_name(result: Result) -> str:
    """Return what tells a figure from its fellows of the same case."""
    record = result.record
    parameters = (f"{key}={value}" for key, value in record.parameters.items())
    words = (record.node, record.mode, record.placement, record.benchmark, record.metric)
    return " ".join([*filter(None, words), *parameters])
