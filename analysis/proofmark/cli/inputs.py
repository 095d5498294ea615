"""The cases, the site, the run and the standard input of a command, from its options."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.suite import Benchmarks
from proofmark.cli.command import SECRETS
from proofmark.common.errors import BadInput, InputError, bad_input, refuse
from proofmark.common.input_limits import MAX_RUN_FILE_BYTES, MAX_SMALL_BYTES
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.nodesets import folded, unfold
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import first_mistake
from proofmark.common.text import size
from proofmark.common.trust import refuse_untrusted
from proofmark.machine.bmc.back_end import Credentials, credentials
from proofmark.plan.expansion import IdleLimits, located
from proofmark.plan.kinds import PlanRequest, kind_of, plan_asked
from proofmark.plan.lacking import Available, Packages, available_at, refuse_lacking
from proofmark.plan.plan import Plan
from proofmark.plan.validation import broken_rules, unprovided
from proofmark.runs.node_locks import reservation_of
from proofmark.runs.run import Run, open_run, site_of
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.choice import LINK, chosen_site
from proofmark.site.execution import MPIS_OF_LAUNCHER, doubtful
from proofmark.site.groups import COMPUTE, RESOLVED
from proofmark.site.inventory import Inventory, Site, choose_inventory, load_site, read_sites
from proofmark.site.machines import Machine, machines_of
from proofmark.site.partition import untried
from proofmark.software.provider import check_provider, packages_at

if TYPE_CHECKING:
    from proofmark.runs.acceptance import CheckedStatement

Content = TypeVar("Content")


def read_stdin(kind: type[Content]) -> Content:
    """Return the JSON in stdin as `kind`.

    Raises:
        BadInput: it is no JSON, does not fit `kind`, or is larger than `MAX_RUN_FILE_BYTES`.
    """
    return parse(TypeAdapter(kind), sys.stdin.buffer, "stdin")


def parse(adapter: TypeAdapter[Content], file: IO[bytes], name: str) -> Content:
    """Return the JSON in `file`, which messages call `name`.

    Raises:
        BadInput: it is no JSON, does not fit, or is larger than `MAX_RUN_FILE_BYTES`.
    """
    try:
        return adapter.validate_json(read_limited(file, name, MAX_RUN_FILE_BYTES))
    except ValidationError as error:
        raise bad_input(name, *first_mistake(error), "JSON of the playbooks") from None


def read_limited(file: IO[bytes], name: str, limit: int) -> bytes:
    """Return the bytes of `file`, which messages call `name`.

    Raises:
        BadInput: it has more than `limit` bytes.
    """
    content = file.read(limit + 1)
    if len(content) > limit:
        raise bad_input(name, "", "more bytes", f"at most {size(limit)}")
    return content


def inventory_of(options: Namespace) -> Inventory:
    """Return the inventory that ``-i`` names, with the groups that a play has resolved.

    Raises:
        BadInput: not exactly one site is named, or the groups cannot be read.
    """
    inventory = _named(options)
    if options.groups_fd is None:
        return inventory
    with os.fdopen(options.groups_fd, "rb") as file:
        return replace(inventory, groups=parse(RESOLVED, file, "groups of the play"))


def site_name(options: Namespace) -> str:
    """Return the name of the site that ``-i`` names.

    Raises:
        BadInput: not exactly one site is named.
    """
    return _named(options).folder.name


def _named(options: Namespace) -> Inventory:
    """Return the inventory; without ``-i`` print once which site is chosen."""
    inventory = choose_inventory(options.inventory, kit_folder)
    if not options.inventory:
        say(f"site: {inventory.folder.name}, the chosen one ({inventory.folder})")
        options.inventory = [f"{inventory.source}"]
    return inventory


def node_names(nodes: str | None) -> frozenset[str]:
    """Return the names in the value of ``--only``, a node set; none without one.

    Raises:
        BadInput: it is no node set.
    """
    try:
        return frozenset(unfold([nodes])) if nodes else frozenset()
    except ValueError as error:
        raise bad_input("--only", "", str(error), "a node set such as knl[0001-0004]") from None


def only_nodes(site: Site, nodes: str | None) -> Site:
    """Return `site` with the hosts in the node set `nodes` only; `site` itself without one.

    Raises:
        BadInput: it is no node set, or `site` does not select one of the nodes.
    """
    if not nodes:
        return site
    names = node_names(nodes)
    if others := names - set(site.hosts):
        found = f"nodes that {site.limit!r} does not select: {folded(others)}"
        raise bad_input("--only", "", found, folded(site.hosts))
    return site.model_copy(update={"hosts": tuple(h for h in site.hosts if h in names)})


def kit_benchmarks() -> Benchmarks:
    """Return the cases and suites of the kit in use."""
    return load_benchmarks(kit_folder() / "benchmarks")


def packages_of_kit(site: Site) -> Available | None:
    """Return the packages of the provider of `site`, with this checkout (`packages_at`)."""
    return packages_at(kit_folder(), site)


def unprovided_at(
    benchmarks: Benchmarks, sites: Iterable[Site], of_site: Packages = packages_of_kit
) -> list[InputError]:
    """Return the packages and programs of cases that neither the kit nor one of `sites` provides.

    A provider that cannot list its packages may have each of them: nothing is a mistake then.
    """
    from proofmark.software.environments import provided  # its models take time to import

    known = provided(kit_folder() / "environments")
    for site in sites if known else ():
        packages, mistakes = available_at(site, of_site)
        if packages is None and not mistakes:
            return []
        known = {**dict.fromkeys(packages or (), ()), **known}
        for name, entry in site.partition.preinstalled.items():
            known[name] = known[name] and {*known[name], *entry.programs}
    return unprovided(benchmarks, known) if known else []


def plan_of(
    options: Namespace, benchmarks: Benchmarks, site: Site, *, shown: bool = False
) -> tuple[Plan, Callable[[str], Machine], str]:
    """Return the plan that the options ask for, the machine of each mode, and the probe.

    A plan that is only `shown` may assume what a run has to state, and lack programs.

    Raises:
        BadInput: as `plan_asked` and `refuse_lacking`.
    """
    try:
        machines, probe = machines_of(site)
        of_modes = {mode: machines(mode) for mode in site.partition.modes}
        packages, _ = available_at(site, packages_of_kit)
        wrong = dict.fromkeys(broken_rules(benchmarks, site, of_modes, packages))
        try:
            made = plan_asked(PlanRequest(options, benchmarks, site, machines, shown=shown))
        except BadInput as error:
            if not wrong:
                raise
            raise BadInput(
                *wrong, *(error.mistakes if isinstance(error, IdleLimits) else ())
            ) from None
        refuse(wrong)
    except BadInput as error:
        raise type(error)(*(located(site, each) for each in error.mistakes)) from None
    if not shown:
        refuse_lacking(made.suite, made.packages(), site, packages_of_kit)
    return made, machines, probe


def site_of_inventory(
    options: Namespace,
    partition: str,
    overrides: Mapping[str, str | None] | None = None,
    inventory: Inventory | None = None,
) -> Site:
    """Return the site that ``-l`` selects of `inventory`, else of ``-i``, for a run on `partition`.

    The file ``inputs/site.json`` in the folder of the run is not read: it has commands, and the run
    user can write it.

    Raises:
        BadInput: no site is named, or the inventory or the limit does not have the partition.
    """
    inventory = inventory or inventory_of(options)
    if options.limit:
        site = load_site(inventory, options.limit, overrides)
        if site.partition_name != partition:
            found = f"{options.limit!r}: hosts of {site.partition_name}"
            raise bad_input("-l", "", found, f"hosts of {partition}, the partition of the run")
        return site
    sites, mistakes = read_sites(inventory, COMPUTE, overrides)
    for site in sites:
        if site.partition_name == partition:
            return site
    refuse(mistakes)
    names = ", ".join(site.partition_name for site in sites)
    raise bad_input(inventory.folder, "compute", f"no partition {partition!r} of the run", names)


def site_of_run(
    options: Namespace, run: Run, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Return the site of `run`, which has all of its nodes, from the inventory.

    It is the site that ``-i`` names, or that of the same name in this checkout: the chosen one, or
    one of ``inventory/``. The folder that the
    run remembers may be that of another checkout, and is not read. If the nodes of the run are
    reserved for it, its jobs use this reservation.

    Raises:
        BadInput: there is no such site, the run remembers another one than that of this checkout,
            or the site does not have the partition or a node of the run.
    """
    inventory = None if options.inventory else Inventory.of(_site_in_checkout(run))
    changes = {"reservation": reservation_of(run) or None, **(overrides or {})}
    site = site_of_inventory(options, run.plan.partition, changes, inventory)
    refuse_other_hosts(run, site)
    return site


