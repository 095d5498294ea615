"""Checks the references of the cases against the systems that they are valid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.plan.expansion import all_suites
from proofmark.plan.selection import cases_of, selection_mistakes
from proofmark.site.groups import COMPUTE
from proofmark.site.inventory import Site, read_sites
from proofmark.site.machines import machines_of


def system_mistakes(benchmarks: Benchmarks, inventories: Path) -> list[InputError]:
    """Return the mistakes in references that select no figure of their own system.

    A system is a partition with a stated topology in one of the inventories. No node is probed.

    Args:
        benchmarks: all cases and suites.
        inventories: the folder with a folder for each site.
    """
    references = list(_of_systems(benchmarks))
    mistakes: list[InputError] = []

    @cache  # an inventory has several systems, and may have thousands of hosts
    def read(folder: Path) -> tuple[list[Site], list[InputError]]:
        return read_sites(folder, COMPUTE)

    for system in dict.fromkeys(reference.system for _, _, reference in references):
        named = [each for each in references if each[2].system == system]
        try:
            sites = _sites(inventories, str(system), read)
        except BadInput as error:
            mistakes += error.mistakes
            continue
        if not sites:
            known = sorted({path.stem for path in inventories.glob(f"*/{VARIABLES}/*")} - {"all"})
            found = f"{system!r}, which no inventory declares{nearest(str(system), known)}"
            accepted = f"a partition with node.topology in {inventories.name}/"
            mistakes += (
                InputError(_file(benchmarks, case), f"references.{index}.system", found, accepted)
                for case, index, _ in named
            )
            continue
        mistakes += _mistakes_on(sites, named, benchmarks)
    return mistakes


VARIABLES = "group_vars"
_Named = tuple[str, int, Reference]
"""A case, the index of one of its references, and the reference."""


def _of_systems(benchmarks: Benchmarks) -> Iterator[_Named]:
    for name, case in benchmarks.cases.items():
        for index, reference in enumerate(case.references):
            if reference.system is not None:
                yield name, index, reference


def _file(benchmarks: Benchmarks, case: str) -> str:
    return str(benchmarks.folder / f"{case}.yml")


def _sites(
    inventories: Path,
    system: str,
    read: Callable[[Path], tuple[list[Site], list[InputError]]],
) -> list[Site]:
    """Return the real partitions with the name `system` whose topology the inventory states.

    Raises:
        BadInput: the facts of such a partition are wrong.
    """
    folders = {path.parents[1] for path in inventories.glob(f"*/{VARIABLES}/{system}")}
    folders |= {path.parents[1] for path in inventories.glob(f"*/{VARIABLES}/{system}.yml")}
    found: list[Site] = []
    for folder in sorted(folders):
        sites, mistakes = read(folder)
        if mistakes:
            raise BadInput(*mistakes)
        found += (
            site
            for site in sites
            if site.partition_name == system
            and site.partition.origin == "measured"
            and site.partition.node.topology
        )
    return found


def _mistakes_on(
    sites: Sequence[Site], references: Sequence[_Named], benchmarks: Benchmarks
) -> list[InputError]:
    """Return the mistakes of the references that select no figure of any of `sites`."""
    remaining = {(case, index): list[InputError]() for case, index, _ in references}
    cases = {name for case, _, reference in references for name in cases_of(reference, case)}
    for site in sites:
        machines, _ = machines_of(site)
        suites = all_suites(benchmarks, cases, site, machines)
        for case, index, reference in references:
            if (case, index) not in remaining:
                continue
            file, key = _file(benchmarks, case), f"references.{index}"
            mistakes = list(selection_mistakes(file, key, reference, case, suites, benchmarks))
            if not mistakes:
                del remaining[case, index]
            remaining.get((case, index), []).extend(mistakes)
    return [mistake for mistakes in remaining.values() for mistake in mistakes]
