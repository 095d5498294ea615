"""The inventory of a command: the option ``-i``, and the groups that a play hands over."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from proofmark.cli.amounts import whole
from proofmark.cli.command import Words, complete
from proofmark.cli.input import parse
from proofmark.common.errors import bad_input
from proofmark.common.kit import kit_folder
from proofmark.common.nodesets import folded, unfold
from proofmark.common.progress_lines import say
from proofmark.site.groups import RESOLVED
from proofmark.site.inventory import Inventory, Site, choose_inventory


def site_argument(parser: ArgumentParser, note: str = "the site's inventory") -> None:
    """Add ``--inventory`` to `parser`, and the option by which a play hands over its groups."""
    site = parser.add_argument("-i", "--inventory", action="append", default=[], help=note)
    complete(site, Words.SITE)
    parser.add_argument("--groups-fd", type=whole(0, 65535), help=SUPPRESS)


def limit_argument(parser: ArgumentParser, note: str = "", **options: Any) -> None:
    """Add ``--limit`` to `parser`; `note` is its help, or empty for the usual one."""
    note = note or "a partition, or hosts of one"
    limit = parser.add_argument("-l", "--limit", help=note, **options)
    complete(limit, Words.PARTITION)


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