def _site_in_checkout(run: Run) -> Path:
    """Return the folder of the site of `run` in this checkout.

    Raises:
        BadInput: there is none, or the run remembers another folder: the user has to choose.
    """
    here, remembered = kit_folder() / "inventory" / run.plan.site, site_of(run).inventory
    link = kit_folder() / LINK
    if link.is_symlink() and link.resolve().name == run.plan.site:
        here = chosen_site(kit_folder())
    accepted = f"-i FOLDER, the site {run.plan.site}"
    if not remembered.is_absolute():
        found = f"{run.folder.name}: a run of hosts without a site"
        raise bad_input("RUN", "", found, "a run of a site: adopt -i FOLDER -l PARTITION")
    if not here.is_dir():
        found = f"nothing; the run was planned with {remembered}, and {here} does not exist"
        raise bad_input("-i", "", found, accepted)
    if here.resolve() != remembered.resolve():
        found = f"nothing; the run was planned with {remembered}, and this checkout has {here}"
        raise bad_input("-i", "", found, accepted)
    return here


def refuse_other_hosts(run: Run, site: Site) -> None:
    """Refuse a plan with nodes that `site` does not select, unless nodes join its run.

    Raises:
        BadInput: it names these nodes.
    """
    if run.plan.site != site.name:
        found = f"the site {site.name}"
        raise bad_input("-i", "", found, f"{run.plan.site}, the site of the run")
    others = sorted(set(run.plan.nodes()) - set(site.hosts))
    if others and not kind_of(run.plan).nodes_arrive:
        found = f"nodes that {site.limit!r} does not select: {folded(others)}"
        raise bad_input(run.files.plan, "", found, f"hosts of {site.partition_name}")


