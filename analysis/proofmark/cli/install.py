"""The command ``install``, its verbs for sources and bundles, ``stage build-program``."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from proofmark.cli.inputs import (
    executed_run,
    inventory_of,
    kit_benchmarks,
    packages_of_kit,
    prefixes,
    read_stdin,
    site_of_run,
)
from proofmark.cli.output import print_json, print_line, print_table, print_text
from proofmark.common.errors import bad_input
from proofmark.common.files import read_regular, write_private
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.progress_lines import say
from proofmark.common.text import counted
from proofmark.plan.lacking import refuse_lacking
from proofmark.runs.run import Run
from proofmark.runs.stage_faults import noting_faults
from proofmark.site.partition import Toolchain
from proofmark.software.environments import build, not_built, own_packages, with_own
from proofmark.software.installed import ProvisionRequest, Sources
from proofmark.software.provider import PROVIDERS
from proofmark.software.spack import bundle as bundles
from proofmark.software.spack import install as spack
from proofmark.software.spack.installation import (
    SpackInstallation,
    bootstrap,
    installation_in,
    this_system,
)
from proofmark.software.spack.lock_check import PINS, load_mapping
from proofmark.software.spack.mirror import (
    Located,
    locate,
    read_sources,
)

MISSING = 1
"""The exit code if the mirror lacks a source."""
WORDS = {"found": "found", "missing": "missing", "other-checksum": "another checksum"}


def site_locks(options: Namespace) -> Path | None:
    """Return the folder of locks of the site that ``-i`` names; None without ``-i``."""
    return inventory_of(options).folder / "locks" if options.inventory else None


def install(options: Namespace) -> int:
    """Install the programs of a run, or report missing packages; print the result as JSON."""
    run = executed_run(options.folder)
    with nullcontext() if options.check else noting_faults(run.folder, "build"):
        return _install(options, run)


def _install(options: Namespace, run: Run) -> int:
    kit = kit_folder()
    modules = read_stdin(dict[str, str]) if options.modules else {}
    # The site has folders of locks, and names of modules.
    site = site_of_run(options, run, {"provision_from": options.origin})
    site = site.model_copy(update={"toolchain": Toolchain(options.toolchain or site.toolchain)})
    programs, environments = _programs(run), kit / "environments"
    refuse_lacking(run.plan.suite, programs, site, packages_of_kit)
    own = programs.keys() & own_packages(environments) - site.partition.preinstalled.keys()
    folder = prefixes(options)
    request = ProvisionRequest(
        kit=kit,
        arch=site.partition.environment,
        programs={name: each for name, each in programs.items() if name not in own},
        prefixes=folder,
        sources=Sources(
            spack=options.spack,
            packages=options.spack_packages,
            mirror=options.sources,
        ),
        site_locks=site.inventory / "locks",
        bundle=options.bundle,
        toolchain=site.toolchain,
        jobs=options.jobs,
        facts=site.partition.facts,
        preinstalled=site.partition.preinstalled,
        module_output=modules,
    )
    provider = PROVIDERS.get(options.origin)(request)
    missing, own_missing = provider.missing(), not_built(environments, own, folder)
    installed = None if options.check and missing else provider.install()
    if installed is not None:
        compiled = own.difference(own_missing) if options.check else own
        installed = with_own(installed, environments, compiled, folder)
        target = run.files.installed
        text = installed.model_dump_json(indent=1) + "\n"
        same = target.exists() and read_regular(target) == text.encode()
        if not options.check and not same:
            write_private(target, text)
    print_json(
        {
            "missing": [*missing, *own_missing],
            "needs": installed.probe_requests() if installed else [],
            "modules": provider.modules() if installed else {},
        }
    )
    return 0


def _programs(run: Run) -> dict[str, list[str]]:
    """Return the programs of a run, by package.

    Raises:
        BadInput: a package is in no case of the kit.
    """
    known = {case.package for case in kit_benchmarks().cases.values()}
    programs = run.plan.packages()
    if unknown := sorted(programs.keys() - known):
        raise bad_input("RUN", "package", ", ".join(unknown), "packages of the cases of the kit")
    return programs


def build_program(options: Namespace) -> int:
    """Compile the program of a package of the kit; print its path."""
    kit = kit_folder()
    built = build(kit / "environments", options.package, prefixes(options))
    print_text("\n".join(built.programs.values()))
    return 0


def system_of(options: Namespace) -> str:
    """Return the system of a lock.

    Raises:
        BadInput: the option names another system than this one.
    """
    system = this_system().name
    if options.os not in (None, "", system):
        raise bad_input("OS", "", options.os, f"{system}: a lock is made on its own system")
    return system


def ready(options: Namespace, kit: Path) -> SpackInstallation:
    """Install Spack at its pins and return the installation.

    Raises:
        BadInput: a checkout is not at its pin, or cannot be cloned.
    """
    sources = Sources(spack=options.spack, packages=options.spack_packages)
    installation = installation_in(prefixes(options), sources)
    installation.root.mkdir(parents=True, exist_ok=True)
    bootstrap(installation, kit, load_mapping(kit / PINS), sources)
    return installation


def _request(options: Namespace, kit: Path) -> tuple[ProvisionRequest, spack.ChosenLock]:
    """Return a request for the packages of the options, or for all of the lock, and the lock."""
    system = system_of(options)
    request = ProvisionRequest(
        kit=kit,
        arch=options.arch,
        programs={},
        prefixes=prefixes(options),
        # A bundle may get sources that the folder lacks from the addresses of the recipes.
        sources=Sources(
            spack=options.spack,
            packages=options.spack_packages,
            mirror=options.sources,
            upstream=True,
        ),
        site_locks=site_locks(options),
    )
    chosen = spack.choose_lock(request, system)
    names = options.package or sorted(chosen.lock.roots)
    programs: dict[str, set[str]] = {chosen.lock.root(name).name: set() for name in names}
    return replace(request, programs=programs), chosen


def sources(options: Namespace) -> int:
    """List the sources of a lock, and which of them a folder has."""
    kit, mirror = kit_folder(), options.mirror
    if mirror and not mirror.is_dir():
        raise bad_input("--mirror", "", f"{mirror}", "a folder")
    request = ProvisionRequest(
        kit=kit,
        arch=options.arch,
        programs={},
        prefixes=result_folder(kit, ".provision"),
        site_locks=site_locks(options),
    )
    lock = spack.choose_lock(request, options.os or this_system().name).lock
    specs = lock.missing(options.package or sorted(lock.roots), ())
    found = locate(read_sources(lock), {spec.label for spec in specs}, [mirror] if mirror else [])
    if options.format == "json":
        print_json([_fields(each, mirror) for each in found])
    else:
        _print_sources(lock.source, found, mirror)
    return MISSING if mirror and any(each.state != "found" for each in found) else 0


def _fields(each: Located, mirror: Path | None) -> dict[str, object]:
    state = {"state": each.state, "found": each.file and str(each.file)} if mirror else {}
    return {"package": each.label, **each.source.model_dump(mode="json"), **state}


def _print_sources(lock: Path, found: list[Located], mirror: Path | None) -> None:
    rows = []
    for each in found:
        source = each.source
        state = (WORDS[each.state],) if mirror else ()
        checksum = source.sha256 or "none"
        rows.append((each.label, source.name, *state, checksum, " ".join(source.addresses)))
    state_title = ("mirror",) if mirror else ()
    print_table(("package", "file", *state_title, "SHA-256", "addresses"), rows)
    print_line(f"{counted(len(found), 'file')} of {lock}")
    if mirror:
        missing = [each.source.name for each in found if each.state != "found"]
        bring = f"bring {', '.join(missing)}; any name serves" if missing else "nothing to bring"
        print_line(f"{mirror} has {len(found) - len(missing)} of {len(found)}: {bring}")


def bundle(options: Namespace) -> int:
    """Pack Spack, its recipes, sources, wheels and the lock."""
    kit = kit_folder()
    request, chosen = _request(options, kit)
    pins = load_mapping(kit / PINS)
    with tempfile.TemporaryDirectory(dir=options.target.resolve().parent) as scratch:
        folder = Path(scratch) / "bundle"
        folder.mkdir()
        with spack.prepare(request, chosen) as prepared:
            installation = prepared.installation
            for checkout, name, pin in (
                (installation.spack, "spack.git", pins["spack"]),
                (installation.packages, "packages.git", pins["spack_packages"]),
            ):
                bundles.copy_repository(checkout, pin["tag"], folder / name)
            hashes = [spec.hash for spec in chosen.lock.missing(request.programs, ())]
            say(f"downloading the sources of {counted(len(hashes), 'spec')}")
            command = installation.command("-e", str(prepared.environment))
            variables = installation.environment()
            bundles.download_sources(command, variables, folder / "mirror", hashes)
        say("downloading wheels")
        requirements = [kit / "requirements" / name for name in ("spack.txt", "run.txt")]
        bundles.download_wheels(requirements, folder / "wheels")
        count = bundles.pack(folder, options.target, chosen.lock.source)
    print_line(f"{options.target}: {count} files, SHA-256 {bundles.digest(options.target)}")
    return 0
