"""What becomes the baseline of a site: an accepted run, further runs, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError
from tests.fixtures.kit import make_kit

from proofmark.common.errors import BadInput, InputError
from proofmark.judge.baseline import changes
from proofmark.judge.baseline_files import (
    Acceptance,
    JudgedFigures,
    accepted_baseline,
    extended,
)
from proofmark.judge.stated_parts import DIGITS, software_traits
from proofmark.site.accepted_baseline import (
    COLUMNS,
    AcceptedNodes,
    AcceptedRun,
    Baseline,
    ProgramTrait,
)
from proofmark.site.installed_parts import Parts
from proofmark.site.inventory import Site
from proofmark.software.software import Package, Software

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
LIBRARIES = ((ProgramTrait("trait-program", "hpl"), "2.3"),)


def rows(*origins: str) -> pl.DataFrame:
    usual = {name: 1.0 if kind is float else "x" for name, kind in COLUMNS.items()}
    return pl.DataFrame([{**usual, "origin": each} for each in origins], schema=dict(COLUMNS))


def state(nodes: str, kernel: str = "6.1", **parts: Any) -> AcceptedNodes:
    return AcceptedNodes(nodes=nodes, parts=Parts(**parts), traits={"kernel": kernel})


BOTH = state("n[1-2]")


def judged(
    origin: str = "measured", *others: str, nodes: AcceptedNodes = BOTH, **more: Any
) -> JudgedFigures:
    """Return the figures of a run that passed; `others` are further origins of its figures."""
    usual: dict[str, Any] = {
        **{"origin": "measured", "origins": sorted({origin, *others}), "code": 0, "word": "PASS"},
        **{"libraries": LIBRARIES, "nodes": (nodes,), "figures": rows(origin, *others)},
    }
    return JudgedFigures(**{**usual, **more})


def stated(**changes: Any) -> Acceptance:
    usual = {"name": "accepted", "when": WHEN, "signer": "ida@buyer", "checksums": "c1"}
    return Acceptance(**{**usual, **changes})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_kit(tmp_path_factory.mktemp("kit")).site(hosts=("n1", "n2"))


@pytest.mark.parametrize(
    ("figures", "terms", "verdict", "origin"),
    [
        (judged(), {}, "PASS", "measured"),
        (judged(word="UNJUDGED", code=4), {"reason": "no limits yet"}, "UNJUDGED", "measured"),
        (judged(word="SANITY"), {"reason": "a first look"}, "UNJUDGED", "measured"),
        (judged("imported"), {"label": "the vendor"}, "PASS", "imported"),
    ],
)
def test_an_accepted_run_is_a_baseline(
    site: Site, figures: JudgedFigures, terms: dict[str, str], verdict: str, origin: str
) -> None:
    baseline, table = accepted_baseline("run1", figures, site, stated(**terms))
    (run,) = baseline.runs
    assert run == AcceptedRun.model_validate(
        {
            **{"run": "run1", "accepted": WHEN, "signer": "ida@buyer", "checksums": "c1"},
            **{"verdict": verdict, "reason": terms.get("reason", ""), "libraries": LIBRARIES},
        }
    )
    assert (baseline.name, baseline.site, baseline.partition) == ("accepted", site.name, "local")
    assert (baseline.origin, baseline.label) == (origin, terms.get("label", ""))
    assert baseline.states().keys() == {"n1", "n2"}
    assert table["run"].to_list() == ["run1"]


@pytest.mark.parametrize(
    ("figures", "terms", "mistake"),
    [
        (
            judged("predicted"),
            {"reason": "r"},
            ("RUN", "origin", "predicted", "measured figures"),
        ),
        (
            judged(code=1, word="FAIL"),
            {"reason": "r"},
            ("RUN", "verdict", "FAIL", "PASS, or another one without a fault and with --reason"),
        ),
        (
            judged(code=4, word="UNJUDGED"),
            {},
            ("--reason", "", "nothing", "the reason to accept a run that is no PASS"),
        ),
        (
            judged("emulated", "measured"),
            {},
            ("RUN", "origin", "emulated, measured", "figures of one origin"),
        ),
        (
            judged(figures=rows()),
            {},
            ("RUN", "origin", "no figure that can be compared", "figures of one origin"),
        ),
        (
            judged("imported"),
            {},
            ("--label", "", "nothing", "who made the figures of the imported run"),
        ),
        (
            judged(),
            {"label": "the vendor"},
            (
                *("--label", "", "a run of the origin measured"),
                "only for figures that this kit did not make",
            ),
        ),
        (judged(nodes=state("n[1-4]")), {}, ("RUN", "nodes", "n[3-4]", "hosts of local")),
    ],
)
def test_what_is_no_baseline_is_refused(
    site: Site, figures: JudgedFigures, terms: dict[str, str], mistake: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput) as refused:
        accepted_baseline("run1", figures, site, stated(**terms))
    assert refused.value.mistakes == (InputError(*mistake),)


def test_figures_from_another_process_are_a_table_with_all_columns() -> None:
    given = judged()
    assert JudgedFigures.model_validate_json(given.model_dump_json()).figures.equals(given.figures)
    with pytest.raises(ValidationError, match="no table of figures"):
        judged(figures="[{")


def baselines(site: Site, **second: Any) -> tuple[Baseline, pl.DataFrame, Baseline, pl.DataFrame]:
    """Return a baseline of two nodes and its figures, and one of another run of n2."""
    first = accepted_baseline("run1", judged(), site, stated())
    newer = judged(nodes=state("n2", "6.2", dimms=8))
    other, values = accepted_baseline("run2", newer, site, stated())
    return *first, other.model_copy(update=second), values


def test_a_further_run_extends_the_baseline(site: Site) -> None:
    """The newer state of a node counts; a node that it lacks keeps its state."""
    together, figures = extended(*baselines(site))
    assert [each.run for each in together.runs] == ["run1", "run2"]
    assert figures["run"].to_list() == ["run1", "run2"]
    states = together.states()
    assert {host: state.traits for host, state in states.items()} == {
        "n1": {"kernel": "6.1"},
        "n2": {"kernel": "6.2"},
    }
    assert [states[host].parts.dimms for host in ("n1", "n2")] == [None, 8]


@pytest.mark.parametrize(
    ("second", "mistake"),
    [
        (
            {"origin": "imported"},
            ("RUN", "origin", "'imported'", "'measured', as in the baseline accepted"),
        ),
        ({"label": "she"}, ("RUN", "label", "'she'", "'', as in the baseline accepted")),
    ],
)
def test_runs_of_another_origin_extend_nothing(
    site: Site, second: Mapping[str, str], mistake: Sequence[str]
) -> None:
    with pytest.raises(BadInput) as refused:
        extended(*baselines(site, **second))
    assert refused.value.mistakes == (InputError(*mistake),)


def test_a_run_is_in_a_baseline_once(site: Site) -> None:
    old, figures, _, _ = baselines(site)
    with pytest.raises(BadInput) as refused:
        extended(old, figures, old, figures)
    assert refused.value.mistakes == (
        InputError("RUN", "", "run1: in the baseline accepted", "another run"),
    )


def test_what_changed_since_the_newest_accepted_run(site: Site) -> None:
    """Only nodes and packages of both runs are compared."""

    def programs(**versions: str) -> dict[ProgramTrait, str]:
        return {
            ProgramTrait("trait-version", package=name): each for name, each in versions.items()
        }

    known = judged(libraries=tuple(programs(hpc="1", gone="1", same="1").items()))
    baseline, _ = accepted_baseline("run1", known, site, stated())
    traits = {"n1": {"kernel": "6.2"}, "n2": {"kernel": "6.2"}, "n9": {"kernel": "6.3"}}
    found = changes(baseline, traits, programs(hpc="2", new="1", same="1"))
    assert [f"{each}" for each in found] == [
        "hpc: version: 1 → 2",
        "new: version: – → 1",
        "kernel: 6.1 → 6.2 on n[1-2]",
    ]
    assert vars(found[2]) == {
        **{"what": "kernel", "before": "6.1", "after": "6.2", "nodes": "n[1-2]"}
    }


DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize("whole", [True, False])
def test_the_properties_of_programs_in_which_runs_can_differ(whole: bool) -> None:
    """What is not known is no property."""

    def known(value: str) -> str | None:
        return value if whole else None

    blas: dict[str, Any] = {
        "family": "OpenBLAS",
        "version": known("0.3.2"),
        "chosen": known("SkylakeX"),
    }
    blas |= {"library": "l", "why_unknown": None, "tried": {}, "forced": None, "built_for": None}
    mpi: dict[str, Any] = {
        "family": known("Open MPI"),
        "version": "4.1",
        "library": "l",
        "mpirun": None,
    }
    library: dict[str, Any] = {
        "name": "libm",
        "path": "/l",
        "sha256": DIGEST,
        "package": known("libc6 2.36"),
    }
    program: dict[str, Any] = {
        "name": "hpl",
        "path": "/p",
        "sha256": known(DIGEST),
        "package": None,
    }
    program |= {"libraries": [library], "missing": [], "blas": blas, "mpi": mpi, "absent": {}}
    package: dict[str, Any] = {
        "origin": "preinstalled",
        "version": "1",
        "hash": "h" if whole else "",
    }
    package |= {"launcher": "plain", "programs": {"hpl": program}}
    package |= {"run_environment": {"OMP_PLACES": "cores", "EMPTY": ""} if whole else {}}
    found = software_traits(Software(packages={"hpc": Package.model_validate(package)}))
    traits = {(each.package, each.code, each.name): value for each, value in found.items()}
    assert traits == {
        ("hpc", "trait-version", ""): "1",
        ("hpc", "trait-provider", ""): "preinstalled",
        ("hpc", "trait-blas", ""): "OpenBLAS 0.3.2" if whole else "OpenBLAS",
        ("hpc", "trait-mpi", ""): "Open MPI 4.1" if whole else "4.1",
        ("hpc", "trait-library", "libm"): f"{'libc6 2.36 ' if whole else ''}{DIGEST[:DIGITS]}",
        **(OF_WHOLE if whole else {}),
    }


OF_WHOLE = {
    ("hpc", "trait-build", ""): "h",
    ("hpc", "trait-variable", "OMP_PLACES"): "cores",
    ("hpc", "trait-variable", "EMPTY"): '""',
    ("hpc", "trait-program", "hpl"): "0123456789ab",
    ("hpc", "trait-kernel", ""): "SkylakeX",
}
