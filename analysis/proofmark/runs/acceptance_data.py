"""``acceptance.json`` of the page of an acceptance, as far as it is read again."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.runs.evidence import open_evidence

PAGE, PAGE_DATA = "acceptance.html", "acceptance.json"


class _Run(BaseModel):
    run: str
    evidence: str


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")
    word: str
    text: str
    runs: list[_Run]


def of_page(path: Path, beside: Path) -> tuple[str, list[str]]:
    """Return the word of an acceptance, and each run that is not as it was signed.

    A run that is not in the folder `beside` is not compared: its digest is in the signed data.

    Args:
        path: of the data, whose signature was checked.
        beside: the folder of the runs.

    Raises:
        BadInput: the data cannot be read.
    """
    data = read_json(path, _Data)
    wrong = []
    for each in data.runs:
        folder = beside / each.run
        if not folder.is_dir():
            continue
        try:
            run = open_evidence(folder)
        except BadInput as error:
            wrong.append(f"{each.run}: {error}")
            continue
        if run is None or run.seal is None or run.seal.digest != each.evidence:
            wrong.append(f"{each.run}: other evidence than that of the page")
    return f"{data.word}: {data.text}", wrong
