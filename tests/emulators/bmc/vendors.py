"""BMCs of vendors: their resources, attributes and refusals, as public mockups show them.

The names are not those of the kit's data, but of mockups and dumps: NVIDIA/libredfish
(tests/mockups), weka/tools (bios_tool/defaults-db.yml), AMD-DC-GPU/ce (perf). A wrong name in the
kit's data is then refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ON_OFF = ["Enabled", "Disabled"]
Layout = dict[str, int]


@dataclass(frozen=True)
class Vendor:
    """The behaviour of one BMC.

    Attributes:
        system: the path of the system.
        settings: the last part of the path of the settings resource.
        values: the values of each attribute; the first one is the present value.
        layout: returns the NUMA domains of a socket and the threads of a core.
        registry: the name in the BIOS resource; empty if it has none.
        listed: the name under which the registry is listed, if it is another one.
        numbered: whether ``ValueName`` is a number, and the value only the display name.
        patch: which resource is changed, ``settings`` or ``bios``.
        shows: the attributes in the settings resource: ``changed``, ``all`` or, if nothing is
            pending, ``none``.
        if_match: whether a change needs the header.
        apply_times: as the BIOS resource lists them.
        apply_time: ``job`` (it creates a job), ``unknown`` (a change with it is refused).
        profile: the attribute that fixes others.
        fixed: the values that each value of `profile` fixes.
        lock: the path of the resource with the lock or the self-test, its keys, and its values
            (locked, unlocked).
    """

    system: str
    settings: str
    values: Mapping[str, list[str]]
    layout: Callable[[Mapping[str, Any]], Layout]
    registry: str = "BiosAttributeRegistry.1.0.0"
    listed: str = ""
    numbered: bool = False
    patch: str = "settings"
    shows: str = "changed"
    if_match: bool = False
    apply_times: tuple[str, ...] = ()
    apply_time: str = "unknown"
    profile: str = ""
    fixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lock: tuple[str, tuple[str, ...], Any, Any] | None = None

    @property
    def bios(self) -> str:
        """The path of the BIOS resource."""
        return f"{self.system}/Bios"

    @property
    def pending(self) -> str:
        """The path of the settings resource."""
        return f"{self.bios}/{self.settings}"

    @property
    def target(self) -> str:
        """The path of the resource that a client changes."""
        return self.pending if self.patch == "settings" else self.bios


def _layout(smt: str, numa: str, domains: Mapping[str, int]) -> Callable[..., Layout]:
    def layout(attributes: Mapping[str, Any]) -> Layout:
        off = not smt or attributes[smt].startswith("Disable")
        return {
            "numa": domains.get(attributes.get(numa, ""), 1),
            "threads": 1 if off else 2,
        }

    return layout


DELL: dict[str, Any] = {
    "system": "/redfish/v1/Systems/System.Embedded.1",
    "settings": "Settings",
    "registry": "BiosAttributeRegistry.v1_0_3",
    "listed": "BiosAttributeRegistry.v1_0_0",
    "apply_times": ("OnReset", "AtMaintenanceWindowStart", "InMaintenanceWindowOnReset"),
    "apply_time": "job",
    "profile": "SysProfile",
    "fixed": {
        "PerfOptimized": {"ProcTurboMode": "Enabled", "ProcCStates": "Disabled"},
        "PerfPerWattOptimizedOs": {"ProcTurboMode": "Enabled", "ProcCStates": "Enabled"},
        "PerfPerWattOptimizedDapc": {"ProcTurboMode": "Enabled", "ProcCStates": "Enabled"},
    },
    "lock": (
        "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1",
        ("Attributes", "Lockdown.1.SystemLockdown"),
        "Enabled",
        "Disabled",
    ),
}
DELL_VALUES = {
    "LogicalProc": ON_OFF,
    "SysProfile": ["PerfPerWattOptimizedDapc", "PerfPerWattOptimizedOs", "PerfOptimized", "Custom"],
    "ProcCStates": ["Enabled", "Disabled", "Autonomous"],
    "ProcTurboMode": ON_OFF,
}
HPE: dict[str, Any] = {
    "system": "/redfish/v1/Systems/1",
    "settings": "settings",
    "registry": "BiosAttributeRegistryA42.v1_2_60",
    "shows": "all",
    "profile": "WorkloadProfile",
    "lock": ("/redfish/v1/Systems/1", ("Oem", "Hpe", "PostState"), "InPost", "FinishedPost"),
}
HPE_PROFILES = ["GeneralPowerEfficientCompute", "HighPerformanceCompute(HPC)", "Custom"]
LENOVO: dict[str, Any] = {
    "system": "/redfish/v1/Systems/1",
    "settings": "Pending",
    "shows": "all",
    "apply_times": ("OnReset",),
    "profile": "OperatingModes_ChooseOperatingMode",
}
SUPERMICRO: dict[str, Any] = {
    "system": "/redfish/v1/Systems/1",
    "settings": "SD",
    "registry": "BiosAttributeRegistry.v1_0_0",
    "listed": "BiosAttributeRegistry",
    "numbered": True,
    "patch": "bios",
    "shows": "none",
    "lock": (
        "/redfish/v1/Managers/1/Oem/Supermicro/SysLockdown",
        ("SysLockdownEnabled",),
        True,
        False,
    ),
}
VENDORS: dict[str, Vendor] = {
    "idrac-intel": Vendor(
        **DELL,
        values={
            **DELL_VALUES,
            "SubNumaCluster": ["Disabled", "2-Way", "4-Way"],
            "ProcHwPrefetcher": ON_OFF,
            "ProcAdjCacheLine": ON_OFF,
            "DcuStreamerPrefetcher": ON_OFF,
            "DcuIpPrefetcher": ON_OFF,
        },
        layout=_layout("LogicalProc", "SubNumaCluster", {"2-Way": 2, "4-Way": 4}),
    ),
    "idrac-amd": Vendor(
        **DELL,
        values={
            **DELL_VALUES,
            "NumaNodesPerSocket": ["1", "2", "4"],
            "L1StreamHwPrefetcher": ON_OFF,
            "L2StreamHwPrefetcher": ON_OFF,
        },
        layout=_layout("LogicalProc", "NumaNodesPerSocket", {"2": 2, "4": 4}),
    ),
    "ilo-amd": Vendor(
        **HPE,
        values={
            "ProcSMT": ON_OFF,
            "NumaMemoryDomainsPerSocket": [
                "Auto",
                "OneMemoryDomainPerSocket",
                "TwoMemoryDomainsPerSocket",
                "FourMemoryDomainsPerSocket",
            ],
            "WorkloadProfile": HPE_PROFILES,
            "MinProcIdlePower": ["C6", "NoCStates"],
            "ProcAMDBoost": ON_OFF,
            "AmdL1Prefetcher": ON_OFF,
            "AmdL2Prefetcher": ON_OFF,
        },
        fixed={
            "GeneralPowerEfficientCompute": {"ProcAMDBoost": "Enabled", "MinProcIdlePower": "C6"},
            "HighPerformanceCompute(HPC)": {
                "ProcAMDBoost": "Enabled",
                "NumaMemoryDomainsPerSocket": "FourMemoryDomainsPerSocket",
            },
        },
        layout=_layout(
            "ProcSMT",
            "NumaMemoryDomainsPerSocket",
            {"TwoMemoryDomainsPerSocket": 2, "FourMemoryDomainsPerSocket": 4},
        ),
    ),
    "ilo-intel": Vendor(
        **HPE,
        values={
            "ProcHyperthreading": ON_OFF,
            "SubNumaClustering": ["Disabled", "Enabled"],
            "WorkloadProfile": HPE_PROFILES,
            "MinProcIdlePower": ["C6", "C1E", "NoCStates"],
            "ProcTurbo": ON_OFF,
            "HwPrefetcher": ON_OFF,
            "AdjSecPrefetch": ON_OFF,
            "DcuStreamPrefetcher": ON_OFF,
            "DcuIpPrefetcher": ON_OFF,
        },
        fixed={"GeneralPowerEfficientCompute": {"MinProcIdlePower": "C6", "ProcTurbo": "Enabled"}},
        layout=_layout("ProcHyperthreading", "SubNumaClustering", {"Enabled": 2}),
    ),
    "xclarity-intel": Vendor(
        **LENOVO,
        values={
            "Processors_HyperThreading": ON_OFF,
            "Processors_SNC": ["Disabled", "Enabled"],
            "Processors_TurboMode": ON_OFF,
            "Processors_CStates": ["Autonomous", "Legacy", "Disabled"],
            "Processors_HardwarePrefetcher": ON_OFF,
            "Processors_AdjacentCachePrefetch": ON_OFF,
            "Processors_DCUStreamerPrefetcher": ON_OFF,
            "Processors_DCUIPPrefetcher": ON_OFF,
            "OperatingModes_ChooseOperatingMode": [
                "Efficiency_FavorPerformance",
                "MinimalPower",
                "Efficiency_FavorPower",
                "CustomMode",
                "MaximumPerformance",
            ],
        },
        fixed={
            "Efficiency_FavorPerformance": {
                "Processors_TurboMode": "Enabled",
                "Processors_CStates": "Autonomous",
            }
        },
        layout=_layout("Processors_HyperThreading", "Processors_SNC", {"Enabled": 2}),
    ),
    "xclarity-amd": Vendor(
        **LENOVO,
        values={
            "Processors_SMTMode": ON_OFF,
            "Memory_NUMANodesperSocket": ["NPS1", "NPS2", "NPS4"],
            "Processors_CorePerformanceBoost": ON_OFF,
            "Processors_GlobalC_stateControl": ON_OFF,
            "Processors_L1StreamHWPrefetcher": ON_OFF,
            "Processors_L2StreamHWPrefetcher": ON_OFF,
            "OperatingModes_ChooseOperatingMode": [
                "MaximumEfficiency",
                "MaximumPerformance",
                "CustomMode",
            ],
        },
        fixed={
            "MaximumEfficiency": {
                "Processors_CorePerformanceBoost": "Enabled",
                "Processors_GlobalC_stateControl": "Enabled",
            }
        },
        layout=_layout("Processors_SMTMode", "Memory_NUMANodesperSocket", {"NPS2": 2, "NPS4": 4}),
    ),
    "supermicro-intel": Vendor(
        **SUPERMICRO,
        values={
            "Hyper_Threading_ALL__F27F": ["Enable", "Disable"],
            "SNC_F300": ["Auto", "Disable", "Enable SNC2 (2-clusters)", "Enable SNC4 (4-clusters)"],
            "TurboMode_3D06": ["Enable", "Disable"],
            "CPUC6Report_3D22": ["Auto", "Disable", "Enable"],
            "HardwarePrefetcher_3C55": ["Enable", "Disable"],
            "AdjacentCachePrefetch_3C57": ["Enable", "Disable"],
            "DCUStreamerPrefetcher_3C58": ["Enable", "Disable"],
            "DCUIPPrefetcher_3C59": ["Enable", "Disable"],
        },
        layout=_layout(
            "Hyper_Threading_ALL__F27F",
            "SNC_F300",
            {"Enable SNC2 (2-clusters)": 2, "Enable SNC4 (4-clusters)": 4},
        ),
    ),
    "supermicro-amd": Vendor(
        **SUPERMICRO,
        values={
            "SMTControl_00CB": ["Auto", "Enabled", "Disabled"],
            "NUMANodesPerSocket_703E": ["NPS1", "NPS2", "NPS4"],
            "CorePerformanceBoost_00CC": ["Auto", "Enabled", "Disabled"],
            "PowerProfileSelection_00F8": ["Efficiency Mode", "High Performance Mode"],
        },
        layout=_layout("SMTControl_00CB", "NUMANodesPerSocket_703E", {"NPS2": 2, "NPS4": 4}),
    ),
    "ami-intel": Vendor(
        system="/redfish/v1/Systems/DGX",
        settings="SD",
        registry="BiosAttributeRegistry113.1.1.3",
        shows="all",
        if_match=True,
        values={
            "ProcessorHyperThreadingDisable": ON_OFF,
            "TurboMode": ["Enable", "Disable"],
            "MlcStreamerPrefetcherEnable": ["Enable", "Disable"],
            "MlcSpatialPrefetcherEnable": ["Enable", "Disable"],
            "DCUStreamerPrefetcherEnable": ["Enable", "Disable"],
            "DCUIPPrefetcherEnable": ["Enable", "Disable"],
        },
        layout=_layout("ProcessorHyperThreadingDisable", "", {}),
    ),
    "openbmc-amd": Vendor(
        system="/redfish/v1/Systems/system",
        settings="Settings",
        registry="",
        listed="BiosAttributeRegistry",
        values={
            "CbsDfCmnDramNps": [f"CbsDfCmnDramNpsNPS{number}" for number in (1, 2, 4)],
            "CbsCmnCpuGlobalCstateCtrl": [
                f"CbsCmnCpuGlobalCstateCtrl{state}" for state in ("Auto", *ON_OFF)
            ],
        },
        layout=_layout("", "CbsDfCmnDramNps", {"CbsDfCmnDramNpsNPS2": 2, "CbsDfCmnDramNpsNPS4": 4}),
    ),
}
"""The emulated BMCs by ``<vendor>-<processor>``."""
