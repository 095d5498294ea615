"""What each command of the command line does: files in, text and an exit code out.

What judges and draws is imported where it is used: it takes longer to load than most commands run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pwd
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from proofmark.cases.models import Benchmarks, load_benchmarks, schema
from proofmark.cases.reader.engine import read_output
from proofmark.cli.checkout import kit_folder
from proofmark.common.errors import BadInput, bad_input, nearest
from proofmark.common.nodesets import fold
from proofmark.jobs import execute as jobs
from proofmark.jobs import rerun as repeating
from proofmark.jobs.scripts import repeated_commands, write_steps
from proofmark.machine import preflight as early
from proofmark.machine.modes.stage import credentials_of
from proofmark.plan import plan as planning
from proofmark.plan.validation import validate as check_site
from proofmark.runs import manifest as signing
from proofmark.runs.nodes import collect_nodes
from proofmark.runs.progress import duration, progress, size
from proofmark.runs.run import is_locked, leave_out, open_run, read_json, site_of, start_or_continue
from proofmark.site.fabric_import import fabric_levels
from proofmark.site.inventory import choose_inventory, load_site, load_sites
from proofmark.site.machines import machines_of
from proofmark.software.provision import provide_software
from proofmark.software.software import Software

INVALID = 2


def _benchmarks() -> Benchmarks:
    return load_benchmarks(kit_folder() / "benchmarks")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_json(content: Any) -> None:
    json.dump(content, sys.stdout, indent=1, default=str)
    print()


def _print_table(table: Table) -> None:
    """Print `table`; a pipe gets every word of it, only a terminal has an edge."""
    width = None if sys.stdout.isatty() else 1000
    Console(width=width, markup=False).print(table)


def cases(options: argparse.Namespace) -> int:
    """List cases and the suites they run in."""
    if options.schema:
        _print_json(schema())
        return 0
    benchmarks = _benchmarks()
    if options.check:
        return 0
    members = benchmarks.cases
    if options.suite:
        benchmarks.suite(options.suite)
        members = benchmarks.members(options.suite)
    table = Table("case", "suites", "metrics", "title", box=None)
    for name, case in members.items():
        metrics = ", ".join(list(case.metrics)[:4]) + (" …" if len(case.metrics) > 4 else "")
        table.add_row(name, " ".join(case.suites) or "–", metrics, case.title)
    _print_table(table)
    return 0


def plan(options: argparse.Namespace) -> int:
    """Print the plan of each partition, or make the run of one."""
    benchmarks = _benchmarks()
    overrides = {
        "provision_from": options.provision_from,
        "scratch_dir": options.scratch_dir,
    }
    inventory = choose_inventory(options.inventory)
    if not options.create:
        sites = load_sites(inventory, options.limit, overrides)
        plans = [
            planning.make_plan(benchmarks, options.suite, site, machines_of(site)[0])
            for site in sites
        ]
        _print_plans(plans, kit_folder() / "runs", as_json=options.json)
        return 0
    site = load_site(inventory, options.limit, overrides)
    machines, probe = machines_of(site)
    made = planning.make_plan(benchmarks, options.suite, site, machines)
    run, continued = start_or_continue(
        kit_folder() / "runs",
        made,
        benchmarks,
        site,
        probe,
        run_id=options.run_id,
        fresh=options.fresh,
    )
    _print_json(
        {
            "run": run.id,
            "folder": str(run.folder),
            "continued": continued,
            "digest": made.digest,
            "totals": made.totals.model_dump(),
            "packages": sorted({step.package for step in made.steps()}),
            "partition": site.partition.model_dump(),
        }
    )
    return 0


def _print_plans(plans: Sequence[planning.Plan], runs: Path, *, as_json: bool) -> None:
    """Print one plan, or the plans of several partitions; each is a run of its own."""
    from proofmark.runs.history import measured_cost

    earlier = [measured_cost(made, runs) for made in plans]
    if as_json:
        texts = [
            {**made.model_dump(mode="json"), "history": asdict(cost)}
            for made, cost in zip(plans, earlier, strict=True)
        ]
        _print_json(texts[0] if len(texts) == 1 else {"partitions": texts})
    else:
        for made, cost in zip(plans, earlier, strict=True):
            _print_plan(made)
            if cost.steps:
                print(
                    f"{cost.steps} of {made.totals.steps} steps ran here before "
                    f"({cost.runs} runs): by their medians {cost.node_hours:.2f} node-hours, "
                    f"about {duration(cost.wall_s)} in all"
                )
        if len(plans) > 1:
            totals = [made.totals for made in plans]
            hours = sum(each.node_hours for each in totals)
            print(
                f"\n{len(plans)} partitions: {sum(each.jobs for each in totals)} jobs, "
                f"{sum(each.steps for each in totals)} steps, {hours:.2f} node-hours; "
                "one run a partition"
            )


def _print_plan(made: planning.Plan) -> None:
    table = Table(
        "mode", "job", "nodes", "step", "ranks", "threads", "placement", "takes", box=None
    )
    for group in made.groups:
        for job in group.jobs:
            for step in job.steps:
                table.add_row(
                    group.mode,
                    job.id,
                    ",".join(fold(job.nodes)),
                    step.id,
                    str(step.ranks) if step.cpus else "–",
                    str(step.threads),
                    step.placement or "–",
                    duration(step.seconds),
                )
    _print_table(table)
    for why in made.left_out:
        print(f"left out: {why}")
    for fact, why in made.assumed.items():
        print(f"assumed: {fact}: {why}")
    for group in made.groups:
        if group.mode != made.current_mode:
            steps = sum(len(job.steps) for job in group.jobs)
            print(f"{steps} steps need mode {group.mode}: a confirmed reboot, or NOT RUN")
    totals = made.totals
    print(
        f"\n{made.suite} on {made.partition}: {totals.jobs} jobs, {totals.steps} steps, "
        f"{totals.node_hours:.2f} node-hours, about {duration(totals.wall_s)}; writes "
        f"{size(totals.bytes)} to scratch, {size(totals.scratch_peak_bytes)} at one time; "
        f"digest {made.digest[:12]}"
    )


def preflight(options: argparse.Namespace) -> int:
    """Look at everything that has to be right before a machine is touched."""
    site = load_site(choose_inventory(options.inventory), options.limit)
    made = planning.make_plan(_benchmarks(), options.suite, site, machines_of(site)[0])
    user = site.partition.run_user or pwd.getpwuid(os.geteuid()).pw_name
    who, end = credentials_of(options.credentials), early.window_end(options)
    return early.print_findings(early.preflight(site, made, who, end, user), _say)


def validate(options: argparse.Namespace) -> int:
    """Name everything that is wrong with a site."""
    inventory = choose_inventory(options.inventory)
    environments = kit_folder() / "environments"
    plans, mistakes = check_site(inventory, options.limit, _benchmarks(), environments)
    if mistakes:
        raise BadInput(*mistakes)
    table = Table("partition", "suite", "jobs", "steps", "node-hours", "takes", box=None)
    for made in plans:
        totals = made.totals
        numbers = (str(totals.jobs), str(totals.steps), f"{totals.node_hours:.2f}")
        table.add_row(made.partition, made.suite, *numbers, duration(totals.wall_s))
    _print_table(table)
    for partition, assumed in {made.partition: made.assumed for made in plans}.items():
        for fact, why in assumed.items():
            print(f"assumed: {partition}: {fact}: {why}")
    return 0


def fabric(options: argparse.Namespace) -> int:
    """Print the ``fabric`` of a partition's facts."""
    try:
        text = options.file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        found = error.strerror or "unreadable"
        raise bad_input(options.file, "", found, "a readable file") from None
    names = [name for name in options.names.split(",") if name]
    levels = fabric_levels(text, options.file, names)
    top = list(levels)[-1]
    near = [{"name": name, "switches": levels[name]} for name in levels if name != top]
    facts = {"fabric": {"levels": near, "top": top, "source": f"{options.file.name} of the site"}}
    print(yaml.safe_dump(facts, sort_keys=False), end="")
    return 0


