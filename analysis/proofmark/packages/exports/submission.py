"""The files of a submission of HPL."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.files import copy_whole, is_regular
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.export import Export
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Records
from proofmark.runs.attempts import numbered_execution
from proofmark.runs.run import Run


class HplSubmission(Export):
    """Writes input, output, script and binding of each HPL step, for a submission."""

    content = "input, output, script and binding of each HPL step, for a submission"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Copy the files of a submission, for each step with an ``HPL.dat`` and a valid record.

        They are those of the newest execution with a valid record.
        """
        valid = {record.step: record.attempt for record in records if record.valid}
        written: list[Path] = []
        for step, newest in sorted(valid.items()):
            execution = numbered_execution(run.files.step(step), newest)
            if not is_regular(execution.folder / "HPL.dat"):
                continue
            target = folder / step
            target.mkdir(parents=True, exist_ok=True)
            script = run.files.scripts.step(StepInstance.parse(step).step).program_script
            for path in (script, *execution.submitted()):
                if is_regular(path):
                    copy_whole(path, target / path.name)
                    written.append(target / path.name)
        if written:
            software = run.files.software
            copy_whole(software, folder / software.name)
            written.append(folder / software.name)
        return written
