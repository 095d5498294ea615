"""The summary of a run: its parts, with at most the rows of an allowance."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.translation import _, translated
from proofmark.judge.verdict import WORDS
from proofmark.report.run_data import RunData
from proofmark.report.sheet import Allowance, Party, Sheet, Tally, clipped
from proofmark.report.sheet_exceptions import exceptions_part, nodes_part
from proofmark.report.sheet_facts import digests_part, facts
from proofmark.report.sheet_limits import limits_part
from proofmark.report.summary import headline, overall
from proofmark.report.text import grouped

LONGEST_SENTENCE = 320
LONGEST_TITLE = 70


def sheet(run_data: RunData, sums: Mapping[str, str], allowance: Allowance) -> Sheet:
    """Return the summary of a run.

    Args:
        run_data: the run.
        sums: the SHA-256 of each file of the run by its name, as in ``SHA256SUMS``.
        allowance: the largest number of rows of the parts that can be long.
    """
    verdict, plan = run_data.verdict, run_data.run.plan
    lines = (_("Name"), _("Role"), _("Place, date"), _("Signature"))
    return Sheet(
        kit=_("Acceptance summary"),
        title=clipped(_("Acceptance of {system}").format(system=plan.system), LONGEST_TITLE),
        word=overall(verdict),
        sentence=clipped(headline(verdict), LONGEST_SENTENCE),
        tallies=tuple(Tally(word, grouped(verdict.counts[word])) for word in WORDS),
        facts=facts(run_data),
        parts=(
            limits_part(run_data, allowance),
            exceptions_part(run_data, allowance),
            nodes_part(run_data, allowance),
            digests_part(run_data, sums),
        ),
        signature=_("Signatures"),
        declaration=_(
            "The parties have read the verdict {word}, the exceptions and the bad nodes on these "
            "pages. The full report and all outputs are in the run {run}."
        ).format(word=translated(overall(verdict)), run=clipped(run_data.run.id, LONGEST_TITLE)),
        parties=(Party(_("For the customer"), lines), Party(_("For the supplier"), lines)),
        footer=_("Run {run}").format(run=clipped(run_data.run.id, LONGEST_TITLE)),
    )
