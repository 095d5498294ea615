"""What one site accepted judges another: from the signed run of a site to the verdict of the other.

Both sites have nodes of one model. Their hosts have other names.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.exported import exported_row, exported_text
from tests.fixtures.fleet import fleet_run, write_inventory
from tests.fixtures.kit import item, make_kit
from tests.folders import PROBES

from proofmark.cases.reference import ELSEWHERE
from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.common.message import Message
from proofmark.judge.foreseen import judged_elsewhere, unjudged_of
from proofmark.judge.judging import judge_run
from proofmark.judge.references.derived import NOTHING_STATED, Nominal
from proofmark.judge.references.elsewhere import ordered_model, other_parts
from proofmark.judge.verdict import Verdict
from proofmark.report.products import write_products
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run, open_run, site_of
from proofmark.site.accepted_baseline import (
    IN_BASELINES,
    BaselineElsewhere,
    NodeModel,
    identifying,
    names_of_hosts,
    read_elsewhere,
    same_setting,
)
from proofmark.site.inventory import load_site
from proofmark.site.node.facts import parse_probe

HOSTS_A = tuple(f"alpha{number:02}" for number in range(8))
HOSTS_B = tuple(f"beta{number}" for number in range(4))
REPEATS = 5
LIMIT = item(case="fake", metric="rate", value=1, unit="MB/s", at_least=1, source="contract")
BLAS: dict[str, Any] = {
    "family": "openblas",
    "version": "0.3.28",
    "library": "/opt/alpha/lib/libopenblas.so",
    "chosen": "SkylakeX",
    "why_unknown": None,
    "tried": {},
    "forced": None,
    "built_for": None,
}
MPI = {"family": "openmpi", "version": "5.0.6", "library": "/opt/libmpi.so.40", "mpirun": None}
PROGRAM: dict[str, Any] = {
    "name": "fake",
    "path": "/opt/alpha00/bin/fake",
    "sha256": "1" * 64,
    "package": None,
    "libraries": (),
    "missing": (),
    "absent": {},
}


def package(**changes: Any) -> dict[str, Any]:
    """Return the programs of a site: `changes` of their BLAS, MPI, release and variables."""
    program = {
        **PROGRAM,
        "blas": {**BLAS, **changes.get("blas", {})},
        "mpi": {**MPI, **changes.get("mpi", {})},
    }
    return {
        "programs": {"fake": program},
        "version": changes.get("version", "2.3"),
        "run_environment": changes.get("variables", {"UCX_TLS": "rc,sm,self"}),
    }


def rates(hosts: Sequence[str], seed: int = 1, **factors: float) -> dict[str, list[float]]:
    """Return rates of hosts: levels and repeats differ by about half a percent."""
    random = np.random.default_rng(seed)
    found: dict[str, list[float]] = {}
    for host in hosts:
        level = 100 * float(np.exp(random.normal(0, 0.005))) * factors.get(host, 1.0)
        found[host] = (level * np.exp(random.normal(0, 0.005, REPEATS))).tolist()
    return found


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and the file of accepted signers."""
    folder = tmp_path_factory.mktemp("keys")
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/key"]
    subprocess.run(make, check=True)
    public = (folder / "key.pub").read_text().split()
    (folder / "signers").write_text(f"admin@site {public[0]} {public[1]}\n")
    return folder


def accepted_run(folder: Path, keys: Path, hosts: Sequence[str], **more: Any) -> Run:
    """Return a run that a site signed and accepted, with its inventory; the folder is current."""
    write_inventory(folder / "inventory/here", hosts)
    run = fleet_run(
        folder / "kit",
        rates(hosts),
        run_id="first",
        **{"package": package(), "items": [LIMIT], **more},
    )
    write_products(seal(run.folder).run())
    assert main(["sign", f"{run.folder}", "--key", f"{keys / 'key'}"]) == 0
    signers = ["--signers", f"{keys / 'signers'}"]
    accept = ["baseline", "accept", f"{run.folder}", "-i", "inventory/here", *signers]
    assert main(accept) == 0
    return run


