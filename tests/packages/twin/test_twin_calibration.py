"""The fit of a twin's model to the messages of a real run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.shipped import shipped_site

from proofmark.packages.twin.calibration import cache_bytes, calibrated, fit, one_way_s
from proofmark.packages.twin.twin_files import Distance, MeasuredFigures, ModelFit, TwinFigure
from proofmark.packages.twin.twin_model import (
    SWITCH_S,
    Interconnect,
    SourcedValue,
    copy_rate,
    interconnect,
    network_graph,
    twin_model,
)
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.topology import Cache, Topology

SIZES = [0, *(2**power for power in range(23))]
US = 1e6


def table(**changes: float) -> Interconnect:
    """Return the row of Nehalem with other values."""
    known = interconnect("nehalem")
    assert known is not None
    values = {name: SourcedValue(value=value, assumed="test") for name, value in changes.items()}
    return known.model_copy(update=values)


def pingpong(size: int, seconds: float, distance: Distance, **changes: Any) -> TwinFigure:
    about = {
        "case": "imb-pingpong",
        "benchmark": "PingPong",
        "metric": "t_avg",
        "unit": "usec",
        "mode": "current",
        "placement": distance,
        "parameters": {"bytes": size, "ranks": 2},
        "value": US * seconds,
        "distance": distance,
    }
    return TwinFigure(**{**about, **changes})


def messages(known: Interconnect, hop_s: float = 0.0) -> list[TwinFigure]:
    distance: Distance = "other-socket" if hop_s else "socket"
    return [pingpong(size, one_way_s(known, size, hop_s), distance) for size in SIZES]


def run_of(*figures: TwinFigure) -> MeasuredFigures:
    return MeasuredFigures(run="real", figures=figures)


@given(
    software_s=st.floats(5e-8, 2e-6),
    lines_in_flight=st.floats(2, 40),
)
def test_a_fit_on_messages_of_the_model_returns_its_figures(
    software_s: float, lines_in_flight: float
) -> None:
    """With one distance, the time of a cache line is that of the table."""
    real = table(software_s=software_s, lines_in_flight=lines_in_flight)
    fitted = fit(run_of(*messages(real)), table(), 0)
    assert fitted.software_s == pytest.approx(software_s, rel=0.01)
    assert fitted.lines_in_flight == pytest.approx(lines_in_flight, rel=0.01)
    assert fitted.line_s is None
    again = calibrated(table(), fitted)
    for size in SIZES:
        assert one_way_s(again, size) == pytest.approx(one_way_s(real, size), rel=0.01)


@given(
    line_s=st.floats(2e-8, 2e-7),
    software_s=st.floats(2e-7, 2e-6),
    hop_s=st.floats(2e-8, 2e-7),
)
def test_messages_between_sockets_give_the_time_of_a_cache_line(
    line_s: float, software_s: float, hop_s: float
) -> None:
    real = table(line_s=line_s, software_s=software_s)
    fast = real.socket.model_copy(update={"bytes_per_s": SourcedValue(value=1e12, assumed="test")})
    real = real.model_copy(update={"socket": fast})
    fitted = fit(run_of(*messages(real), *messages(real, hop_s)), table(), 0)
    assert fitted.socket_latency_s == pytest.approx(hop_s, rel=0.01)
    assert fitted.line_s == pytest.approx(line_s, rel=0.1)
    again = calibrated(table(), fitted)
    for size in (0, SIZES[-1]):
        assert one_way_s(again, size) == pytest.approx(one_way_s(real, size), rel=0.02)
        far_s = one_way_s(again, size, fitted.socket_latency_s or 0.0)
        assert far_s == pytest.approx(one_way_s(real, size, hop_s), rel=0.02)


def test_the_points_of_the_fit_are_the_smallest_and_the_largest_sizes_in_the_cache() -> None:
    fitted = fit(run_of(*messages(table())), table(), 4 * 2**20)
    sizes = {each.parameters["bytes"] for each in messages(table()) if each.point in fitted.points}
    assert sizes == {0, 1, 2, 4, 8, 2**18, 2**19, 2**20}


def test_the_set_up_of_a_connection_is_not_the_latency() -> None:
    figures = messages(table())
    slow = figures[0].model_copy(update={"value": 10 * figures[0].value})
    assert fit(run_of(slow, *figures[1:]), table(), 0).software_s == pytest.approx(
        table().software_s.value, rel=0.01
    )


def test_without_a_pingpong_nothing_is_fitted() -> None:
    known = table()
    fitted = fit(run_of(pingpong(8, 1e-6, "", benchmark="Bcast")), known, 0)
    assert fitted.notes == (
        "no PingPong inside a socket: the figures of the table are not changed",
    )
    assert not fitted.points
    assert calibrated(known, fitted) == known


def test_a_message_that_is_faster_than_a_cache_line_of_the_table_changes_both() -> None:
    figures = [pingpong(size, 2e-8 + size / 1e10, "socket") for size in SIZES]
    fitted = fit(run_of(*figures), table(), 0)
    assert fitted.line_s == pytest.approx(1e-8, rel=0.01)
    assert fitted.software_s == pytest.approx(5e-9, rel=0.01)


def test_without_large_messages_no_rate_is_fitted() -> None:
    fitted = fit(run_of(*messages(table())[:5]), table(), 0)
    assert fitted.lines_in_flight is None
    assert fitted.notes == (
        "no PingPong with a rendezvous that fits into the cache: no rate is fitted",
    )


def test_sockets_that_are_not_slower_keep_the_figures_of_the_table() -> None:
    far = [pingpong(size, one_way_s(table(), size), "other-socket") for size in SIZES]
    fitted = fit(run_of(*messages(table()), *far), table(), 0)
    assert fitted.line_s is None
    assert fitted.socket_latency_s is None
    assert fitted.notes == ("messages between sockets are not slower than inside a socket",)


@given(between_s=st.floats(5e-7, 5e-5), rate=st.floats(1e8, 3e9), levels=st.integers(0, 2))
def test_messages_between_nodes_give_the_fabric(between_s: float, rate: float, levels: int) -> None:
    known = table()
    ends_s = known.line_s.value + 2 * known.adapter.latency_s.value
    start_s = ends_s + between_s + 2 * SWITCH_S * levels
    far = [
        pingpong(
            size,
            (0 if size >= known.eager_bytes.value else 2) * known.software_s.value
            + start_s
            + size / rate,
            "node",
            levels=levels,
        )
        for size in SIZES
    ]
    fitted = fit(run_of(*messages(known), *far), known, 0)
    assert fitted.adapters_s == pytest.approx(between_s, rel=0.1)
    assert fitted.link_bytes_per_s == pytest.approx(rate, rel=0.01)


def test_several_pairs_give_the_rate_of_a_link() -> None:
    """One message at a time need not fill it. A bus below this rate is that of the link too."""
    known = table()
    far = [pingpong(size, 3e-6 + size / 1e9, "node") for size in SIZES]
    pairs = pingpong(
        2**22, 1.0, "node", benchmark="Uniband", metric="bandwidth", unit="Mbytes/sec", value=9000.0
    )
    fitted = fit(run_of(*messages(known), *far, pairs), known, 0)
    assert fitted.link_bytes_per_s == pytest.approx(9e9)
    assert pairs.point in fitted.points
    assert calibrated(known, fitted).adapter.bytes_per_s.value == pytest.approx(9e9)


def test_a_fabric_that_is_faster_than_its_adapters_is_not_fitted() -> None:
    known = table()
    far = [pingpong(0, 6e-7, "node")]
    fitted = fit(run_of(*messages(known), *far), known, 0)
    assert fitted.adapters_s is None
    assert [note for note in fitted.notes if "the latency of the fabric is not fitted" in note]
    assert far[0].point not in fitted.points


def test_the_model_has_the_fitted_figures_with_their_run() -> None:
    site = shipped_site("tachyon", "tachyon2")
    topology = topology_of_mode(site, site.partition.current_mode)
    fitted = ModelFit(
        run="real", software_s=1e-7, lines_in_flight=5, adapters_s=9e-6, link_bytes_per_s=1e9
    )
    known = calibrated(table(), fitted)
    model = twin_model(site, topology, site.hosts[:2], known, fitted)
    assert model.node.links["core0"].bytes_per_s == copy_rate(known, known.line_s.value)
    link = model.network.links[f"link-{site.hosts[0]}"]
    assert (link.bytes_per_s, link.latency_s) == (1e9, 4.5e-6)
    why = {
        each.what: each.value
        for each in model.assumptions
        if each.why == "fitted to the PingPong of run real"
    }
    assert why == {
        "MPI on each side of a message": "1e-07 s",
        "cache lines of 64 bytes in flight, of one core": "5",
        "link of a node": "1e+09 bytes/s",
        "between two adapters, with one switch": "9e-06 s",
    }


def test_a_model_without_a_fit_is_that_of_the_table() -> None:
    site = shipped_site("tachyon", "tachyon2")
    assert network_graph(site, site.hosts[:2], ModelFit(run="real")) == network_graph(
        site, site.hosts[:2]
    )


def test_the_cache_is_the_last_one_of_a_core() -> None:
    topology = Topology.from_lstopo("pack:2 core:2 pu:1")
    assert cache_bytes(replace(topology, caches=())) == 0
    caches = (Cache(2, 2**20, 1, 4), Cache(3, 2**25, 2, 2))
    assert cache_bytes(replace(topology, caches=caches)) == 2**25


def test_a_fit_is_the_same_after_it_was_stored(tmp_path: Path) -> None:
    fitted = fit(run_of(*messages(table())), table(), 0)
    assert ModelFit.model_validate_json(fitted.model_dump_json()) == fitted
