"""The report section about the drivers by which programs wrote with MPI-IO."""

from __future__ import annotations

from proofmark.common.translation import _
from proofmark.report.page import Section, listed
from proofmark.report.run_data import RunData


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run without a program that writes by MPI-IO."""
    if not run_data.drivers:
        return ()
    lines = [
        f"{case}: {', '.join(names)}"
        if names
        else _("{case}: unknown, neither its output nor its MPI states it").format(case=case)
        for case, names in sorted(run_data.drivers.items())
    ]
    caption = _("The driver decides whether stripes and collective buffers fit the file system")
    return (Section("file-drivers", _("Drivers of MPI-IO"), (listed(caption, lines),)),)