def executed_run(folder: Path) -> Run:
    """Return the run in `folder`, whose programs this kit starts.

    Raises:
        BadInput: there is no run, or others produced its outputs.
    """
    run = open_run(folder)
    if not run.executed:
        found = f"{run.id}: outputs that others produced"
        raise bad_input("RUN", "", found, "a run of this kit, which has commands")
    return run


@contextmanager
def open_or_plan_run(
    options: Namespace, scratch_dir: str | None = None
) -> Iterator[tuple[Run, Site]]:
    """Yield the run in ``options.folder`` or a planned one, which is removed later, and its site.

    Raises:
        BadInput: the run does not exist, or the options to plan one are missing.
    """
    if options.folder:
        run = executed_run(options.folder)
        yield run, site_of_run(options, run, {"scratch_dir": scratch_dir})
        return
    if not options.limit:
        raise bad_input("RUN", "", "nothing", "a run's folder, or -i and -l to plan one")
    overrides = {"provision_from": options.provision_from, "scratch_dir": scratch_dir}
    site = load_site(inventory_of(options), options.limit, overrides)
    benchmarks = kit_benchmarks()
    plan, _machines, probe = plan_of(options, benchmarks, site)
    with TemporaryDirectory(prefix="proofmark-plan-") as folder:
        # Nobody runs it, so that its run user need not make a work folder.
        unused = site.model_copy(
            update={"partition": site.partition.model_copy(update={"run_user": None})}
        )
        inputs = RunInputs(plan, benchmarks, unused, probe)
        made, _ = start_or_continue(Path(folder), inputs, run_id="new", link="")
        yield made, site


