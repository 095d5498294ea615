"""The command ``sources``, and the option that selects the locks of a site."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.cli.site import inventory_of, site_argument
from proofmark.common.errors import bad_input
from proofmark.common.kit import kit_folder, result_folder
from proofmark.software.request import ProvisionRequest
from proofmark.software.spack import install as spack
from proofmark.software.spack.lock_sources import read_sources
from proofmark.software.spack.mirror import Located, State, locate
from proofmark.software.spack.system import this_system

MISSING = 1
"""The exit code if the mirror lacks a source."""
WORDS = {
    State.FOUND: "found",
    State.MISSING: "missing",
    State.OTHER_CHECKSUM: "another checksum",
    State.NO_CHECKSUM: "found, no checksum",
}


def lock_arguments(parser: ArgumentParser, os_note: str) -> None:
    """Add ARCH, ``--os`` and ``-i``, which select a lock, to `parser`."""
    arch = parser.add_argument("arch", metavar="ARCH", help="an environment")
    complete(arch, Words.ENVIRONMENT)
    parser.add_argument("--os", help=os_note)
    site_argument(parser, "the site whose own lock is used, if it has one (default: the kit's)")


def packages_argument(parser: ArgumentParser) -> None:
    """Add ``--package`` to `parser`."""
    parser.add_argument("--package", action="append", default=[], help="(default: all)")


def site_locks(options: Namespace) -> Path | None:
    """Return the folder of locks of the site that ``-i`` names; None without ``-i``."""
    return inventory_of(options).folder / "locks" if options.inventory else None


def _arguments(parser: ArgumentParser) -> None:
    lock_arguments(parser, "the system of the lock (default: this one)")
    packages_argument(parser)
    parser.add_argument("--mirror", type=Path, metavar="FOLDER", help="search the files here")
    parser.add_argument("--format", choices=("table", "json"), default="table")


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
    return MISSING if mirror and not all(each.usable for each in found) else 0


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
    print_line(f"{len(found)} files of {lock}")
    if mirror:
        missing = [each.source.name for each in found if not each.usable]
        bring = f"bring {', '.join(missing)}; any name serves" if missing else "nothing to bring"
        print_line(f"{mirror} has {len(found) - len(missing)} of {len(found)}: {bring}")


COMMANDS = {"sources": Command(sources, "sources knl --mirror /srv/sources", _arguments)}
