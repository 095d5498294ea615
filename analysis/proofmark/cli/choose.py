"""The command ``site``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.output import print_line
from proofmark.common.kit import kit_folder
from proofmark.site.choice import choose_site, chosen_site


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark site`` to `parser`."""
    note = "a folder of inventory/, or a path (default: print the chosen site)"
    complete(parser.add_argument("site", metavar="SITE", nargs="?", help=note), Words.NAME_OF_SITE)


def site(options: Namespace) -> int:
    """Choose the site of commands without ``-i``, and print it."""
    kit = kit_folder()
    if options.site:
        given = Path(options.site)
        choose_site(kit, kit / "inventory" / given if len(given.parts) == 1 else given)
    print_line(f"site: {chosen_site(kit).name} ({chosen_site(kit)})")
    return 0


COMMANDS = {"site": Command(site, "site nurion", arguments, traced=False)}