def prefixes(options: Namespace) -> Path:
    """Return the folder of the installations."""
    return result_folder(kit_folder(), ".provision", options.prefixes).resolve()


def place(site: Site, options: Namespace) -> Iterator[str]:
    """Yield why the programs of `site` cannot be installed from this checkout."""
    try:
        check_provider(site.partition.provision_from, prefixes(options))
    except BadInput as error:
        yield from (f"no run from here: {mistake}" for mistake in error.mistakes)


def doubts(site: Site, benchmarks: Benchmarks) -> Iterator[str]:
    """Yield a warning for each back end that never ran, and for each doubtful run-time variable."""
    launch = site.partition.launch
    name = site.partition_name
    for key, back_end in untried(site.partition).items():
        yield f"warning: {name}: partition.{key}: {back_end!r} never ran with the real thing"
    yield from (f"warning: {name}: partition.launch: {each}" for each in launch.doubts())
    for name, case in benchmarks.cases.items():
        for each in doubtful(case.environment, MPIS_OF_LAUNCHER.get(launch.launcher, ())):
            yield f"warning: {name}: environment: {each}"


COLLECT = "proofmark stage collect RUN"


def evidence_of(folder: Path, *, again: bool = True) -> Run:
    """Return the sealed run of `folder`. A run that was never sealed is sealed now.

    Args:
        again: as in `proofmark.runs.evidence.read_evidence`.

    Raises:
        BadInput: the evidence is damaged, or as `seal`.
    """
    from proofmark.runs.evidence import open_evidence, seal

    return open_evidence(folder, again=again) or seal(folder).run()


def run_to_show(folder: Path) -> Run:
    """Return the sealed run of `folder`, or its folder as it is now, which stderr then states.

    Raises:
        BadInput: the evidence is damaged, or the folder is no run.
    """
    from proofmark.runs.evidence import open_evidence

    if sealed := open_evidence(folder, again=False):
        return sealed
    run = open_run(folder)
    say(f"{run.id}: nothing is sealed yet; its folder is read as it is now: {COLLECT}")
    return run


def checked_folder(folder: Path, signers: Path, revoked: Path | None = None) -> CheckedStatement:
    """Return the check of a signed folder: of its signatures and its files.

    Args:
        folder: a signed folder, or a run or acceptance, whose newest signed folder is taken.

    Raises:
        BadInput: nothing is signed, no signature is accepted, or another user can change a file.
    """
    from proofmark.runs.acceptance import OWN, STATEMENT, check, signed_folders

    refuse_untrusted(folder, OWN)
    resolved = folder.resolve()
    found = [resolved] if (resolved / STATEMENT).exists() else signed_folders(resolved)
    if not found:
        raise bad_input("RUN", "", f"{folder}: nothing is signed", "proofmark sign RUN")
    _refuse_inside(found[0], "--signers", signers, "an allowed_signers file")
    if revoked:
        _refuse_inside(found[0], "--revoked", revoked, "a list of revoked keys, or a KRL")
    return check(found[0], signers, revoked)


def _refuse_inside(folder: Path, option: str, file: Path, accepted: str) -> None:
    """Refuse a file that is missing or in the folder, or that another user can change."""
    if not file.is_file():
        raise bad_input(option, "", f"{file}: no such file", accepted)
    if folder in file.resolve().parents:
        raise bad_input(option, "", f"{file}: in the signed folder", f"{accepted} outside it")
    refuse_untrusted(file, f"{accepted} that only this user can change")


def credentials_of(options: Namespace) -> Credentials:
    """Return the credentials in the file of ``--credentials``, in stdin (``-``) or in `SECRETS`.

    Raises:
        BadInput: they have another format, or more than `MAX_SMALL_BYTES`.
    """
    source = options.credentials
    if not source:
        content = b""
    elif source == "-":
        content = read_limited(sys.stdin.buffer, "stdin", MAX_SMALL_BYTES)
    else:
        with Path(source).open("rb") as file:
            content = read_limited(file, source, MAX_SMALL_BYTES)
    return credentials(content, SECRETS.get())
