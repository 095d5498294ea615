"""From a run's folder to its verdict, and the files that keep it."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

from proofmark.collect import nodes_of
from proofmark.columns import Records
from proofmark.fleet.bad import bad_nodes
from proofmark.fleet.rma import as_csv, rma
from proofmark.node.software import Software
from proofmark.records import read_run, table
from proofmark.runs import Run, benchmarks_of, read_json, site_of
from proofmark.tickets import stopped_jobs
from proofmark.verdict import Result, Verdict, judge


def judged(run: Run) -> Verdict:
    """Read and judge `run`; writes nothing."""
    return read_and_judge(run)[1]


def conclude(run: Run) -> Verdict:
    """Read and judge `run`; write records.parquet, verdict.json, junit.xml and rma.csv."""
    records, verdict = read_and_judge(run)
    table(records).write_parquet(run.folder / "records.parquet")
    (run.folder / "verdict.json").write_text(json.dumps(verdict.as_json(), indent=1) + "\n")
    junit(verdict).write(run.folder / "junit.xml", encoding="utf-8", xml_declaration=True)
    facts = {host: node.newest for host, node in nodes_of(run).items() if node.jobs}
    (run.folder / "rma.csv").write_text(as_csv(rma(verdict.bad.nodes, facts)))
    return verdict


def read_and_judge(run: Run) -> tuple[Records, Verdict]:
    """Return the records of `run` and what they come to; writes nothing."""
    benchmarks, site = benchmarks_of(run), site_of(run)
    software = read_json(run.folder / "software.json", Software)
    nodes = nodes_of(run)
    records = read_run(run, benchmarks, site, software, nodes)
    partition = site.partition
    facts = {host: node.newest for host, node in nodes.items() if node.jobs}
    verdict = judge(
        run.id,
        run.plan,
        records,
        benchmarks,
        partition.limits,
        facts,
        partition.family_level,
        stopped_jobs(run),
    )
    places = {host: site.location(host) for host in site.hosts}
    return records, replace(verdict, bad=bad_nodes(verdict, nodes, places))


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
