"""The section of a simulated run: the settings of the simulation, and what its model assumes."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.files import read_json
from proofmark.common.translation import _
from proofmark.plan.twin.twin import TwinFacts
from proofmark.report.page import TITLED, Block, Section, facts, table
from proofmark.report.run_data import RunData


def sections(run_data: RunData) -> Iterator[Section]:
    """Yield the section about the simulation; nothing for a measured run."""
    file = run_data.run.files.twin
    if not file.exists():
        return
    twin = read_json(file, TwinFacts)
    others = ", ".join(name for name in twin.selectors if name != twin.selector)
    about = facts(
        _("Simulation"),
        (
            (_("Algorithms of collectives, as in"), twin.selector),
            (_("Other possible algorithms"), others or "–"),
            *twin.settings.items(),
        ),
    )
    rows = [
        (each.what, each.value, _("source") if each.sourced else _("assumed"), each.why)
        for each in twin.assumptions
    ]
    columns = (_("Part of the model"), _("Value"), _("Kind"), _("Source or assumption"))
    caption = _("Assumptions of the model")
    note = _(
        "The programs are real, their communication is simulated. All figures are predicted: "
        "they are information, and none of them passes or fails."
    )
    block = Block(paragraphs=(note,), tables=(about, table(caption, columns, rows, kind=TITLED)))
    yield Section("twin", _("Simulated nodes"), (block,))
