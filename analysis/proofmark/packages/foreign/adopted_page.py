"""The sections of an adopted run: the provenance that it lacks, and the adopted files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.common.files import read_json
from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import _
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adopted import KIND, Adopted, path_of
from proofmark.packages.foreign.adopted_outputs import REASONS, missing_proof
from proofmark.plan.plan import Plan
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Section, numeric, tabled, titled
from proofmark.report.words import grouped
from proofmark.runs.run import Run, site_of

MOST_LISTED = 200
"""The largest number of files that a list shows; ``inputs/adopted.json`` has all."""


class AdoptedOnPage(Addition):
    """Shows what an adopted run is made of, and what it does not prove."""

    def of_run(self, run: Run, verdict: Verdict) -> AdoptedPage | None:
        """Return what is added to the page of an adopted run; None for a run of this kit."""
        return AdoptedPage(run, verdict) if run.plan.kind == KIND else None


@dataclass(frozen=True)
class AdoptedPage(RunAddition):
    """What is added to the page of an adopted run."""

    run: Run
    verdict: Verdict

    def sections(self) -> Iterator[AddedSection]:
        """Yield what no output proves, and the adopted files in place of the commands of a run.

        Raises:
            BadInput: ``adopted.json`` is missing or damaged.
        """
        blocks = (_lacking(), *_unjudged(self.verdict))
        title = _("Provenance that this run lacks")
        yield AddedSection(Section("missing-provenance", title, blocks))
        yield AddedSection(_files(self.run), "commands")


def _files(run: Run) -> Section:
    adopted = read_json(path_of(run.files), Adopted)
    site = site_of(run)
    rows = []
    for case, nodes in _nodes_of_cases(run.plan).items():
        number = sum(step.measurements for step in run.plan.steps() if step.case == case)
        hosts = site.partition_hosts or site.hosts
        without = folded(host for host in hosts if host not in nodes)
        patterns = ", ".join(adopted.patterns[case])
        rows.append((case, patterns, grouped(number), grouped(len(nodes)), without or "–"))
    columns = (
        _("Case"),
        _("Patterns"),
        numeric(_("Files")),
        numeric(_("Nodes")),
        _("Nodes without a file"),
    )
    caption = _("Files of each case")
    source = _("The outputs are copies of files in the folder {folder}.").format(
        folder=adopted.folder
    )
    blocks = [
        Block(paragraphs=(source,), tables=(titled(caption, columns, rows),)),
    ]
    for title, names in (
        (
            _("Paths and texts that name different nodes"),
            [f"{path}: {localized(each.message())}" for path, each in adopted.contradicted.items()],
        ),
        (_("Files that match no case"), adopted.unmatched),
        (
            _("Programs that are left over"),
            [f"{path}: {localized(why)}" for path, why in adopted.other_programs()],
        ),
        (
            _("Not read"),
            [f"{path}: {why}" for path, why in adopted.not_entered.items()],
        ),
    ):
        if names:
            more = len(names) - MOST_LISTED
            note = _("{count} more are listed in inputs/adopted.json.").format(count=more)
            items = tuple(names[:MOST_LISTED])
            shown = f"{title}: {grouped(len(names))}"
            blocks.append(
                Block(titles=(shown,), paragraphs=(note,) if more > 0 else (), items=items)
            )
    return Section("commands", _("Adopted files"), tuple(blocks))


def _lacking() -> Block:
    """Return the table of what no imported output proves."""
    rows = [
        (
            _("Exit code of the program"),
            _("A failure after the last line of an output is not found."),
        ),
        (
            _("Times of the measurements"),
            _("The figures are not compared over time, and repeats are not paired."),
        ),
        (
            _("Nodes that ran the program"),
            _(
                "A node is the one that the output or the path names. The output counts; with "
                "--node, a contradiction is INVALID."
            ),
        ),
        (
            _("Hardware and settings of the nodes"),
            _("Limits derived from the hardware do not judge. All nodes are taken as alike."),
        ),
        (
            _("Firmware mode"),
            _("Limits for a mode do not judge."),
        ),
        (
            _("Ranks, threads and their CPUs"),
            _("They are known only if the output or the path states them."),
        ),
        (
            _("Program, libraries and command line"),
            _(
                "Figures of different programs are not distinguished. "
                "Rows that are missing at the end of an output may not be found."
            ),
        ),
        (
            _("File system of the files"),
            _("A figure of a program that writes files never passes."),
        ),
        (
            _("Network of the messages"),
            _("A figure between nodes does not pass if the site names its network."),
        ),
        (
            _("Error counters, other processes and clocks"),
            _("A disturbed measurement is not found."),
        ),
    ]
    caption = _("What is not recorded, and the consequence")
    note = _(
        "Others produced these outputs. Their values were read and judged as those of an own run. "
        "Missing provenance makes no figure INVALID. A judgement that needs it is UNJUDGED."
    )
    columns = (_("Not recorded"), _("Consequence"))
    return Block(paragraphs=(note,), tables=(titled(caption, columns, rows),))


def _unjudged(verdict: Verdict) -> Iterator[Block]:
    """Yield the number of judgements that each missing proof prevented."""
    proofs = []
    for judgements in verdict.results.answers.values():
        proofs += [proof for judgement in judgements if (proof := missing_proof(judgement))]
    counts = Counter(proofs)
    if counts:
        caption = _("Judgements that missing provenance prevented")
        rows = [
            (localized(REASONS[proof]), grouped(number)) for proof, number in counts.most_common()
        ]
        columns = (_("Reason"), numeric(_("Judgements")))
        yield tabled(caption, columns, rows)


def _nodes_of_cases(plan: Plan) -> dict[str, set[str]]:
    nodes: dict[str, set[str]] = {}
    for step in plan.steps():
        nodes.setdefault(step.case, set()).update(step.nodes)
    return nodes
