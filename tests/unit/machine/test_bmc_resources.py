"""Resources of BMCs that are found by their names, ids and links, over all pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.server import PASSWORD, USER, error
from tests.emulators.bmc.tree import TreeEmulator, members

from proofmark.machine.bmc.back_end import Credentials, refused_settings
from proofmark.machine.bmc.backends.redfish import GENERIC
from proofmark.machine.bmc.client import (
    NEXT,
    ConnectionPool,
    ConnectionSettings,
    RedfishConnection,
    path_of_system,
    read_members,
)
from proofmark.machine.bmc.https import tls_context
from proofmark.machine.bmc.redfish_resources import UPDATES, open_update, read_registry
from proofmark.machine.outcome import NodeError

ROOT = "/redfish/v1"
LISTED = f"{ROOT}/Registries/Other"
NAME = "BiosAttributeRegistryP89.v1_0_0"


@contextmanager
def connection(
    tree: Mapping[str, dict[str, Any]], folder: Path, replies: Mapping[str, Reply] | None = None
) -> Iterator[RedfishConnection]:
    with TreeEmulator(tree, folder, replies) as emulator:
        context = tls_context(str(emulator.ca), verify=True)
        settings = ConnectionSettings(context, emulator.port, Credentials(USER, PASSWORD), 10, 1)
        with ConnectionPool(settings).connection(emulator.address("n1")) as bmc:
            yield bmc


@pytest.mark.parametrize(
    ("entry", "file"),
    [
        ({"Id": NAME}, {}),
        ({"Registry": NAME}, {}),
        ({"Registry": "BiosAttributeRegistry1.0"}, {"Id": NAME}),
    ],
)
@pytest.mark.parametrize("nested", [True, False])
def test_a_registry_is_found_by_its_names(
    tmp_path: Path, entry: dict[str, str], file: dict[str, str], nested: bool
) -> None:
    uri: Any = {"extref": "/store/en"} if nested else "/store/en"
    location = [{"Language": "ja", "Uri": "/store/ja"}, {"Language": "en", "Uri": uri}]
    attribute = {"AttributeName": "Smt", "Type": "Boolean", "GrayOut": True}
    condition = {
        "MapFromAttribute": "Profile",
        "MapFromProperty": "CurrentValue",
        "MapFromCondition": "EQU",
        "MapFromValue": "Custom",
    }
    rule = {
        "Type": "Map",
        "Dependency": {
            "MapFrom": [condition],
            "MapToAttribute": "Smt",
            "MapToProperty": "GrayOut",
            "MapToValue": False,
        },
    }
    tree = {
        f"{ROOT}/Registries": members(f"{ROOT}/Registries/Base", LISTED),
        f"{ROOT}/Registries/Base": {"Id": "Base"},
        LISTED: {**entry, "Location": location},
        "/store/en": {
            **file,
            "RegistryEntries": {"Attributes": [attribute], "Dependencies": [rule]},
        },
    }
    with connection(tree, tmp_path) as bmc:
        spec = read_registry(bmc, NAME, GENERIC)["Smt"]
    assert (spec.kind, spec.values) == ("Boolean", (True, False))
    assert spec.locked({}) and not spec.locked({"Profile": "Custom"})


def test_a_registry_with_another_name_is_not_taken(tmp_path: Path) -> None:
    tree = {
        f"{ROOT}/Registries": members(LISTED),
        LISTED: {"Id": "BiosAttributeRegistry", "Location": [{"Uri": "/store/en"}]},
        "/store/en": {"Id": "BiosAttributeRegistryA42"},
    }
    with (
        connection(tree, tmp_path) as bmc,
        pytest.raises(NodeError, match=f"no attribute registry {NAME}"),
    ):
        read_registry(bmc, NAME, GENERIC)


DPU = f"{ROOT}/Registries/DpuAttributeRegistry"


@pytest.mark.parametrize(
    "bad",
    [
        {"Id": "DpuAttributeRegistry", "Location": []},
        {"Id": "DpuAttributeRegistry", "Location": [{"Uri": "/not-there"}]},
        {"Id": "DpuAttributeRegistry", "Location": [None]},
        {"Id": "DpuAttributeRegistry", "Location": "none"},
        {"Id": ["DpuAttributeRegistry"]},
        None,
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_bad_entry_does_not_end_the_search_for_a_registry(
    tmp_path: Path, bad: Any, first: bool
) -> None:
    """A Dell R750 lists a registry of a DPU that it does not have."""
    paths = [DPU, LISTED] if first else [LISTED, DPU]
    tree = {
        f"{ROOT}/Registries": members(*paths),
        LISTED: {"Id": "BiosAttributeRegistry.v1", "Location": [{"Uri": "/store/en"}]},
        "/store/en": {
            "Id": NAME,
            "RegistryEntries": {"Attributes": [{"AttributeName": "Smt", "Type": "Boolean"}]},
        },
        **({DPU: bad} if bad is not None else {}),
    }
    with connection(tree, tmp_path) as bmc:
        assert read_registry(bmc, NAME, GENERIC)["Smt"].kind == "Boolean"


def test_a_registry_without_a_file_says_so(tmp_path: Path) -> None:
    tree = {f"{ROOT}/Registries": members(LISTED), LISTED: {"Id": NAME, "Location": []}}
    with (
        connection(tree, tmp_path) as bmc,
        pytest.raises(NodeError, match="has no file"),
    ):
        read_registry(bmc, NAME, GENERIC)


@pytest.mark.parametrize(("lower", "upper", "fits"), [(0, -1, True), (0, 4, False)])
def test_bounds_in_the_wrong_order_are_no_bounds(
    tmp_path: Path, lower: int, upper: int, fits: bool
) -> None:
    attribute = {
        "AttributeName": "Cap",
        "Type": "Integer",
        "LowerBound": lower,
        "UpperBound": upper,
    }
    tree = {
        f"{ROOT}/Registries": members(LISTED),
        LISTED: {"Id": NAME, "Location": [{"Uri": "/store/en"}]},
        "/store/en": {"RegistryEntries": {"Attributes": [attribute]}},
    }
    with connection(tree, tmp_path) as bmc:
        specs = read_registry(bmc, NAME, GENERIC)
    refused = [*refused_settings({"Cap": 100}, specs)]
    assert (not refused) == fits


def test_the_pages_of_a_collection(tmp_path: Path) -> None:
    tree = {
        "/c": members("/1", **{NEXT: "/c?$skip=1"}),
        "/c?$skip=1": members("/2", **{NEXT: "/c?$skip=2", "Members@odata.count": 3}),
        "/c?$skip=2": members("/3"),
        "/circle": members("/1", **{NEXT: "/circle"}),
    }
    with connection(tree, tmp_path) as bmc:
        assert [each.path("@odata.id") for each in read_members(bmc, "/c", counted=True)] == [
            "/1",
            "/2",
            "/3",
        ]
        with pytest.raises(NodeError, match="follows itself"):
            read_members(bmc, "/circle")


BAD_MEMBERS: dict[str, Any] = {
    "null": None,
    "empty": {},
    "a text": "/3",
    "no path": {"@odata.id": 3},
    "another host": {"@odata.id": "https://elsewhere/3"},
    "not sent": {"@odata.id": "/3"},
    "no object": {"@odata.id": "/list"},
}


@pytest.mark.fault("bmc-bad-member")
@pytest.mark.parametrize("bad", BAD_MEMBERS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_member_ends_no_search(tmp_path: Path, bad: str, place: int) -> None:
    """Of tasks, jobs, sensors, registries, systems and chassis: all ask `read_members`."""
    collection = members("/1", "/2")
    collection["Members"].insert(place, BAD_MEMBERS[bad])
    tree: dict[str, Any] = {"/c": {**collection, "Members@odata.count": 3}}
    tree |= {"/1": {"Id": "1"}, "/2": {"Id": "2"}, "/list": []}
    with connection(tree, tmp_path) as bmc:
        found = read_members(bmc, "/c", key="Id", counted=True)
        assert [(each.place, each.text("Id")) for each in found] == [("/1", "1"), ("/2", "2")]
        with pytest.raises(NodeError):  # the control: the collection itself
            read_members(bmc, "/none")


HTML = {"Content-Type": "text/html"}
BAD_REPLIES = {
    "page": Reply(200, None, HTML, b"<html><body>Log in</body></html>"),
    "page of an error": Reply(502, None, HTML, b"<html>Bad Gateway</html>"),
    "nothing": Reply(200),
    "no content": Reply(204),
    "a list": Reply(200, other=b"[]"),
    "half": Reply(200, other=b'{"Id": "3", '),
    "gone": error(410, "it has ended"),
    "forbidden": error(403, "no privilege"),
    "fault": error(500, "internal"),
    "busy": Reply(503, error(503, "the BMC restarts").body, {"Retry-After": "0"}),
}


@pytest.mark.fault("bmc-bad-member")
@pytest.mark.parametrize("bad", BAD_REPLIES)
def test_a_member_that_the_bmc_does_not_send_ends_no_search(tmp_path: Path, bad: str) -> None:
    """Of members, tasks that update, and the files of registries."""
    listed, own = f"{ROOT}/Registries", f"{ROOT}/TaskService/Tasks"
    name = "BiosAttributeRegistry.v1_0_0"
    attributes = {"Attributes": [{"AttributeName": "Smt", "Type": "Boolean"}]}
    update = {"Id": "2", "TaskState": "Running", "Payload": {"TargetUri": f"{UPDATES}x"}}
    tree: dict[str, dict[str, Any]] = {
        "/c": members("/bad", "/1"),
        "/1": {"Id": "1"},
        own: members("/bad", "/2"),
        "/2": update,
        listed: members("/bad", "/registry"),
        "/registry": {"Id": name, "Registry": name, "Location": [{"Uri": "/file"}]},
        "/file": {"RegistryEntries": attributes},
    }
    with connection(tree, tmp_path, {"/bad": BAD_REPLIES[bad]}) as bmc:
        assert [each.text("Id") for each in read_members(bmc, "/c", key="Id")] == ["1"]
        assert open_update(bmc) == "task 2 updates firmware and is Running: wait for its end"
        assert list(read_registry(bmc, name, GENERIC)) == ["Smt"]


def test_the_words_of_a_busy_bmc_are_named(tmp_path: Path) -> None:
    said = "status 503 at each of 1 attempts: the BMC restarts"
    sent = {"/busy": BAD_REPLIES["busy"]}
    with connection({}, tmp_path, sent) as bmc, pytest.raises(NodeError, match=said):
        bmc.get("/busy")


def test_the_system_of_a_node(tmp_path: Path) -> None:
    tree = {f"{ROOT}/Systems": members(f"{ROOT}/Systems/Node0", f"{ROOT}/Systems/Node1")}
    with connection(tree, tmp_path) as bmc:
        assert path_of_system(bmc, "Node1", {}) == f"{ROOT}/Systems/Node1"
        with pytest.raises(NodeError, match=r"2 systems \(Node0, Node1\); name that of each node"):
            path_of_system(bmc, "", {})
