"""The commands, their arguments and their examples: what ``--help`` shows.

The function of a command is in the module of its name, which is imported when the command runs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from proofmark.cli.command import (
    ArgumentUse,
    Command,
    above_zero,
    added_arguments,
    credentials_argument,
    flag,
    language_argument,
    limit_argument,
    path_option,
    planned_options,
    planned_run_arguments,
    prefixes_argument,
    repeats_argument,
    run_argument,
    runs_folder_argument,
    site_argument,
    site_arguments,
    suite_argument,
    verb_argument,
    whole,
)
from proofmark.common.input_limits import MAX_PARALLEL, MAX_WAIT_S
from proofmark.common.kit import DEFAULT_SUITE


def _site_arguments(parser: ArgumentParser) -> None:
    note = "a folder of inventory/, or a path (default: print the chosen site)"
    parser.add_argument("site", metavar="SITE", nargs="?", help=note)


ACCEPTANCE_VERBS = {
    "check": "Print the suites that measure each item; refuse items that no suite can judge",
    "judge": "Judge the acceptance by the sealed runs of the site, and write its page",
    "measure": "Run the suites that the contract still needs, one after the other, then judge",
    "sign": "Sign the page of the acceptance with the data that it shows",
    "waive": "Waive an item that is not met, with the signature of a signer of the contract",
    "witness": "State what was seen of a witnessed item, with the signature of a signer",
}


def _acceptance_arguments(parser: ArgumentParser) -> None:
    verb_argument(parser, ACCEPTANCE_VERBS)
    site_argument(parser, "the site")
    limit_argument(parser, "a partition (default: all)", default="compute")
    note = "only these runs (default: all sealed ones with this contract)"
    parser.add_argument("--run", nargs="+", type=Path, default=[], metavar="RUN", help=note)
    runs_folder_argument(parser)
    note = (
        "judge, measure: the folder of acceptance.html (default: acceptance-SITE beside the runs)"
    )
    path_option(parser, "--output", "FOLDER", note, "-o")
    flag(parser, "--json", "judge, measure: print JSON")
    language_argument(parser)
    parser.add_argument("--item", default="", help="waive, witness: the number of the item")
    parser.add_argument("--by", default="", help="waive, witness: the signer in contract.yml")
    parser.add_argument("--reason", default="", help="waive: why; witness: what was seen")
    note = "witness: a file that belongs to it, such as a delivery note (again for each)"
    path_option(parser, "--attach", "FILE", note, action="append", default=[])
    flag(parser, "--missed", "witness: the item is not met")
    path_option(parser, "--key", "FILE", "waive, witness, sign: private ssh key")
    flag(parser, "--check", "measure: preview each suite, and write no page")
    note = "measure: an argument of ansible-playbook, without a suite (again for each)"
    parser.add_argument("--playbook", action="append", default=[], metavar="WORD", help=note)


def _cases_arguments(parser: ArgumentParser) -> None:
    suite_argument(parser, default=None)
    flag(parser, "--check", "check each file of benchmarks/, and print nothing")
    flag(parser, "--schema", "print the JSON Schema of a case file")


def _check_arguments(parser: ArgumentParser) -> None:
    site_argument(parser, "the site")
    limit_argument(parser, "a partition, or hosts of one (default: all)", default="compute")
    note = (
        f"only this suite, which must lack no program (default: all suites, with --nodes "
        f"{DEFAULT_SUITE}; {DEFAULT_SUITE} must lack none)"
    )
    suite_argument(parser, None, note)
    repeats_argument(parser)
    prefixes_argument(parser)
    note = "ask the nodes, the scheduler and the BMCs too: log-ins, clocks, rights; change nothing"
    flag(parser, "--nodes", note)
    credentials_argument(parser)
    note = "with --nodes: the end of the maintenance window"
    parser.add_argument("--window-ends", metavar="TIME", help=note)


def _plan_arguments(parser: ArgumentParser) -> None:
    site_argument(parser)
    limit_argument(parser, required=True)
    suite_argument(parser)
    repeats_argument(parser)
    added_arguments("plan", parser)
    parser.add_argument("--provision-from", help="replaces the value of the inventory")
    parser.add_argument("--scratch-dir", help="replaces the value of the inventory")
    runs_folder_argument(parser)
    prefixes_argument(parser)
    parser.add_argument("--reservation", help="replaces the value of the inventory's queue")
    parser.add_argument("--only", metavar="NODES", help="only these nodes of the limit")
    flag(parser, "--json", "print the plan as JSON; refuse what a run would refuse")
    note = "a new or empty folder for the scripts of jobs and steps, and the inputs of the programs"
    path_option(parser, "--output", "DIR", note, "-o")
    flag(parser, "--reach", "log in to the nodes, and print which do not answer")
    note = "print every step; --step prints one step whole"
    parser.add_argument("-v", "--verbose", action="store_true", help=note)
    note = "a step, by id or number: its launch line, environment, inputs and job"
    parser.add_argument("--step", metavar="ID", help=note)
    flag(parser, "--create", "create the run, or continue it")
    parser.add_argument("--run-id", help="with --create: the run's name")
    note = "with --create: the accepted runs to compare with, or none (default: accepted)"
    parser.add_argument("--baseline", help=note)
    flag(parser, "--fresh", "with --create: never continue a run")
    flag(
        parser,
        "--accept-unjudged",
        "with --create: although required metrics or limits cannot be judged",
    )
    flag(parser, "--no-link", "with --create: leave runs/latest-<site> as it is")


MODES_VERBS = {
    "enter": "Change the nodes with waiting steps of the mode to it",
    "verify": "Verify on each node that it is in the mode; change nothing",
    "restore": "Restore every node that the run has changed or drained",
    "status": "Print the state of each node from its journal",
    "check": "Print the changes that the mode needs on each node, and their duration; change "
    "nothing",
}


def _modes_arguments(parser: ArgumentParser) -> None:
    verb_argument(parser, MODES_VERBS)
    planned_run_arguments(parser)
    parser.add_argument("--scratch-dir", help="see plan")
    parser.add_argument("--mode", help="a mode of the run's plan")
    credentials_argument(parser)
    flag(parser, "--confirm-reboot", "required for enter and restore")
    flag(
        parser,
        "--take-over",
        "take nodes that another run or controller holds, or whose mode it has changed",
    )


SCRATCH_VERBS = {
    "check": "Print what would be mounted, and check the directory; change nothing",
    "verify": "Mount what is not mounted, and verify that all nodes can use one and the same "
    "directory",
    "unmount": "Unmount what this run mounted",
    "clean": "Remove the files that the run left in scratch",
}


def _scratch_arguments(parser: ArgumentParser) -> None:
    verb_argument(parser, SCRATCH_VERBS)
    planned_run_arguments(parser)
    parser.add_argument("--mode", help="only the nodes with waiting steps of this mode")
    parser.add_argument("--scratch-dir", help="the directory; it must be the one of the run")
    parser.add_argument("--user", help="the run user; default: the one of the inventory")
    flag(parser, "--existing", "do not create the directory")


def _rerun_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument(
        "steps", metavar="STEP", nargs="+", help="step ids, numbers, or <step>/<node>"
    )
    parser.add_argument(
        "--replaces",
        metavar="REASON",
        default="",
        help="why earlier crashes of these steps say nothing about the nodes; the report has it",
    )


def _status_arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    flag(parser, "--watch", "print each change until the run ends")
    flag(parser, "--json", "print the same as JSON")
    flag(parser, "--steps", "list every step")
    flag(parser, "--plan", "print a summary of the plan as JSON")
    note = "RUN is the folder of all runs; take the newest run of the site with this inventory"
    parser.add_argument("--newest-of", metavar="SITE", action="append", default=[], help=note)


def _verdict_arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    parser.set_defaults(instead=None)
    added_arguments("verdict", parser)
    note = "print every figure that is FAIL, INVALID or PASS, with its reason and file"
    flag(parser, "--all", note)
    flag(parser, "--json", "print JSON")
    flag(parser, "--strict", "exit 4 if anything is UNJUDGED")
    language_argument(parser)


def _report_arguments(parser: ArgumentParser) -> None:
    run_argument(parser, optional=True)
    flag(
        parser,
        "--json",
        "print the verdict without its results as JSON, and its last three lines on stderr",
    )
    flag(parser, "--strict", "with --json: exit_code is 4 if anything is UNJUDGED")
    note = "the inventory that the next command names (default: inventory/ and the site's name)"
    parser.add_argument("-i", "--inventory", default="", help=note)
    language_argument(parser)


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    path_option(parser, "--key", "FILE", "private ssh key", required=True)


def _verify_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    path_option(parser, "--signers", "FILE", "allowed_signers (ssh-keygen(1))", required=True)
    note = "keys that are no longer accepted: a list of public keys, or a KRL (ssh-keygen(1))"
    path_option(parser, "--revoked", "FILE", note)


BASELINE_VERBS = {
    "accept": "Add a signed run to a baseline of its partition",
    "export": "Write the figures of a baseline as items of a contract",
    "remove": "Remove a baseline of the partition of a run; the runs stay",
    "show": "Print the baselines of the partition of a run",
}


def _baseline_arguments(parser: ArgumentParser) -> None:
    verb_argument(parser, BASELINE_VERBS)
    run_argument(parser)
    site_arguments(parser)
    path_option(parser, "--signers", "FILE", "allowed_signers (default: that of the site)")
    note = "of the baseline (default: accepted)"
    parser.add_argument("--name", default="accepted", help=note)
    parser.add_argument("--reason", default="", help="why a run is accepted that is UNJUDGED")
    note = "who made the figures, if this kit did not"
    parser.add_argument("--label", default="", help=note)
    note = "the exported file (default: contract-items.yml)"
    path_option(parser, "--output", "FILE", note, "-o")
    flag(parser, "--replace", "remove the earlier runs from the baseline")


def _install_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    site_arguments(parser)
    parser.add_argument("--from", dest="origin", required=True, help="the provider")
    flag(parser, "--check", "report what is missing, install nothing")
    path_option(parser, "--bundle", "FILE", "a file of `proofmark install bundle`")
    flag(
        parser,
        "--modules",
        "read the outputs of modules.sh on the node from stdin, as JSON by package",
    )
    parser.add_argument(
        "--toolchain",
        choices=("foss", "system"),
        help="of EasyBuild: built, or the site's (default: that of the inventory)",
    )
    _source_arguments(parser)
    parser.add_argument(
        "--jobs", type=whole(0, MAX_PARALLEL), default=0, help="processes per build (0: all cores)"
    )


def _source_arguments(parser: ArgumentParser) -> None:
    _spack_arguments(parser)
    path_option(parser, "--sources", "FOLDER", "a mirror with sources")


def _spack_arguments(parser: ArgumentParser) -> None:
    """Add the options that name Spack and the folder of installations to `parser`."""
    path_option(parser, "--prefixes", "FOLDER", "folder of installations")
    path_option(parser, "--spack", "SPACK", "Spack at the pinned commit")
    path_option(parser, "--spack-packages", "SPACK_PACKAGES", "its recipes at the pinned commit")


def _locked_arguments(parser: ArgumentParser, os_note: str, arch_note: str) -> None:
    """Add ARCH, ``--os`` and ``-i``, which select a lock, to `parser`."""
    parser.add_argument("arch", metavar="ARCH", help=arch_note)
    parser.add_argument("--os", help=os_note)
    site_argument(parser, "the site whose own lock is used, if it has one (default: the kit's)")


OWN_SYSTEM = "the system of the lock; it must be this one"


def _packages_of_lock_arguments(parser: ArgumentParser, os_note: str = OWN_SYSTEM) -> None:
    _locked_arguments(parser, os_note, "an environment")
    parser.add_argument("--package", action="append", default=[], help="(default: all)")


def _sources_arguments(parser: ArgumentParser) -> None:
    _packages_of_lock_arguments(parser, "the system of the lock (default: this one)")
    path_option(parser, "--mirror", "FOLDER", "search the files here")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _bundle_arguments(parser: ArgumentParser) -> None:
    _packages_of_lock_arguments(parser)
    _source_arguments(parser)
    parser.add_argument("target", metavar="FILE", type=Path)


def _lock_arguments(parser: ArgumentParser) -> None:
    _locked_arguments(parser, OWN_SYSTEM, "an environment; all: each with a lock of this system")
    _spack_arguments(parser)
    flag(
        parser,
        "--compare",
        "write nothing; compare the lock with the pinned recipes by Spack's hashes: seconds",
    )
    site = parser.add_argument_group("a lock of the site of -i, with what the site has")
    flag(site, "--find", "find MPI, BLAS, gcc, tools; write spack.yaml")
    site.add_argument("--mpi", default="", help="package, prefix with bin/mpicc, or kit")
    site.add_argument("--blas", default="", help="package, path of one that was found, or kit")
    site.add_argument("--compiler", default="", help="gcc@VERSION or its prefix")
    site.add_argument(
        "--module", action="append", default=[], help="an environment module of the MPI; repeatable"
    )


def _record_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    flag(parser, "--installed", "use the run's installed.json")


def _programs_arguments(parser: ArgumentParser) -> None:
    planned_run_arguments(parser)
    parser.add_argument("--program", action="append", default=[], metavar="PATH")


def _build_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("package", metavar="PACKAGE", help="a package whose source the kit has")
    path_option(parser, "--prefixes", "FOLDER", "folder of installations")


STOPPED_EARLY = 6
"""Exit code of ``stage execute --fail-fast`` that started no further step."""


def _execute_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    flag(parser, "--scripts", "write the scripts of the steps; run no job")
    flag(
        parser,
        "--fail-fast",
        "start no further step after the first one that fails or stays disturbed; exit code "
        f"{STOPPED_EARLY}",
    )
    parser.add_argument(
        "--wait-s",
        type=above_zero(MAX_WAIT_S),
        default=0.0,
        metavar="SECONDS",
        help="of a run that nodes join: how long it waits for nodes that are down (default: not at "
        "all)",
    )
    parser.add_argument("--only", metavar="NODES", help="of a run that nodes join: only their jobs")


OWN: Mapping[str, Mapping[str, Command]] = {
    "site": {
        "site": Command(
            "check:site",
            "site nurion",
            _site_arguments,
            traced=False,
            about="Choose the site of commands without ``-i``, and print it.",
            summary="choose it for all commands",
        ),
        "acceptance": Command(
            "acceptance:acceptance",
            "acceptance judge -i inventory/example-epyc",
            _acceptance_arguments,
            traced=False,
            uses=(
                ArgumentUse("--run", beside="waive judge sign"),
                ArgumentUse("--item --by --reason", beside="waive witness"),
                ArgumentUse("--attach --missed", beside="witness"),
                ArgumentUse("--key", beside="waive witness sign"),
                ArgumentUse("--limit", beside="check judge measure sign waive"),
                ArgumentUse("--runs", beside="judge measure sign waive"),
                ArgumentUse("--language", beside="judge measure sign"),
                ArgumentUse("--output --json", beside="judge measure"),
                ArgumentUse("--playbook --check", beside="measure"),
            ),
            about="Check the contract of a site, judge its sealed runs by it, waive an item.",
            summary="contract, and all its runs",
        ),
    },
    "before a run": {
        "cases": Command(
            "check:cases",
            "cases --suite quick",
            _cases_arguments,
            uses=(
                ArgumentUse("--suite", without="--check --schema"),
                ArgumentUse("--check", without="--schema"),
            ),
            about="List cases and the suites they run in.",
            summary="list cases and suites",
        ),
        "check": Command(
            "check:check",
            "check -i inventory/nurion",
            _check_arguments,
            uses=(ArgumentUse("--credentials --window-ends", beside="--nodes"),),
            about="Check a site and its suites; with ``--nodes`` also its nodes, scheduler and "
            "BMCs.",
            summary="site, suites, nodes",
        ),
        "plan": Command(
            "plan:plan",
            "plan -i inventory/local -l local --suite quick",
            _plan_arguments,
            uses=(
                ArgumentUse("--run-id --fresh --accept-unjudged --no-link", beside="--create"),
                ArgumentUse("--output --reach --verbose --step", without="--create --json"),
                ArgumentUse("--verbose", without="--step"),
            ),
            about="Print what a run will start, and how long; write its scripts, or create the "
            "run.",
            summary="steps, time, refusals",
        ),
    },
    "run": {
        "modes": Command(
            "modes:modes",
            "modes check runs/latest-nurion -i inventory/nurion --mode snc4-flat",
            _modes_arguments,
            uses=(
                ArgumentUse(f"{planned_options()} --scratch-dir", beside="check"),
                ArgumentUse("--mode", beside="check enter verify"),
                ArgumentUse("--credentials --take-over", beside="check enter verify restore"),
                ArgumentUse("--confirm-reboot", beside="enter restore"),
            ),
            about="Change the firmware mode of the nodes of a run, check it, and restore it.",
            summary="set and restore firmware",
        ),
        "scratch": Command(
            "modes:scratch",
            "scratch check -i inventory/nurion -l knl --suite p1",
            _scratch_arguments,
            uses=(
                ArgumentUse(planned_options(), beside="check"),
                ArgumentUse("--mode --existing", beside="check verify"),
                ArgumentUse("--user", beside="check verify clean"),
            ),
            about="Mount, check, unmount and clean the scratch directory; print changed nodes.",
            summary="mount, check, clean it",
        ),
        "rerun": Command(
            "run:rerun",
            "rerun runs/latest-local 3",
            _rerun_arguments,
            about="Run steps of a run again.",
            summary="run steps again",
        ),
        "status": Command(
            "status:status",
            "status runs/latest-local --watch",
            _status_arguments,
            uses=(
                ArgumentUse("--watch --json --steps", without="--plan"),
                ArgumentUse("--steps", without="--watch"),
                ArgumentUse("--steps --watch", without="--json"),
            ),
            about="Print the progress of a run; with ``--watch``, each change until the run ends.",
            summary="progress, steps",
        ),
    },
    "judge": {
        "verdict": Command(
            "verdict:verdict",
            "verdict runs/latest-local",
            _verdict_arguments,
            uses=(ArgumentUse("--all", without="--json"),),
            about="Judge a run and print the verdict.",
            summary="judge a run",
        ),
        "report": Command(
            "verdict:report",
            "report runs/latest-local",
            _report_arguments,
            uses=(ArgumentUse("--strict --inventory", beside="--json"),),
            about="Write records, verdict and report of a run; exit code 0 for every verdict.",
            summary="write page and summary",
        ),
    },
    "sign and keep": {
        "sign": Command(
            "sign:sign",
            "sign runs/latest-local --key ~/.ssh/id_ed25519",
            _sign_arguments,
            traced=False,
            about="Sign the evidence of a run with what is made from it, or add a signature to "
            "such a folder.",
            summary="sign evidence and verdict",
        ),
        "verify": Command(
            "sign:verify",
            "verify runs/latest-local --signers allowed_signers",
            _verify_arguments,
            traced=False,
            about="Check a signed folder, judge its evidence again, and print the signed verdict "
            "last.",
            summary="check a signed run",
        ),
        "baseline": Command(
            "sign:baseline",
            "baseline accept runs/latest-nurion -i inventory/nurion",
            _baseline_arguments,
            traced=False,
            uses=(
                ArgumentUse("--signers --reason --replace --label", beside="accept"),
                ArgumentUse("--output", beside="export"),
                ArgumentUse("--name", beside="accept export remove"),
            ),
            about="Accept a signed run as the reference of later runs; print or remove accepted "
            "runs.",
            summary="accept a run for later ones",
        ),
    },
    "programs": {
        "install": Command(
            "install:install",
            "install runs/latest-local-spack --from spack",
            _install_arguments,
            about="Install the programs of a run, or report missing packages, as JSON.",
            summary="of a run; bundles",
        ),
        "lock": Command(
            "lock:lock",
            "lock knl",
            _lock_arguments,
            uses=(
                ArgumentUse("--mpi --blas --compiler --module", beside="--find"),
                ArgumentUse("--compare", without="--find"),
            ),
            about="Write the lock of an environment, or of a site; or compare it with the pinned "
            "recipes.",
            summary="pin them for a system",
        ),
    },
}
"""The commands of this room by phase, in the order of ``--help``. It has two columns and fits a
screen of 24 lines with 80 letters, so a summary has at most 27 letters."""
OF_VERBS: Mapping[str, Command] = {
    "install sources": Command(
        "install:sources",
        "install sources knl --mirror /srv/sources",
        _sources_arguments,
        about="List the sources of a lock, and which of them a folder has.",
        summary="list the sources of a lock, and which a folder has",
    ),
    "install bundle": Command(
        "install:bundle",
        "install bundle knl knl.tar",
        _bundle_arguments,
        about="Pack Spack, its recipes, sources, wheels and the lock.",
        summary="write a bundle for an installation without a network",
    ),
}
"""The further forms of a command, each with a parser of its own: its first word is a verb."""
STAGES: Mapping[str, Command] = {
    "stage record-software": Command(
        "run:record_software",
        "stage record-software runs/latest-local --installed",
        _record_arguments,
        about="Write ``software.json`` from the probes; stdin has them as JSON.",
        summary="record the programs of a run",
    ),
    "stage check-programs": Command(
        "run:programs",
        "stage check-programs runs/latest-nurion -i inventory/nurion --program /opt/hpl/bin/xhpl",
        _programs_arguments,
        about="Check on every node of a run for programs.",
        summary="check the programs on the nodes of a run",
    ),
    "stage build-program": Command(
        "install:build_program",
        "stage build-program os-noise",
        _build_arguments,
        about="Compile the program of a package of the kit; print its path.",
        summary="compile a program of the kit",
    ),
    "stage execute": Command(
        "run:execute",
        "stage execute runs/latest-local",
        _execute_arguments,
        about="Run the jobs of a run and print a summary; with ``--scripts``, only write the "
        "scripts.",
        summary="run the jobs of a run and wait for their end",
    ),
    "stage collect": Command(
        "run:collect",
        "stage collect runs/latest-local",
        traced=False,
        about="Seal what is new in a run, and read it; return 1 if a node did not prove its state.",
        summary="seal what is new in a run as its evidence",
    ),
}
"""The commands of playbooks."""
