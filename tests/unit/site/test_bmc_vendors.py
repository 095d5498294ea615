"""The files of BMC vendors, and abstract settings in an inventory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proofmark.machine.bmc.back_end import AttributeSpec
from proofmark.machine.bmc.backends.redfish import offered_name, resolve, settable
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import (
    SETTINGS,
    BmcVendor,
    Firmware,
    abstract,
    vendor,
    vendors,
    wanted,
)
from proofmark.site.partition import Partition

FACTS: dict[str, Any] = {
    "environment": "local",
    "provision_from": "system",
    "scheduler": "none",
    "scratch": {"path": "/x"},
}
IDRAC = {"back_end": "redfish", "vendor": "idrac"}


def partition(settings: dict[str, Any], **firmware: Any) -> Partition:
    facts = {"modes": {"a": {"settings": settings}}, "firmware": IDRAC | firmware}
    return Partition.model_validate(FACTS | facts)


class TestFiles:
    def test_the_vendors_of_current_machines_are_known(self) -> None:
        assert vendors() == ["ami", "idrac", "ilo", "openbmc", "supermicro", "xclarity"]

    @pytest.mark.parametrize("name", vendors())
    def test_each_file_names_its_sources_and_has_settings(self, name: str) -> None:
        table = vendor(name)
        assert all(": " in source for source in table.sources)
        assert any(table.values(setting) for setting in SETTINGS)

    @pytest.mark.parametrize("name", vendors())
    def test_the_alternatives_of_a_setting_change_the_same_attributes_for_each_value(
        self, name: str
    ) -> None:
        """A mode can then be left by the other value."""
        for alternatives in vendor(name).settings.values():
            for alternative in alternatives:
                assert len({frozenset(attributes) for attributes in alternative.values()}) == 1

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"settings": {"smtt": []}}, "did you mean 'smt'"),
            ({"settings": {"smt": [{"of": {"A": 1}}]}}, "settings.smt: on, off"),
            ({"needs": {"B": {"A": 1}}}, "needs: no setting has B"),
            ({"inferred": ["A=2"]}, "inferred: no setting has A=2"),
            ({"suffix": "["}, "unterminated"),
            ({"sources": []}, "at least 1 item"),
        ],
    )
    def test_mistakes_in_a_file_are_named(self, change: dict[str, Any], message: str) -> None:
        good: dict[str, Any] = {
            "title": "T",
            "sources": ["s"],
            "apply_time": False,
            "settings": {"smt": [{"on": {"A": 1}}]},
        }
        BmcVendor.model_validate(good)
        with pytest.raises((ValidationError, Exception), match=message):
            BmcVendor.model_validate(good | change)


class TestInventory:
    def test_abstract_settings_need_no_attributes(self) -> None:
        """YAML reads ``on`` and ``off`` as truth values, and 4 as a number."""
        mode = partition({"smt": False, "numa_per_socket": 4, "turbo": True}).modes["a"]
        assert mode.settings == {"smt": "off", "numa_per_socket": "4", "turbo": "on"}

    @pytest.mark.parametrize(
        ("settings", "firmware", "message"),
        [
            (
                {"smt": "of"},
                {},
                "modes.a.settings.smt: on, off, did you mean 'off'",
            ),
            ({"smt": "off"}, {"vendor": "idrc"}, "vendor: one of .*, did you mean 'idrac'"),
            ({"smt": "off"}, {"vendor": ""}, "mode a, which needs 'smt: off'"),
            ({"smt": "off"}, {"back_end": "manual"}, "only accepted with back_end redfish"),
            ({"power_profile": "efficiency"}, {}, "power_profile: performance, balanced"),
            ({"smt": "off"}, {"vendor": "openbmc"}, "no value; openbmc has numa_per_socket, c_st"),
            (
                {"smt": "off", "threads": "Disabled"},
                {"attributes": {"threads": "LogicalProc"}},
                r"LogicalProc; it is set twice: by firmware.attributes.threads and settings.smt \(",
            ),
            (
                {"turbo": "off", "profile": "Custom"},
                {"attributes": {"profile": "SysProfile"}},
                "SysProfile; it is set twice",
            ),
        ],
    )
    def test_mistakes_are_named(
        self, settings: dict[str, Any], firmware: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ValidationError, match=message):
            partition(settings, **firmware)

    def test_each_mode_has_the_same_abstract_settings(self) -> None:
        """A node in a mode without a setting would keep the value of the mode before."""
        modes: dict[str, Any] = {"a": {"settings": {}}, "b": {"settings": {"turbo": "off"}}}
        with pytest.raises(ValidationError, match=r"a\.settings\.turbo: a value, because mode b"):
            Partition.model_validate(FACTS | {"modes": modes, "firmware": IDRAC})
        modes["a"]["settings"]["turbo"] = "on"
        Partition.model_validate(FACTS | {"modes": modes, "firmware": IDRAC})

    def test_attributes_of_the_site_come_first(self) -> None:
        firmware = Firmware(back_end="redfish", vendor="idrac", attributes={"smt": "LogicalProc"})
        settings = {"smt": "Disabled", "turbo": "off"}
        assert wanted(firmware, settings) == {"LogicalProc": "Disabled"}
        assert abstract(firmware, settings) == {"turbo": "off"}


class TestResolution:
    def offers(self, **values: list[str]) -> dict[str, AttributeSpec]:
        return {name: AttributeSpec(values=tuple(each)) for name, each in values.items()}

    def test_the_first_alternative_that_is_offered_is_used(self) -> None:
        idrac = vendor("idrac")
        older = self.offers(SubNumaCluster=["Enabled", "Disabled"])
        newer = self.offers(SubNumaCluster=["2-Way", "4-Way", "Disabled"])
        two = {"numa_per_socket": "2"}
        assert resolve(idrac, two, older, {}) == {"SubNumaCluster": "Enabled"}
        assert resolve(idrac, two, newer, {}) == {"SubNumaCluster": "2-Way"}
        with pytest.raises(NodeError) as error:
            resolve(idrac, {"numa_per_socket": "4"}, older, {})
        assert error.value.outcome is Outcome.REFUSED
        assert "looked for NumaNodesPerSocket=4, SubNumaCluster=4-Way" in error.value.text
        assert "the BMC offers SubNumaCluster with Enabled, Disabled" in error.value.text

    def test_what_an_attribute_needs_is_set_too(self) -> None:
        offers = self.offers(ProcTurboMode=["Enabled", "Disabled"], SysProfile=["Custom", "X"])
        off, now = {"turbo": "off"}, {"ProcTurboMode": "Enabled", "SysProfile": "X"}
        wanted = resolve(vendor("idrac"), off, offers, now)
        assert wanted == {"ProcTurboMode": "Disabled", "SysProfile": "Custom"}
        now["ProcTurboMode"] = "Disabled"
        assert resolve(vendor("idrac"), off, offers, now) == {"ProcTurboMode": "Disabled"}

    def test_an_attribute_that_a_profile_fixes_is_not_sent(self) -> None:
        idrac, now = vendor("idrac"), {"SysProfile": "PerfOptimized"}
        turbo = {"ProcTurboMode": "Enabled", "LogicalProc": "Enabled"}
        assert settable(idrac, turbo, now).keys() == {"LogicalProc"}
        custom = turbo | {"SysProfile": "Custom"}
        assert settable(idrac, custom, now) == custom
        assert settable(idrac, turbo | now, {"SysProfile": "Custom"}).keys() == {
            "LogicalProc",
            "SysProfile",
        }
        back = {"ProcTurbo": "Enabled", "WorkloadProfile": "x"}
        assert settable(vendor("ilo"), back, {}) == back

    @given(st.text("0123456789ABCDEF", min_size=4, max_size=4), st.sampled_from("_#"))
    def test_a_platform_adds_a_number_to_a_name(self, number: str, mark: str) -> None:
        supermicro = vendor("supermicro")
        offers = [f"SMTControlX{mark}{number}", "SMTControl2", f"SMTControl{mark}{number}"]
        assert offered_name(supermicro, "SMTControl", offers) == offers[2]
        assert offered_name(vendor("idrac"), "SMTControl", offers) == ""
