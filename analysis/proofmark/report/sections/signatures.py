"""The fields in which the parties sign, and the digests of what they sign."""

from __future__ import annotations

from proofmark.common.files import is_regular, sha256_of
from proofmark.common.translation import _, translated
from proofmark.report.page import Block, Cell, Section, Table, titled
from proofmark.report.run_data import RunData
from proofmark.report.words import visible
from proofmark.runs.run_files import RunFiles
from proofmark.site.contract_document import Contract


def sections(run_data: RunData, products: RunFiles) -> tuple[Section, ...]:
    """Return the section; nothing without a contract, because there is nothing to accept.

    Args:
        products: the files that were made from the run.
    """
    contract = run_data.site.contract
    if not run_data.verdict.contract or contract is None:
        return ()
    declaration = _(
        "The parties have read the verdict {word}, the items and what limits it on these pages. "
        "The full report and all outputs are in the run {run}."
    ).format(word=translated(run_data.verdict.headline().word), run=run_data.run.id)
    tables = (signature_table(contract), _digests(run_data, products))
    block = Block(paragraphs=(declaration,), tables=tables)
    return (Section("signatures", _("Signatures"), (block,)),)


def signature_table(contract: Contract) -> Table:
    """Return a row for each party of a contract, with room for its signature."""
    rows = [
        (Cell(visible(name), "strong", details=(visible(role),)), "", "", "")
        for role, name in contract.parties.items()
    ]
    columns = (_("Party"), _("Name"), _("Place, date"), _("Signature"))
    return titled(_("Signatures"), columns, rows)


def _digests(run_data: RunData, products: RunFiles) -> Table:
    """Return the digests of the evidence and of what was made from it in `products`.

    The first file has all inputs and outputs of the run, and the digest of the archive before it.
    """
    files, seal, software = run_data.run.files, run_data.run.seal, run_data.software
    written = (products.verdict, products.records)
    rows = (
        *(((seal.archive, seal.digest),) if seal else ()),
        *((products.link(path), sha256_of(path)) for path in written if is_regular(path)),
        *((files.link(path), sha256_of(path)) for path in (files.plan, files.site)),
        (_("Steps of the plan"), run_data.run.plan.digest),
        (_("Programs"), software.environment_hash if software else _("not recorded")),
    )
    caption = _("Digests (SHA-256)")
    cells = [(name, Cell(digest, "code")) for name, digest in rows]
    return titled(caption, (_("File"), "SHA-256"), cells)
