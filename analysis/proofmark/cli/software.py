"""The commands ``install``, ``bundle``, ``cache`` and ``lock``."""

from __future__ import annotations

import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.checkout import kit_folder
from proofmark.cli.command import Command, run_argument
from proofmark.cli.output import print_json
from proofmark.common.errors import bad_input
from proofmark.common.files import write_whole
from proofmark.common.messages import say
from proofmark.runs.run import open_run, site_of
from proofmark.software.provider import PROVIDERS, ProvisionRequest, programs_of
from proofmark.software.spack import buildcache
from proofmark.software.spack import bundle as bundles
from proofmark.software.spack import install as spack
from proofmark.software.spack.installation import Sources, SpackInstallation, bootstrap, home_of
from proofmark.software.spack.lock_check import make


def _install_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--from", dest="origin", choices=PROVIDERS.names(), required=True)
    parser.add_argument(
        "--check", action="store_true", help="report what is missing, install nothing"
    )
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="a file of `proofmark bundle`")
    parser.add_argument("--loaded", action="append", default=[], metavar="PACKAGE=FILE")
    _source_arguments(parser)


def _lock_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("arch", metavar="ARCH", help="an environment")
    parser.add_argument("--os", help="the system of the lock; it must be this one")
    _source_arguments(parser)


def _bundle_arguments(parser: ArgumentParser) -> None:
    _lock_arguments(parser)
    parser.add_argument("target", metavar="FILE", type=Path)
    parser.add_argument("--package", action="append", default=[], help="(default: all)")


def _cache_arguments(parser: ArgumentParser) -> None:
    _lock_arguments(parser)
    parser.add_argument("target", metavar="FOLDER", type=Path)
    parser.add_argument("--key", required=True, help="a key of your GnuPG keyring that signs")
    parser.add_argument("--package", action="append", default=[], help="(default: all)")


def _source_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--prefixes", type=Path, metavar="FOLDER", help="folder of installations")
    parser.add_argument("--spack", type=Path, help="Spack at the pinned commit")
    parser.add_argument("--spack-packages", type=Path, help="its recipes at the pinned commit")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="a mirror with sources")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="a signed build cache")
    parser.add_argument("--cache-key", type=Path, metavar="FILE", help="its public key")
    parser.add_argument("--jobs", type=int, default=0, help="processes per build (0: all cores)")


def _sources(options: Namespace) -> Sources:
    return Sources(
        spack=options.spack,
        packages=options.spack_packages,
        mirror=options.sources,
        cache=options.cache,
        key=options.cache_key,
    )


def _prefixes(options: Namespace, kit: Path) -> Path:
    given: Path = options.prefixes or kit / ".provision"
    return given.resolve()


def install(options: Namespace) -> int:
    """Install the programs of a run, or report missing packages; print the result as JSON."""
    run, kit = open_run(options.folder), kit_folder()
    files = dict(item.partition("=")[::2] for item in options.loaded)
    request = ProvisionRequest(
        kit=kit,
        site=site_of(run),
        programs=programs_of(run.plan),
        prefixes=_prefixes(options, kit),
        sources=_sources(options),
        bundle=options.bundle,
        jobs=options.jobs,
        loaded={name: Path(file).read_text() for name, file in files.items()},
    )
    provider = PROVIDERS.get(options.origin)(request)
    missing = provider.missing()
    installed = None if options.check and missing else provider.install(say)
    if installed is not None:
        target = run.files.installed
        text = installed.model_dump_json(indent=1) + "\n"
        if not options.check and not (target.exists() and target.read_text() == text):
            write_whole(target, text)
    print_json(
        {
            "missing": missing,
            "needs": installed.needs() if installed else [],
            "modules": provider.modules() if installed else {},
        }
    )
    return 0


def _this_system(options: Namespace) -> str:
    system = spack.this_system()
    if options.os not in (None, "", system):
        raise bad_input("OS", "", options.os, f"{system}: a lock is made on its own system")
    return system


def _ready(options: Namespace, kit: Path) -> SpackInstallation:
    """Return Spack at its pinned commits."""
    sources = _sources(options)
    home = home_of(_prefixes(options, kit), sources)
    home.root.mkdir(parents=True, exist_ok=True)
    bootstrap(home, kit, spack.read_pins(kit), sources, say)
    return home


