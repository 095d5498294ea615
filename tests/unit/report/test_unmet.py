"""What must be judged and was not: in the report, in the printed verdict, and in a written one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.kit import item
from tests.fixtures.report_run import made_run, reported

from proofmark.cli.main import main
from proofmark.packages.history.past_run import WrittenVerdict

LIMIT = item(
    text="Time of three bytes",
    case="imb-pingpong",
    metric="t_avg",
    where={"bytes": 3},
    value=1,
    source="annex 2",
    at_most=1,
)
NAMED = "limit of 1 Time of three bytes not evaluated: the output of"


def test_an_unevaluated_limit_is_in_every_form_of_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No message of IMB has three bytes. All other figures are judged as in the control."""
    run = made_run(tmp_path, limits=[LIMIT])
    verdict, page = reported(run)
    assert verdict.exit_code() == 4
    assert "Required, but not judged" in page
    assert NAMED in page
    assert "1 requirement not judged" in page
    capsys.readouterr()
    assert main(["verdict", str(run.folder)]) == 4
    assert f"not judged: {NAMED}" in capsys.readouterr().out
    written = WrittenVerdict.model_validate_json(run.files.verdict.read_bytes())
    assert written.line.startswith("UNJUDGED: 0 of 1 contract limits; ")


def test_control_an_evaluated_limit(tmp_path: Path) -> None:
    kept = LIMIT.model_copy(update={"where": {"bytes": 1048576}, "value": 1e9})
    verdict, page = reported(made_run(tmp_path, limits=[kept]))
    assert (verdict.exit_code(), verdict.contract[0].compared) == (0, 1)
    assert "Required, but not judged" not in page
