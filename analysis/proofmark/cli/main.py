"""The command line: arguments in, one function of `commands` called, exit code out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from proofmark import __version__
from proofmark.cli import commands
from proofmark.cli.checkout import kit_folder
from proofmark.cli.software import add_verbs
from proofmark.common.errors import BadInput
from proofmark.jobs.execute import Stopped
from proofmark.machine import node_scripts as nodes
from proofmark.machine import preflight as early
from proofmark.machine.modes import stage as switching
from proofmark.machine.scratch import stage as scratch

BAD_INPUT = 3
STOPPED = 130
BROKEN_PIPE = 141
"""As of a program that SIGPIPE ends: 0 would be a verdict."""


class _Parser(argparse.ArgumentParser):
    """argparse exits with 2 on wrong usage; here 2 means INVALID, and bad input is 3."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(BAD_INPUT)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = _Parser(prog="proofmark", description="From benchmark outputs to an acceptance verdict.")
    top.add_argument("--version", action="version", version=__version__)
    verbs = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def verb(
        name: str, run: Callable[[argparse.Namespace], int], summary: str, example: str
    ) -> argparse.ArgumentParser:
        made = verbs.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example: proofmark {example}",
        )
        made.set_defaults(run=run)
        return made

    cases = verb("cases", commands.cases, "list the cases and suites", "cases --suite quick")
    cases.add_argument("--suite", help="only the cases of this suite")
    cases.add_argument("--check", action="store_true", help="say nothing if all files are right")
    cases.add_argument("--schema", action="store_true", help="print the JSON Schema of a case file")

    plan = verb(
        "plan",
        commands.plan,
        "say what an acceptance would run, and what that costs",
        "plan -i inventory/local -l local --suite quick",
    )
    plan.add_argument("-i", "--inventory", action="append", default=[], help="the site's inventory")
    plan.add_argument("-l", "--limit", required=True, help="a partition, or hosts of one")
    plan.add_argument("--suite", default="quick", help="which suite (default: quick)")
    plan.add_argument("--provision-from", help="instead of what the inventory says")
    plan.add_argument("--scratch-dir", help="instead of what the inventory says")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    plan.add_argument("--create", action="store_true", help="make the run, or go on with it")
    plan.add_argument("--run-id", help="with --create: the run's name")
    plan.add_argument("--fresh", action="store_true", help="with --create: never go on with a run")

    validate = verb(
        "validate",
        commands.validate,
        "name everything that is wrong with a site, or say what each suite costs there",
        "validate -i inventory/nurion",
    )
    validate.add_argument("-i", "--inventory", action="append", default=[], help="the site")
    validate.add_argument("-l", "--limit", default="compute", help="a partition (default: all)")

    fabric = verb(
        "fabric",
        commands.fabric,
        "turn a topology.conf, or what ibnetdiscover printed, into a partition's fabric",
        "fabric /etc/slurm/topology.conf --names chip,line-card,switch",
    )
    fabric.add_argument("file", metavar="FILE", type=Path)
    fabric.add_argument("--names", default="", help="of the levels, the nearest first")

    read = verb("read", commands.read, "read outputs of a case", "read stream out1.txt out2.txt")
    read.add_argument("case", metavar="CASE")
    read.add_argument("files", metavar="FILE", nargs="+", type=Path)
    read.add_argument("--format", choices=("table", "csv", "json"), default="table")

    def verb_of_run(
        name: str, run: Callable[[argparse.Namespace], int], summary: str, example: str
    ) -> argparse.ArgumentParser:
        made = verb(name, run, summary, example)
        made.add_argument("folder", metavar="RUN", type=Path, help="the run's folder")
        return made

    status = verb_of_run(
        "status", commands.status, "say how far a run is", "status runs/latest --watch"
    )
    status.add_argument("--watch", action="store_true", help="follow it until it ends")
    status.add_argument("--json", action="store_true", help="print the state of each step as JSON")

    verdict = verb_of_run("verdict", commands.verdict, "judge a run", "verdict runs/latest")
    verdict.add_argument("--json", action="store_true", help="print the verdict as JSON")
    verdict.add_argument(
        "--brief",
        action="store_true",
        help="of the JSON all but the results; on stderr the three lines that end a playbook",
    )
    verdict.add_argument("--strict", action="store_true", help="exit 4 if anything is UNJUDGED")

    claims = verb(
        "claims",
        commands.claims,
        "say which claims of the papers hold on the figures of runs",
        "claims runs/latest",
    )
    claims.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="folders of runs")
    claims.add_argument("--json", action="store_true", help="print the answers as JSON")

    verb_of_run("report", commands.report, "write a run's report.html", "report runs/latest")

    compare = verb(
        "compare",
        commands.compare,
        "hold runs against the first of them, like with like",
        "compare runs/before runs/after",
    )
    compare.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="runs' folders")
    compare.add_argument("--nodes", action="store_true", help="each node with itself")

    export = verb_of_run(
        "export",
        commands.export,
        "write a run in a form that others collect",
        "export runs/latest --format perflog -o perflogs",
    )
    export.add_argument("--format", required=True, help="csv, hpl, junit, parquet or perflog")
    export.add_argument("-o", "--output", required=True, type=Path, metavar="FOLDER")

    sign = verb_of_run(
        "sign",
        commands.sign,
        "write a run's manifest and sign it with an ssh key",
        "sign runs/latest --key ~/.ssh/id_ed25519",
    )
    sign.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")
    verify = verb_of_run(
        "verify",
        commands.verify,
        "check that a run is as its signer left it",
        "verify runs/latest --signers allowed_signers",
    )
    verify.add_argument(
        "--signers", required=True, type=Path, metavar="FILE", help="who may sign (ssh-keygen(1))"
    )

    rerun = verb_of_run(
        "rerun",
        commands.rerun,
        "run steps once more, beside their first output",
        "rerun runs/latest 0004-imb-pingpong",
    )
    rerun.add_argument(
        "steps", metavar="STEP", nargs="+", help="step ids, numbers, or <step>/<node>"
    )

    provide = verb_of_run(
        "provide",
        commands.provide,
        "note which programs a run uses (for playbooks)",
        "provide runs/latest --probe hpcc.probe",
    )
    provide.add_argument("--probe", action="append", default=[], type=Path, metavar="FILE")
    provide.add_argument("--node", type=Path, metavar="FILE", help="what probe.sh facts said there")
    provide.add_argument("--prefix", action="append", default=[], metavar="PACKAGE=FOLDER")
    provide.add_argument("--installed", action="store_true", help="by the run's installed.json")
    verb_of_run("stage", commands.stage, "write a run's steps (for playbooks)", "stage runs/latest")
    verb_of_run(
        "execute", commands.execute, "run a run's jobs (for playbooks)", "execute runs/latest"
    )
    verb_of_run(
        "collect",
        commands.collect,
        "write the nodes' provenance (for playbooks)",
        "collect runs/latest",
    )
    modes = verb(
        "modes",
        switching.run,
        "bring the nodes of a run into a mode of their firmware, and back",
        "modes look runs/latest --mode snc4-flat",
    )
    switching.arguments(modes)
    checks = verb(
        "preflight",
        commands.preflight,
        "look at what has to be right before a machine is touched",
        "preflight -i inventory/nurion -l knl --suite p1 --window-ends 2026-12-01T18:00:00Z",
    )
    checks.add_argument("-i", "--inventory", action="append", default=[], help="the site")
    checks.add_argument("-l", "--limit", required=True, help="a partition, or hosts of one")
    checks.add_argument("--suite", default="quick", help="whose plan must fit (default: quick)")
    checks.add_argument("--credentials", metavar="FILE", help="as of modes")
    early.arguments(checks)
    mounts = verb(
        "scratch",
        scratch.run,
        "mount and prove the scratch directory on the nodes of a run, or take the mount away",
        "scratch look -i inventory/nurion -l knl --suite p1",
    )
    scratch.arguments(mounts)
    programs = verb(
        "programs",
        nodes.programs,
        "look on every node of a run for programs (for playbooks)",
        "programs runs/latest --program /opt/hpl/bin/xhpl",
    )
    nodes.programs_arguments(programs)
    add_verbs(verb, kit_folder)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; print what went wrong to stderr, one line each."""
    options = parser().parse_args(arguments)
    try:
        result: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return STOPPED
    except BadInput as error:
        for mistake in error.mistakes:
            print(f"proofmark: {mistake}", file=sys.stderr)
        return BAD_INPUT
    except Stopped as error:
        print(f"proofmark: stopped by {error}; the same command goes on", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would complain of it at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        print(f"proofmark: {error}", file=sys.stderr)
        return BAD_INPUT
    return result