def read(options: argparse.Namespace) -> int:
    """Print what a case's reader finds in files."""
    case = _benchmarks().case(options.case)
    found = []
    for path in options.files:
        try:
            text = path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise bad_input(path, "", error.strerror or "unreadable", "a readable file") from None
        found += read_output(case.reader(), options.case, text)
    rows = [reading._asdict() for reading in found]
    if options.format == "json":
        _print_json([{**row, "parameters": dict(row["parameters"])} for row in rows])
    elif options.format == "csv":
        flat = [{**row, "parameters": json.dumps(dict(row["parameters"]))} for row in rows]
        writer = csv.DictWriter(sys.stdout, list(flat[0]) if flat else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
    else:
        table = Table("benchmark", "metric", "value", "unit", "parameters", "", box=None)
        for row in rows:
            parameters = " ".join(f"{key}={value}" for key, value in row["parameters"].items())
            value = "–" if row["value"] is None else f"{row['value']:g}"
            word = "" if row["valid"] else f"INVALID: {row['reason']}"
            cells = (row["benchmark"], row["metric"], value, row["unit"], parameters, word)
            table.add_row(*cells)
        _print_table(table)
    return 0 if found and all(reading.valid for reading in found) else INVALID


def status(options: argparse.Namespace) -> int:
    """Print how far a run is; with ``--watch`` until nobody runs it any more."""
    run = open_run(options.folder)
    last = ""
    while True:
        active = is_locked(run)
        current = progress(run, active=active)
        if options.json:
            _print_json(
                {
                    "run": run.id,
                    "active": active,
                    "done": current.done,
                    "steps": len(current.steps),
                    "left_s": current.left_s,
                    "states": {step.step.id: step.state for step in current.steps},
                }
            )
            return 0
        line = f"{run.id}: {current.line()}"
        if line != last:
            print(line, flush=True)
            last = line
        if not (options.watch and active):
            return 0
        time.sleep(1)


def verdict(options: argparse.Namespace) -> int:
    """Judge a run and print the answer."""
    from proofmark.judge.claims.of_runs import answers_of
    from proofmark.judge.ending import MEANING, ending
    from proofmark.judge.files import write_verdict
    from proofmark.judge.judging import judged
    from proofmark.judge.verdict import WORDS

    run = open_run(options.folder)
    answer = judged(run)
    if options.json and options.brief:
        lines = ending(answer, f"{options.folder / 'report.html'}", strict=options.strict)
        meaning = MEANING[answer.exit_code(strict=options.strict)]
        _print_json({**answer.head(), "meaning": meaning, "lines": lines})
        for line in lines:  # a playbook prints what comes on stderr
            _say(line)
    elif options.json:
        write_verdict(sys.stdout, answer, answers_of([(run, answer)]))
    else:
        table = Table("verdict", "case", "figure", "value", "unit", "reason", box=None)
        for result in answer.of("FAIL", "INVALID", "PASS"):
            record = result.record
            parameters = " ".join(f"{key}={value}" for key, value in record.parameters.items())
            figure = " ".join(filter(None, (record.benchmark, record.metric, parameters)))
            value = "–" if record.value is None else f"{record.value:g}"
            cells = (result.verdict, record.case, figure, value, record.unit, result.reason)
            table.add_row(*cells)
        _print_table(table)
        print(", ".join(f"{answer.counts[word]} {word}" for word in WORDS))
        coverage = answer.coverage
        print(f"{coverage.measured} of {coverage.expected} steps measured", end="")
        print(f", {coverage.duplicate} figures twice")
        notes = [*coverage.missing, *coverage.stopped, *coverage.not_run, *coverage.not_needed]
        for line in notes:
            print(line)
    return answer.exit_code(strict=options.strict)


def claims(options: argparse.Namespace) -> int:
    """Print what the figures of runs say to the claims of the papers; information, so exit 0."""
    from proofmark.judge.claims.of_runs import answers_of
    from proofmark.judge.judging import judged

    runs = [open_run(folder) for folder in options.folders]
    told = answers_of((run, judged(run)) for run in runs)
    if options.json:
        _print_json([answer.as_json() for answer in told])
        return 0
    table = Table("claim", "answer", "origin", "what was found", box=None)
    for answer in told:
        table.add_row(answer.claim.id, answer.word, answer.origin or "–", answer.sentence)
    _print_table(table)
    return 0


def report(options: argparse.Namespace) -> int:
    """Write records, verdict and report of a run."""
    from proofmark.judge.judging import conclude
    from proofmark.report import write_report

    run = open_run(options.folder)
    answer = conclude(run)
    print(write_report(run, answer))
    signing.write_manifest(run.folder)
    return 0


def export(options: argparse.Namespace) -> int:
    """Write a run in a form that others collect."""
    from proofmark.judge.judging import read_and_judge
    from proofmark.report.export import KINDS
    from proofmark.report.export import export as export_run

    if options.format not in KINDS:
        found = f"{options.format!r}{nearest(options.format, KINDS)}"
        raise bad_input("--format", "", found, ", ".join(sorted(KINDS)))
    run = open_run(options.folder)
    records, answer = read_and_judge(run)
    written = export_run(options.format, run, records, answer, options.output)
    for path in written:
        print(path)
    if not written:
        raise bad_input(
            "--format", "", f"{options.format}: nothing of it in {run.id}", "a run of it"
        )
    return 0


def compare(options: argparse.Namespace) -> int:
    """Hold runs against the first of them."""
    from proofmark.judge.compare import compare as compare_runs
    from proofmark.judge.judging import judged

    runs = [open_run(folder) for folder in options.folders]
    if len({run.folder for run in runs}) < max(2, len(runs)):
        named = ", ".join(run.id for run in runs)
        raise bad_input("RUN", "", named, "two or more different runs")
    results = {
        str(folder): judged(run).results for folder, run in zip(options.folders, runs, strict=True)
    }
    for found in compare_runs(results, nodes=options.nodes):
        table = Table("figure", "first", "later", "unit", "change", "95 % interval", box=None)
        for each in found.differences:
            low, high = each.interval or (None, None)
            shown = "–" if low is None else f"{100 * low:+.1f} … {100 * (high or 0.0):+.1f} %"
            mark = " *" if each.clear else ""
            figure = " ".join(filter(None, (*each.key[:6], each.key[8])))
            change = f"{100 * each.change:+.1f} %{mark}"
            table.add_row(figure, f"{each.first:g}", f"{each.later:g}", each.unit, change, shown)
        print(f"{found.later} against {found.first} (* the interval leaves out no change)")
        _print_table(table)
        for name, keys in found.alone.items():
            print(f"{len(keys)} figures only in {name}")
            for key in keys:
                print(f"  {' '.join(filter(None, key))}")
    return 0


def sign(options: argparse.Namespace) -> int:
    """Write a run's manifest and sign it."""
    print(signing.sign(open_run(options.folder).folder, options.key))
    return 0


def verify(options: argparse.Namespace) -> int:
    """Check a run against its signed manifest; 1 if anything is not as it was signed."""
    folder = options.folder.resolve()
    found = signing.verify(folder, options.signers)
    for line in found.wrong:
        print(line)
    if found.wrong:
        print(f"{folder.name}: {len(found.wrong)} not as {found.signer} signed it")
        return 1
    print(f"{folder.name}: as {found.signer} signed it")
    return 0


def rerun(options: argparse.Namespace) -> int:
    """Run steps of a run once more."""
    run = open_run(options.folder)
    repeating.rerun(run, repeating.pick(run, options.steps), _say)
    return 0


def provide(options: argparse.Namespace) -> int:
    """Write ``software.json``."""
    run = open_run(options.folder)
    prefixes = dict(item.partition("=")[::2] for item in options.prefix)
    environments = kit_folder() / "environments"
    provide_software(
        run,
        environments,
        prefixes,
        options.probe,
        by_installed=options.installed,
        node=options.node,
    )
    return 0


def stage(options: argparse.Namespace) -> int:
    """Write the step folders."""
    run = open_run(options.folder)
    software = read_json(run.folder / "software.json", Software)
    run = leave_out(run, repeated_commands(run.plan, software))
    for step, why in run.plan.not_needed.items():
        _say(f"{step}: not needed: {why}")
    partition = site_of(run).partition
    write_steps(
        run.folder,
        run.plan,
        software,
        Path(partition.scratch.path),
        partition.scheduler,
        {name: Path(each.path) for name, each in partition.scratches.items()},
        partition.queue,
        partition.starting,
        partition.stand_ins,
    )
    return 0


def execute(options: argparse.Namespace) -> int:
    """Run the jobs."""
    run = open_run(options.folder)
    jobs.execute(run, site_of(run).partition.scheduler, _say)
    print(jobs.summary(run))
    return 0


def collect(options: argparse.Namespace) -> int:
    """Write ``nodes/*.json``."""
    run = open_run(options.folder)
    for path in collect_nodes(run):
        print(path)
    return 0