def export(run: Run, *options: str) -> int:
    """Export the baseline of a run through the command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROOFMARK_KIT", f"{run.folder.parents[1]}")
        here = ("-i", "inventory/here")
        return main(["baseline", "export", f"{run.folder}", *here, *options])


@pytest.fixture(scope="module")
def site_a(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> tuple[Path, Run]:
    """The folder of site A, and its accepted run; the folder has ``a.yml``, its export."""
    folder = tmp_path_factory.mktemp("site-a")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PROOFMARK_STATE", f"{folder}/state")
        run = accepted_run(folder, keys, HOSTS_A)
        assert export(run, "-o", "a.yml", "--label", "site A of the north") == 0
    return folder, run


@pytest.fixture
def content(site_a: tuple[Path, Run]) -> dict[str, Any]:
    """The content of the file of site A."""
    read: dict[str, Any] = yaml.safe_load((site_a[0] / "a.yml").read_text())
    return read


def taken(folder: Path, content: Mapping[str, Any]) -> tuple[BaselineElsewhere, ...]:
    """Return what site B takes: through the facts of its inventory."""
    inventory = folder / "inventory/there"
    write_inventory(inventory, HOSTS_B)
    facts = inventory / "group_vars/local/partition.yml"
    partition = yaml.safe_load(facts.read_text())
    partition["partition"]["expected"] = {"elsewhere": ["a.yml"]}
    facts.write_text(yaml.safe_dump(partition))
    (inventory / IN_BASELINES).mkdir(parents=True)
    (inventory / IN_BASELINES / "a.yml").write_text(yaml.safe_dump(dict(content)))
    return load_site(inventory, "local").elsewhere


Judge = Callable[..., Verdict]


@pytest.fixture
def judged(tmp_path: Path, content: dict[str, Any]) -> Judge:
    """Return the function that returns the verdict on a run of site B with the file of site A."""

    def verdict(changed: Mapping[str, Any] | None = None, **how: Any) -> Verdict:
        files = taken(tmp_path, changed or content)
        measured = how.pop("measured", rates(HOSTS_B, 7))
        more = {"package": package(), **how}
        return judge_run(fleet_run(tmp_path / "kit", measured, elsewhere=files, **more))

    return verdict


def elsewhere_of(verdict: Verdict, host: str = HOSTS_B[0]) -> tuple[str, list[str]]:
    """Return the outcome of the figure of a host by the other site, and the codes of its reason."""
    (result,) = [each for each in verdict.results if each.record.node == host]
    (found,) = [each for each in result.references if each.kind == ELSEWHERE]
    return found.outcome, [*found.reason.codes()]


class TestFile:
    def test_it_has_the_model_the_programs_and_the_noise(self, content: dict[str, Any]) -> None:
        (model,) = content["models"].values()
        assert model["processor"] == "intel xeon gold 6148"
        assert (model["sockets"], model["cores"], model["dimms"]) == (2, 40, 12)
        (programs,) = content["programs"].values()
        assert (programs["blas"], programs["mpi"]) == ("openblas 0.3.28", "openmpi 5.0.6")
        assert programs["transport"] == {"UCX_TLS": "rc,sm,self"}
        (figure,) = content["figures"]
        assert (figure["case"], figure["metric"], figure["unit"]) == ("fake", "rate", "MB/s")
        assert figure["settings"] == {"size": 1}
        assert figure["value"] == pytest.approx(100, rel=0.02)
        assert (figure["nodes"], figure["measured"], figure["repeats"]) == (1, 8, REPEATS)
        assert 0 < figure["spread_nodes"] < 0.02 and 0 < figure["spread_repeats"] < 0.02
        assert content["label"] == "site A of the north" and content["verdict"] == "PASS"
        assert content["kit"] and content["accepted"]

    def test_it_names_no_host_no_path_and_no_site(self, site_a: tuple[Path, Run]) -> None:
        text = (site_a[0] / "a.yml").read_text()
        site = site_of(site_a[1])
        for secret in (*HOSTS_A, "alpha", "/opt", "libopenblas.so", f"{site_a[0]}", "here"):
            assert secret not in text
        assert site.name not in text.split()

    @pytest.mark.parametrize(
        ("case", "row", "code"),
        [
            ({}, {"case": "gone"}, "export-case"),
            ({}, {"metric": "gone"}, "export-case"),
            ({"writes": {"bytes": 1000}}, {}, "export-file-system"),
            ({}, {"parameters": '{"distance": "leaf"}'}, "export-part"),
            ({}, {"parameters": '{"file_system": "work"}'}, "export-part"),
            ({}, {"parameters": '{"rail": "mlx5_0:1"}'}, "export-part"),
            ({}, {"program": "gone"}, "export-programs"),
            ({}, {"node": "gone"}, "export-hardware"),
            ({}, {"node": "one,two"}, "export-mixed"),
            ({}, {"benchmark": "a\nb"}, "export-text"),
        ],
    )
    def test_what_is_not_of_a_model_is_left_out(
        self, case: dict[str, Any], row: dict[str, Any], code: str
    ) -> None:
        with pytest.raises(BadInput) as caught:
            exported_row(case, row)
        (mistake,) = caught.value.mistakes
        assert mistake.key == "figures" and f"{Message(code)} (2)" in mistake.found
        assert len(exported_row({}, {}).content.figures) == 1

    @pytest.mark.parametrize(
        "label", ["with alpha03", "see 10.1.2.3", "of /scratch", "a.example.org"]
    )
    def test_the_label_names_no_host(
        self, site_a: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch, label: str, capsys: Any
    ) -> None:
        monkeypatch.chdir(site_a[0])
        assert export(site_a[1], "-o", "b.yml", "--label", label) == 3
        assert "--label" in capsys.readouterr().err and not Path("b.yml").exists()

    def test_an_unknown_baseline_is_named(
        self, site_a: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        monkeypatch.chdir(site_a[0])
        assert export(site_a[1], "--name", "other") == 3
        assert "found other; accepted: accepted" in capsys.readouterr().err


class TestVerdict:
    def test_a_healthy_machine_passes(self, judged: Judge) -> None:
        verdict = judged()
        assert {elsewhere_of(verdict, host)[0] for host in HOSTS_B} == {"PASS"}
        assert verdict.exit_code() == 0
        head = verdict.headline()
        assert head.word == "PASS" and head.kinds[ELSEWHERE].met == len(HOSTS_B)
        assert "4 of 4 figures as another site accepted" in head.text

    @pytest.mark.fault("slower-than-elsewhere")
    def test_a_node_that_is_20_percent_slower_fails(self, judged: Judge) -> None:
        verdict = judged(measured=rates(HOSTS_B, 7, beta2=0.8))
        assert elsewhere_of(verdict, "beta2")[0] == "FAIL"
        assert verdict.exit_code() == 1
        assert [node.host for node in verdict.bad.nodes] == ["beta2"]

    @pytest.mark.parametrize("share", [0.8, 0.7, 0.5])
    def test_a_slow_machine_never_passes(self, judged: Judge, share: float) -> None:
        """All nodes are slow: no peer shows it, only the other site."""
        verdict = judged(measured=rates(HOSTS_B, 7, **dict.fromkeys(HOSTS_B, share)))
        assert verdict.exit_code() == 1
        assert {elsewhere_of(verdict, host)[0] for host in HOSTS_B} == {"FAIL"}

    @pytest.mark.parametrize(
        ("how", "code"),
        [
            ({"package": package(blas={"version": "0.3.20"})}, "condition-blas"),
            ({"package": package(blas={"family": "blis"})}, "condition-blas"),
            ({"package": package(mpi={"family": "mpich"})}, "condition-mpi"),
            ({"package": package(mpi={"version": "4.1.4"})}, "condition-mpi"),
            ({"package": package(variables={"UCX_TLS": "tcp"})}, "condition-transport"),
            ({"package": package(version="2.2")}, "condition-version"),
        ],
    )
    @pytest.mark.parametrize("share", [1.0, 0.5])
    def test_other_programs_do_not_judge(
        self, judged: Judge, how: dict[str, Any], code: str, share: float
    ) -> None:
        slow = rates(HOSTS_B, 7, **dict.fromkeys(HOSTS_B, share))
        outcome, codes = elsewhere_of(judged(measured=slow, **how))
        assert outcome == "UNJUDGED"
        assert code in codes

    @pytest.mark.parametrize("release", ["5.0.6-1", "5.0.6.0"])
    def test_another_writing_of_a_release_is_no_other_release(
        self, judged: Judge, release: str
    ) -> None:
        verdict = judged(measured=rates(HOSTS_B, 7), package=package(mpi={"version": release}))
        assert elsewhere_of(verdict, HOSTS_B[0])[0] == "PASS"

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"settings": {"size": 2}}, "size"),
            ({"settings": {}}, "size"),
            ({"settings": {"size": 1, "threads": 4}}, "threads"),
            ({"nodes": 2}, "nodes"),
            ({"mode": "a2a-flat"}, "mode"),
            ({"placement": "spread"}, "placement"),
            ({"benchmark": "OTHER"}, "benchmark"),
            ({"unit": "s"}, "unit"),
        ],
    )
    @pytest.mark.parametrize("share", [1.0, 0.5])
    def test_other_settings_do_not_judge(
        self,
        judged: Judge,
        content: dict[str, Any],
        change: dict[str, Any],
        named: str,
        share: float,
    ) -> None:
        content["figures"][0].update(change)
        slow = rates(HOSTS_B, 7, **dict.fromkeys(HOSTS_B, share))
        verdict = judged(content, measured=slow)
        (result,) = [each for each in verdict.results if each.record.node == "beta0"]
        (found,) = [each for each in result.references if each.kind == ELSEWHERE]
        assert (found.outcome, found.reason.code) == ("UNJUDGED", "elsewhere-settings")
        assert found.reason.fields["settings"] == named and found.value is None

    @pytest.mark.parametrize("old", ["6148 CPU @ 2.40GHz", "2666 MT/s"])
    def test_another_model_of_nodes_does_not_judge(self, judged: Judge, old: str) -> None:
        new = {"6148 CPU @ 2.40GHz": "6138 CPU @ 2.00GHz", "2666 MT/s": "2133 MT/s"}[old]
        changes = {host: {old: new} for host in HOSTS_B}
        outcome, codes = elsewhere_of(judged(changes=changes))
        assert outcome == "UNJUDGED" and "condition-model" in codes

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"spread_nodes": 0.1}, "elsewhere-noisy"),
            ({"measured": 1, "repeats": 1, "spread_nodes": None, "spread_repeats": None},
             "elsewhere-once"),
        ],
    )  # fmt: skip
    def test_a_figure_without_a_known_small_noise_does_not_judge(
        self, judged: Judge, content: dict[str, Any], change: dict[str, Any], code: str
    ) -> None:
        content["figures"][0].update(change)
        outcome, codes = elsewhere_of(judged(content, measured=rates(HOSTS_B, 7, beta0=0.5)))
        assert outcome == "UNJUDGED" and code in codes

    def test_a_site_that_wants_no_expected_values_has_none(self, judged: Judge) -> None:
        verdict = judged(partition={"expected": "off"})
        (result, *_) = verdict.results
        assert all(each.kind != ELSEWHERE for each in result.references)

    def test_the_kind_is_on_the_page_and_in_the_files(self, judged: Judge, tmp_path: Path) -> None:
        judged()
        run = open_run(next((tmp_path / "kit/runs").glob("fleet")))
        write_products(seal(run.folder).run())
        page = (run.folder / "report.html").read_text(encoding="utf-8")
        assert "baseline elsewhere: site A of the north, accepted " in page
        assert '"kind": "baseline elsewhere"' in (run.folder / "verdict.json").read_text()
        assert "site A of the north" in run.files.site.read_text()

    def test_the_file_is_sealed_with_the_inputs(self, judged: Judge, tmp_path: Path) -> None:
        """Who changes the copy later changes nothing: the sealed content counts."""
        judged()
        run = open_run(next((tmp_path / "kit/runs").glob("fleet")))
        sealed = seal(run.folder)
        value = site_of(run).elsewhere[0].figures[0].value
        changed = run.files.site.read_text().replace(f"{value}", "1.0")
        assert changed != run.files.site.read_text()
        run.files.site.write_text(changed)
        (of_seal,) = site_of(sealed.run()).elsewhere
        assert of_seal.figures[0].value == value


class TestPlan:
    def test_a_plan_says_what_can_be_judged(self, tmp_path: Path, content: dict[str, Any]) -> None:
        files = taken(tmp_path, content)
        kit = make_kit(tmp_path / "kit")
        kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})
        site = kit.site(hosts=HOSTS_B).model_copy(update={"elsewhere": files})
        plan, benchmarks = kit.plan(site=site), kit.benchmarks()
        probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
        facts = {group.mode: parse_probe(probe, "probe") for group in plan.groups}
        (said,) = judged_elsewhere(plan, benchmarks, site, facts)
        assert (said.code, said.fields["judged"], said.fields["metrics"]) == (
            "elsewhere-judges", 1, "fake rate",
        )  # fmt: skip
        other = probe.replace("6148 CPU @ 2.40GHz", "6138 CPU @ 2.00GHz")
        facts = {group.mode: parse_probe(other, "probe") for group in plan.groups}
        (said,) = judged_elsewhere(plan, benchmarks, site, facts)
        assert said.fields["judged"] == 0
        (found,) = unjudged_of(plan, benchmarks, site, _no_machine, other)
        assert found.kind == "reference" and "condition-model" in found.reason.codes()

    def test_a_metric_that_the_kit_lacks_is_named(
        self, tmp_path: Path, content: dict[str, Any]
    ) -> None:
        content["figures"][0]["metric"] = "other"
        files = taken(tmp_path, content)
        kit = make_kit(tmp_path / "kit")
        site = kit.site(hosts=HOSTS_B).model_copy(update={"elsewhere": files})
        plan = kit.plan(site=site)
        said = [each.code for each in judged_elsewhere(plan, kit.benchmarks(), site, {})]
        assert said == ["elsewhere-judges", "elsewhere-unknown"]


def _no_machine(mode: str) -> Any:
    raise AssertionError(mode)


Edit = Callable[[dict[str, Any]], None]


def _set(*place: Any, value: Any) -> Edit:
    def edit(content: dict[str, Any]) -> None:
        at: Any = content
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value

    return edit


EDITS: dict[str, tuple[Edit, str]] = {
    "negative": (_set("figures", 0, "value", value=-5.0), "figures.0.value"),
    "zero": (_set("figures", 0, "value", value=0), "figures.0.value"),
    "nan": (_set("figures", 0, "value", value=float("nan")), "figures.0.value"),
    "infinite": (_set("figures", 0, "value", value=float("inf")), "figures.0.value"),
    "text": (_set("figures", 0, "value", value="fast"), "figures.0.value"),
    "unknown key": (_set("hosts", value=["alpha00"]), "hosts"),
    "unknown key of a figure": (_set("figures", 0, "host", value="x"), "figures.0.host"),
    "own host": (_set("label", value="as beta1"), "label"),
    "domain": (_set("label", value="login.example.org"), "label"),
    "address": (_set("label", value="10.20.30.40"), "label"),
    "path": (_set("label", value="/home/eve"), "label"),
    "host in a setting": (_set("figures", 0, "settings", value={"peer": "beta3"}), "settings"),
    "other format": (_set("format", value=2), "format"),
    "no figure": (_set("figures", value=[]), "figures"),
    "unknown model": (_set("figures", 0, "model", value="node-7"), ""),
    "a command": (_set("label", value="$(reboot)\n"), "label"),
    "negative spread": (_set("figures", 0, "spread_nodes", value=-0.1), "spread_nodes"),
    "another name": (_set("models", "node-1", "processor", value="Xeon(R) 6148"), "models"),
}  # fmt: skip


@pytest.mark.fault("edited-elsewhere")
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_file_is_refused(tmp_path: Path, content: dict[str, Any], edit: str) -> None:
    change, key = EDITS[edit]
    change(content)
    with pytest.raises(BadInput) as caught:
        taken(tmp_path, content)
    for mistake in caught.value.mistakes:
        assert mistake.file.startswith(f"{tmp_path / 'inventory/there' / IN_BASELINES / 'a.yml'}")
        assert mistake.found and mistake.accepted
    assert any(key in mistake.key for mistake in caught.value.mistakes)


def test_an_unchanged_file_is_taken(tmp_path: Path, content: dict[str, Any]) -> None:
    """Control of the edits."""
    (found,) = taken(tmp_path, content)
    assert found.label == content["label"]


def test_a_file_that_is_only_there_is_not_taken(tmp_path: Path, content: dict[str, Any]) -> None:
    """Only the inventory names what judges: a file in the folder is nothing."""
    inventory = tmp_path / "inventory/there"
    write_inventory(inventory, HOSTS_B)
    (inventory / IN_BASELINES).mkdir(parents=True)
    (inventory / IN_BASELINES / "a.yml").write_text(yaml.safe_dump(content))
    assert load_site(inventory, "local").elsewhere == ()


@pytest.mark.parametrize("name", ["../a.yml", "/tmp/a.yml", "a.json", "a/b.yml", ".a.yml"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    inventory = tmp_path / "inventory/there"
    write_inventory(inventory, HOSTS_B)
    facts = inventory / "group_vars/local/partition.yml"
    partition = yaml.safe_load(facts.read_text())
    partition["partition"]["expected"] = {"elsewhere": [name]}
    facts.write_text(yaml.safe_dump(partition))
    with pytest.raises(BadInput, match=r"expected\.elsewhere"):
        load_site(inventory, "local")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"elsewhere/gone\.yml"):
        read_elsewhere(tmp_path, ["gone.yml"], set())


HOST = st.from_regex(r"[a-z][a-z0-9-]{0,12}[a-z0-9]", fullmatch=True)


@given(
    host=HOST,
    before=st.sampled_from(["", "of ", "x-", "("]),
    after=st.sampled_from(["", " ok", "-ib", ")"]),
    domain=st.sampled_from(["", ".example.org", ".cluster"]),
)
def test_a_name_of_a_host_is_found_in_any_text(
    host: str, before: str, after: str, domain: str
) -> None:
    names = names_of_hosts([f"{host}{domain}"], {})
    if len(host) > 2:
        assert identifying(f"{before}{host.upper()}{after}", names) == "host"
    assert identifying(f"{before}{host}{domain or ' '}{after.strip('-ib')}", names) == "host"


@given(
    hosts=st.lists(HOST.filter(lambda name: len(name) > 3), min_size=2, max_size=3, unique=True),
    data=st.data(),
)
def test_no_host_is_in_an_exported_figure(hosts: list[str], data: st.DataObject) -> None:
    """A text of a program can have a name of a host: then its figure is not exported."""
    told = data.draw(st.sampled_from(["benchmark", "parameter", "mode", "blas", "mpi", "variable"]))
    text = exported_text(hosts, told, data.draw(st.sampled_from(hosts)))
    for host in hosts:
        assert host not in text


@given(memory=st.integers(64, 2048), kept=st.floats(0, 0.009), nb=st.sampled_from([192, 224, 384]))
def test_a_matrix_that_follows_from_the_memory_is_the_same_setting(
    memory: int, kept: float, nb: int
) -> None:
    def size(bytes_: float) -> int:
        return int((0.8 * bytes_ / 8) ** 0.5 / nb) * nb

    assert same_setting(size(memory * 2**30), size(memory * 2**30 * (1 - kept)))
    assert not same_setting(size(memory * 2**30), size(memory * 2**30 / 4))


def test_what_another_site_does_not_know_is_no_condition() -> None:
    known = NodeModel(processor="a 1", sockets=2, cores=64, memory_gib=256, dimms=16)
    unknown = NodeModel(processor="a 1", sockets=2, cores=64)
    assert [*other_parts(unknown, known, ports=True)] == []
    assert [*other_parts(known, unknown, ports=True)] == ["dimms"]


def test_a_node_that_lost_a_part_is_still_of_its_model() -> None:
    """The model is the one that was ordered: a lost module is a fault, no other model."""
    whole = parse_probe((PROBES / "skl-2x6148.txt").read_text(encoding="utf-8"), "probe")
    less = whole.model_copy(update={"dimms": whole.dimms[:6]})
    model = ordered_model(whole, NOTHING_STATED)
    stated = ordered_model(less, Nominal(dimms=12, dimm_mt_per_s=model.dimm_mt_per_s))
    assert [*other_parts(model, stated, ports=True)] == []
    assert "dimms" in other_parts(model, ordered_model(less, NOTHING_STATED), ports=True)
