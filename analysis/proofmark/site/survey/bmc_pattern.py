"""The addresses of all BMCs of a partition as one pattern, from those of a few nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

MIN_NODES_OF_PATTERN = 2
"""The number of nodes whose addresses show a pattern."""
OCTET = 256
SIZES = (1, 2, 4)
"""The numbers of consecutive nodes that one BMC may have; a BMC of a blade has several."""


def nodes_of_bmc(addresses: Mapping[int, str]) -> int:
    """Return how many consecutive nodes each BMC has; 0 if the addresses show no pattern.

    Args:
        addresses: addresses of BMCs by the numbers of their nodes in the partition, from 0.
    """
    try:
        values = {number: int(IPv4Address(text)) for number, text in addresses.items()}
    except ValueError:
        return 0
    fitting = (
        size
        for size in SIZES
        if len({value - number // size for number, value in values.items()}) == 1
    )
    return next(fitting, 0) if len(values) >= MIN_NODES_OF_PATTERN else 0


def pattern_of(addresses: Mapping[int, str]) -> str:
    """Return the pattern of consecutive IPv4 addresses, as `Firmware.bmc` has it; else "".

    Args:
        addresses: addresses of BMCs by the numbers of their nodes in the partition, from 0.
    """
    size = nodes_of_bmc(addresses)
    if not size:
        return ""
    values = [int(IPv4Address(text)) for text in addresses.values()]
    base = min(int(IPv4Address(text)) - number // size for number, text in addresses.items())
    if base < 0:
        return ""
    number = "number" if size == 1 else f"number // {size}"
    first, last = min(base, *values), max(values)
    octets = IPv4Address(first).packed
    if first // OCTET == last // OCTET:
        return f"{'.'.join(map(str, octets[:3]))}.{{{number} + {octets[3]}}}"
    if first // OCTET**2 != last // OCTET**2:
        return ""
    low = base % OCTET**2
    third = f"{{({number} + {low}) // {OCTET}}}"
    return f"{octets[0]}.{octets[1]}.{third}.{{({number} + {low}) % {OCTET}}}"