def lock(options: Namespace) -> int:
    """Write the lock of an environment."""
    kit, system = kit_folder(), _this_system(options)
    home = _ready(options, kit)
    make(kit, options.arch, system, home.spack, home.packages, home.python)
    print(kit / "environments" / options.arch / system / "spack.lock")
    return 0


def _order(options: Namespace, kit: Path, system: str) -> tuple[spack.Order, spack.Choice]:
    """Return the order of the chosen packages (default: all packages of the lock) and the lock."""
    order = spack.Order(kit, options.arch, {}, _prefixes(options, kit), _sources(options))
    choice = spack.choose_lock(order, system)
    names = options.package or sorted(choice.lock.roots)
    programs: dict[str, set[str]] = {choice.lock.root(name).name: set() for name in names}
    return spack.Order(kit, options.arch, programs, order.prefixes, order.sources), choice


def bundle(options: Namespace) -> int:
    """Write a bundle: Spack, its recipes, sources, wheels, the lock and, as an option, a cache."""
    kit, system = kit_folder(), _this_system(options)
    order, choice = _order(options, kit, system)
    pins = spack.read_pins(kit)
    # The cache of --cache goes into the bundle. Nothing is installed from it.
    carried, order = order.sources.cache, _without_cache(order)
    with tempfile.TemporaryDirectory(dir=options.target.resolve().parent) as scratch:
        folder = Path(scratch) / "bundle"
        folder.mkdir()
        with spack.prepared(order, choice, say) as bench:
            for checkout, name, pin in (
                (bench.home.spack, "spack.git", pins["spack"]),
                (bench.home.packages, "packages.git", pins["spack_packages"]),
            ):
                bundles.bare(checkout, pin["tag"], folder / name)
            specs = [spec.hash for spec in choice.lock.missing(order.programs, ())]
            say(f"getting the sources of {len(specs)} specs")
            command = bench.home.command("-e", str(bench.environment))
            bundles.sources(command, bench.home.environment(), folder / "mirror", specs)
        say("getting wheels")
        requirements = [kit / "requirements" / name for name in ("spack.txt", "run.txt")]
        bundles.wheels(requirements, folder / "wheels")
        if carried:
            shutil.copytree(carried, folder / "cache")
        shutil.copy(choice.lock.source, folder / "spack.lock")
        made = bundles.pack(
            folder,
            options.target,
            arch=options.arch,
            os=system,
            commits={name: str(pins[name]["commit"]) for name in ("spack", "spack_packages")},
            lock=bundles.digest(choice.lock.source),
            packages=tuple(order.programs),
        )
    print(f"{options.target}: {len(made.files)} files, SHA-256 {bundles.digest(options.target)}")
    return 0


def _without_cache(order: spack.Order) -> spack.Order:
    given = order.sources
    sources = Sources(spack=given.spack, packages=given.packages, mirror=given.mirror)
    return spack.Order(order.kit, order.arch, order.programs, order.prefixes, sources)


def cache(options: Namespace) -> int:
    """Push the installed packages of an environment to a signed build cache."""
    kit, system = kit_folder(), _this_system(options)
    order, choice = _order(options, kit, system)
    with spack.prepared(_without_cache(order), choice, say) as bench:
        installed = bench.home.installed()
        roots = {choice.lock.root(name).hash for name in order.programs}
        if lacking := sorted(choice.lock.specs[each].label for each in roots - installed.keys()):
            raise bad_input(
                "cache", "", f"{', '.join(lacking)}: not installed", "installed packages"
            )
        buildcache.push(bench.home, bench.environment, roots, options.target, options.key)
    print(f"{options.target}: {len(buildcache.cached(options.target))} specs")
    return 0


COMMANDS = {
    "install": Command(install, "install runs/latest --from spack", _install_arguments),
    "lock": Command(lock, "lock knl", _lock_arguments),
    "bundle": Command(bundle, "bundle knl knl.tar", _bundle_arguments),
    "cache": Command(cache, "cache knl /srv/cache --key site", _cache_arguments),
}
