"""SMBIOS tables: the modes of a Xeon Phi, other machines, and damaged tables."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.node import smbios

from proofmark.common.errors import BadInput
from proofmark.site.node.cpu import knl_mode, structures

CLUSTERS = ["All2All", "Hemisphere", "Quadrant", "SNC-2", "SNC-4"]
MEMORIES = [("Cache", ""), ("Flat", ""), ("Hybrid", "25"), ("Hybrid", "50")]


def table(cluster: str, memory: str, percent: str = "25") -> bytes:
    settings = {"ClusterMode": cluster, "MemoryMode": memory, "MemoryModeHybridPercent": percent}
    return smbios(settings, "SN", knl_tables=True)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(("memory", "percent"), MEMORIES)
def test_the_mode_of_a_xeon_phi_is_read(cluster: str, memory: str, percent: str) -> None:
    mode = knl_mode(table(cluster, memory, percent or "25"), "x")
    assert mode == {"cluster": cluster, "memory": "-".join(filter(None, (memory, percent)))}


def test_another_machine_has_no_mode() -> None:
    assert knl_mode(smbios({}, "SN", knl_tables=False), "x") == {}


def test_strings_and_handles_are_read() -> None:
    first, *_, last = structures(table("SNC-2", "Flat"), "x")
    assert (first.kind, first.handle, first.strings[1]) == (1, 0x100, "S7200AP")
    assert (last.kind, last.strings) == (127, ())


@given(st.integers(0, 10_000))
def test_a_truncated_table_is_refused_or_has_no_wrong_mode(length: int) -> None:
    complete = table("SNC-4", "Flat")
    part = complete[: length % len(complete)]
    try:
        assert knl_mode(part, "x") in ({}, {"cluster": "SNC-4", "memory": "Flat"})
    except BadInput as error:
        assert "SMBIOS" in str(error)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_have_no_mode(raw: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert knl_mode(raw, "x") == {}
