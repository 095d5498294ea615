"""The facts and the digests in the summary: the machine, the run, and what the summary is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from proofmark import __version__
from proofmark.common.files import is_regular, sha256_of
from proofmark.common.host_names import HostTable
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.translation import _, translated
from proofmark.judge.verdict import WORDS
from proofmark.report.run_data import RunData
from proofmark.report.short.sheet import (
    Allowance,
    Party,
    Sheet,
    SheetColumn,
    SheetCount,
    SheetPart,
    clipped,
)
from proofmark.report.short.sheet_exceptions import exceptions_part, nodes_part
from proofmark.report.short.sheet_key_figures import key_part
from proofmark.report.short.sheet_limits import limits_part
from proofmark.report.short.summary import headline, origin_of, overall, title, when
from proofmark.report.words import grouped, sealing, size_4_digits
from proofmark.runs.run_files import RunFiles

MOST_KINDS = 3
"""The largest number of kinds of nodes, processors or ports that are named."""
LONGEST = 110
"""The largest number of characters of a fact."""


def facts(run_data: RunData) -> tuple[tuple[str, str], ...]:
    """Return names and values: the site, the machine, the coverage and the run."""
    plan = run_data.run.plan
    suite = run_data.benchmarks.suites.get(plan.suite)
    rows = (
        (_("Site"), f"{plan.site}"),
        (_("Partition"), f"{plan.partition}"),
        (_("Nodes"), _nodes(run_data)),
        (_("Processor"), _processors(run_data)),
        (_("Memory"), _memory(run_data)),
        (_("Fabric"), _fabric(run_data)),
        (_("Modes"), _modes(run_data)),
        (_("Suite"), f"{plan.suite} – {translated(suite.title)}" if suite else plan.suite),
        (_("Coverage"), _coverage(run_data)),
        (_("Measured"), when(run_data)),
        (_("Origin"), translated(origin_of(run_data))),
        *(((_("Evidence"), sealing(run_data.run.seal)),) if run_data.run.seal else ()),
        (_("Written"), f"{run_data.written:%Y-%m-%d %H:%M UTC}, Proofmark {__version__}"),
    )
    return tuple((name, clipped(value, LONGEST)) for name, value in rows)


def _nodes(run_data: RunData) -> str:
    planned = set()
    for step in run_data.run.plan.steps_to_run():
        planned.update(step.nodes)
    names = run_data.verdict.measured()
    found: list[str] = []
    for name in names:
        found += hosts_of(name)
    measured = HostTable.of(planned).found(found)
    text = _("{measured} of {planned} measured: {names}")
    # An inventory that names this machine "localhost" reports it by another name.
    amount = len(measured) if len(planned) > 1 else min(len(names), 1)
    listed = folded(planned)
    return text.format(measured=grouped(amount), planned=grouped(len(planned)), names=listed)


def _processors(run_data: RunData) -> str:
    kinds = Counter(
        _("{model}, {sockets} × {cores} cores").format(
            model=node.cpu_model, sockets=node.sockets, cores=node.cores // max(node.sockets, 1)
        )
        for node in run_data.facts
    )
    declared = run_data.site.partition.node.cpu_model
    if not kinds and declared:
        return _("{model} (declared, not reported)").format(model=declared)
    return _kinds(kinds)


def _memory(run_data: RunData) -> str:
    # Rounded: the part that the kernel reserves differs from node to node.
    sizes = (round(node.memory_total_bytes / 2**30) * 2**30 for node in run_data.facts)
    return _kinds(Counter(size_4_digits(size) for size in sizes))


def _fabric(run_data: RunData) -> str:
    found = []
    for node in run_data.facts:
        found += [" ".join(filter(None, (port.kind, port.rate))) for port in node.ports]
    ports = Counter(found)
    levels = [level.name for level in run_data.site.partition.fabric.levels]
    parts = [_kinds(ports)] if ports else []
    parts += [_("switch levels: {names}").format(names=", ".join(levels))] if levels else []
    return "; ".join(parts) or _("none declared, no adapter reported")


def _kinds(kinds: Mapping[str, int]) -> str:
    """Return the kinds with their numbers, the most frequent first; no number for one thing."""
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    alone = sum(kinds.values()) == 1
    named = [kind if alone else f"{grouped(count)} × {kind}" for kind, count in ordered]
    more = len(ordered) - MOST_KINDS
    rest = [_("{count} more kinds").format(count=more)] if more > 0 else []
    return "; ".join([*named[:MOST_KINDS], *rest]) or _("not reported")


def _modes(run_data: RunData) -> str:
    plan = run_data.run.plan
    measured = list(dict.fromkeys(group.mode for group in plan.to_run()))
    left = [group.mode for group in plan.needed() if group.mode not in measured]
    not_run = _(" (NOT RUN: {modes})").format(modes=", ".join(dict.fromkeys(left)))
    return ", ".join(measured) + (not_run if left else "")


def _coverage(run_data: RunData) -> str:
    coverage = run_data.verdict.coverage
    text = _("{measured} of {expected} steps measured").format(
        measured=grouped(coverage.measured), expected=grouped(coverage.expected)
    )
    if not coverage.not_run:
        return text
    left = grouped(len(coverage.not_run))
    return text + _(", {left} of other modes NOT RUN").format(left=left)


def digests_part(run_data: RunData, products: RunFiles) -> SheetPart:
    """Return the digests of the evidence and of what was made from it in `products`."""
    files, seal = run_data.run.files, run_data.run.seal
    software = run_data.software
    written = (products.verdict, products.records, products.report)
    rows: Iterable[tuple[str, str]] = (
        *(((seal.archive, seal.digest),) if seal else ()),
        *((products.link(path), sha256_of(path)) for path in written if is_regular(path)),
        *((files.link(path), sha256_of(path)) for path in (files.plan, files.site)),
        (_("Steps of the plan"), run_data.run.plan.digest),
        (_("Programs"), software.environment_hash if software else _("not recorded")),
    )
    note = _(
        "The first file has all inputs and outputs of the run, and the digest of the archive "
        "before it. sha256sum prints its digest."
    )
    return SheetPart(
        "digests",
        _("Digests (SHA-256)"),
        (SheetColumn("", 24), SheetColumn("", 76, "code")),
        tuple(rows),
        notes=(note,),
    )


LONGEST_SENTENCE = 320
LONGEST_TITLE = 70


def sheet(run_data: RunData, products: RunFiles, allowance: Allowance) -> Sheet:
    """Return the summary of a run.

    Args:
        run_data: the run.
        products: the files that were made from the run.
        allowance: the largest number of rows of the parts that can be long.
    """
    verdict = run_data.verdict
    lines = (_("Name"), _("Role"), _("Place, date"), _("Signature"))
    return Sheet(
        kit=_("Summary"),
        title=clipped(title(run_data), LONGEST_TITLE),
        word=overall(verdict),
        sentence=clipped(headline(verdict), LONGEST_SENTENCE),
        tallies=tuple(SheetCount(word, grouped(verdict.counts[word])) for word in WORDS),
        facts=facts(run_data),
        parts=(
            key_part(run_data, allowance),
            limits_part(run_data, allowance),
            exceptions_part(run_data, allowance),
            nodes_part(run_data, allowance),
            digests_part(run_data, products),
        ),
        signature=_("Signatures") if verdict.contract else _("No signatures"),
        declaration=_("Without a limit of a contract there is nothing to accept and to sign.")
        if not verdict.contract
        else _(
            "The parties have read the verdict {word}, the exceptions and the bad nodes on these "
            "pages. The full report and all outputs are in the run {run}."
        ).format(word=translated(overall(verdict)), run=clipped(run_data.run.id, LONGEST_TITLE)),
        parties=(Party(_("For the customer"), lines), Party(_("For the supplier"), lines))
        if verdict.contract
        else (),
        footer=_("Run {run}").format(run=clipped(run_data.run.id, LONGEST_TITLE)),
    )
