"""The vendor of a BMC by the name that it reports."""

from __future__ import annotations

import pytest

from proofmark.packages.survey.answers import recognized


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("Dell Integrated Dell Remote Access Controller", "idrac"),
        ("HPE ProLiant DL385 Gen10 Plus v2", "ilo"),
        ("Lenovo", "xclarity"),
        ("Supermicro", "supermicro"),
        ("Super Micro Computer Inc.", "supermicro"),
        ("AMI AMI Redfish Server", "ami"),
        ("NVIDIA GB200 NVL", ""),
        ("Supermicro OpenBMC", "openbmc"),
        ("Supermicro ARS-121 OpenBmc", "openbmc"),
        ("Delloitte", ""),
        ("Dell and Lenovo", ""),
        ("", ""),
    ],
)
def test_a_vendor_is_recognized_by_the_name_that_its_bmc_reports(reported: str, name: str) -> None:
    """The names are those of the service roots in public mockups, and of ipmitool."""
    assert recognized(reported) == name
