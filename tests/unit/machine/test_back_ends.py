"""BMC back ends: settings that are refused, credentials, syscfg, and record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.rollouts import path_with
from tests.fixtures.shells import remote_shell

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import (
    BACK_ENDS,
    AttributeSpec,
    BackEnd,
    BackEndContext,
    Condition,
    Credentials,
    FirmwareState,
    Host,
    RegistryRule,
    back_end,
    credentials,
    foreign_pending,
    refused_settings,
    typed,
)
from proofmark.machine.bmc.backends.without_bmc import read_settings
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Firmware
from proofmark.site.partition import Partition

SYSCFG = """#!/bin/sh
# Emulates syscfg with other numbers than those of Intel.
file=${0%/*}/cluster
case "$1 $4" in
"/d ") printf 'Cluster Mode\\n============\\nCurrent Value : %s\\n---------\\nPossible Values\\n' \\
    "$(cat "$file")"
    printf -- '---------\\nAll2All : 00\\nSNC-2 : 01\\nSNC-4 : 07\\nQuadrant : 04\\n' ;;
"/bcs Cluster Mode") [ "$5" = 07 ] && echo SNC-4 >"$file"; echo "$*" >>"$file.calls" ;;
esac
"""


def back_end_of(name: str) -> BackEnd:
    return back_end(
        BackEndContext(Firmware(back_end=name), Credentials(), remote_shell(["true"], 1))
    )


def test_pending_values_that_were_not_requested_are_foreign() -> None:
    state = FirmwareState(current={"a": "1"}, pending={"a": "2", "b": "3"})
    assert foreign_pending(state, [("a", "2")]) == {"b": "3"}
    assert foreign_pending(state, [("a", "9"), ("b", "3"), ("a", "2")]) == {}


def test_without_a_registry_no_setting_is_refused() -> None:
    assert list(refused_settings({"a": 1}, None)) == []
    assert list(refused_settings({"a": 1}, {"a": AttributeSpec()})) == []


def test_no_message_contains_the_password() -> None:
    account = credentials(b'{"user": "u", "password": "hush"}', {})
    assert "hush" not in repr(account) and account.hide("x hush y") == "x *** y"
    with pytest.raises(BadInput) as error:
        credentials(b'{"user": "hush"', {})
    assert "hush" not in str(error.value)


def test_an_unknown_back_end_is_named() -> None:
    assert BACK_ENDS.names() == ["manual", "redfish", "syscfg"]
    with pytest.raises(BadInput, match="did you mean 'redfish'"):
        back_end_of("redfsh")


def test_a_mode_without_firmware_attributes_is_refused() -> None:
    facts: dict[str, Any] = {
        "environment": "local",
        "provision_from": "system",
        "scheduler": "none",
        "scratch": {"path": "/x"},
        "modes": {"a": {"settings": {"smt": "off"}}},
    }
    Partition.model_validate(facts)
    with pytest.raises(ValueError, match="the attributes of mode a, which needs 'smt: off'"):
        Partition.model_validate(facts | {"firmware": {"back_end": "manual"}})


def test_syscfg_sets_a_value_by_the_number_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "syscfg").write_text(SYSCFG)
    (tmp_path / "syscfg").chmod(0o755)
    (tmp_path / "cluster").write_text("Quadrant\n")
    monkeypatch.setenv("PATH", path_with(tmp_path))
    firmware = Firmware(back_end="syscfg", remote_shell=["sh", "-s"])
    shell = remote_shell(firmware.remote_shell, 10)
    syscfg = back_end(BackEndContext(firmware, Credentials(), shell))
    host, wanted = Host("n1", ""), {"Cluster Mode": "SNC-4"}
    state = syscfg.read(host, wanted)
    assert state.current == {"Cluster Mode": "Quadrant"}
    assert [*refused_settings({"Cluster Mode": "SNC4"}, state.offers)]
    syscfg.stage(host, state, wanted)
    assert (tmp_path / "cluster.calls").read_text() == "/bcs  BIOSSETTINGS Cluster Mode 07\n"
    assert syscfg.verify(host, wanted) is None, "syscfg shows only the next boot"


def test_several_settings_of_syscfg_are_read() -> None:
    text = "A B\n===\nCurrent Value : x y\nx y : 00\nz : 0A\n\nC\n===\nCurrent Value : q\nq : 1\n"
    settings = read_settings(text)
    assert settings["A B"].value == "x y"
    assert settings["A B"].numbers == {"x y": "00", "z": "0A"}
    assert settings["C"].numbers == {"q": "1"}


def test_the_manual_back_end_refuses_each_change() -> None:
    manual = back_end_of("manual")
    message = "no remote control of the firmware; set it by hand: smt=off"
    with pytest.raises(NodeError, match=message) as error:
        manual.stage(Host("n1", ""), FirmwareState({}), {"smt": "off"})
    assert error.value.outcome is Outcome.CANNOT_SET


RULES = (
    RegistryRule((Condition("Profile", "EQU", "Fixed"),), "ReadOnly", value=True),
    RegistryRule((Condition("Profile", "EQU", "Turbo"),), "CurrentValue", "High"),
    RegistryRule(
        (Condition("Cores", "GTR", 8), Condition("Smt", "NEQ", "Off", "OR")), "GrayOut", value=True
    ),
)


@pytest.mark.parametrize(
    ("spec", "value", "current", "said"),
    [
        (AttributeSpec(kind="Integer", upper=336), 72, {}, ""),
        (AttributeSpec(kind="Integer", upper=336), "72", {}, "accepted: a whole number"),
        (AttributeSpec(kind="Integer", lower=0, upper=336), 9999, {}, "not between 0 and 336"),
        (AttributeSpec(kind="Integer", lower=1, step=4), 5, {}, ""),
        (AttributeSpec(kind="Integer", lower=1, step=4), 6, {}, "1 plus a multiple of 4"),
        (AttributeSpec(kind="Integer"), True, {}, "accepted: a whole number"),
        (AttributeSpec(kind="Boolean", values=(True, False)), 1, {}, "no value 1"),
        (AttributeSpec(kind="String", lower=2, upper=3), "abcd", {}, "4 characters"),
        (AttributeSpec(gray_out=True), "x", {}, "grayed out"),
        (AttributeSpec(gray_out=True), "x", {"a": "x"}, ""),
        (AttributeSpec(rules=RULES), "x", {"Profile": "Fixed"}, "read-only"),
        (AttributeSpec(rules=RULES), "x", {"Profile": "Other"}, ""),
        (AttributeSpec(rules=RULES), "Low", {"Profile": "Turbo"}, "Profile=Turbo makes it 'High'"),
        (AttributeSpec(rules=RULES), "High", {"Profile": "Turbo"}, ""),
        (AttributeSpec(rules=RULES), "x", {"Cores": 9}, "grayed out"),
        (AttributeSpec(rules=RULES), "x", {"Cores": 8, "Smt": "Off"}, ""),
        (AttributeSpec(rules=RULES), "x", {"Cores": 8, "Smt": "On"}, "grayed out"),
    ],
)
def test_types_limits_and_dependencies(
    spec: AttributeSpec, value: Any, current: dict[str, Any], said: str
) -> None:
    found = list(refused_settings({"a": value}, {"a": spec}, current))
    assert said in "; ".join(found) if said else found == []


def test_a_change_that_unlocks_an_attribute_is_accepted() -> None:
    spec = AttributeSpec(
        read_only=True,
        rules=(RegistryRule((Condition("Profile", "EQU", "Custom"),), "ReadOnly", value=False),),
    )
    offers, current = {"a": spec, "Profile": AttributeSpec()}, {"Profile": "Fixed"}
    assert list(refused_settings({"a": "x"}, offers, current)) == ["a: read-only"]
    assert not list(refused_settings({"a": "x", "Profile": "Custom"}, offers, current))


def test_values_get_the_types_of_the_registry() -> None:
    kinds = {"i": "Integer", "b": "Boolean", "e": "Enumeration"}
    offers = {name: AttributeSpec(kind=kind) for name, kind in kinds.items()}
    given: dict[str, Any] = {"i": "72", "b": "true", "e": 25, "unknown": "72"}
    assert typed(given, offers) == {"i": 72, "b": True, "e": "25", "unknown": "72"}
    assert typed({"i": "many"}, offers) == {"i": "many"}
    assert typed({"i": "72"}, None) == {"i": "72"}
