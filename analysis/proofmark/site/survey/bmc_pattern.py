"""The addresses of all BMCs of a partition as one pattern, from those of a few nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

LEAST = 2
"""The number of nodes whose addresses show a pattern."""
OCTET = 256


def pattern_of(addresses: Mapping[int, str]) -> str:
    """Return the pattern of consecutive IPv4 addresses, as `Firmware.bmc` has it; else "".

    Args:
        addresses: addresses of BMCs by the numbers of their nodes in the partition, from 0.
    """
    try:
        values = {number: int(IPv4Address(text)) for number, text in addresses.items()}
    except ValueError:
        return ""
    bases = {value - number for number, value in values.items()}
    if len(values) < LEAST or len(bases) != 1:
        return ""
    base = bases.pop()
    if base < 0:
        return ""
    first, last = min(base, *values.values()), max(values.values())
    octets = IPv4Address(first).packed
    if first // OCTET == last // OCTET:
        return f"{'.'.join(map(str, octets[:3]))}.{{number + {octets[3]}}}"
    if first // OCTET**2 != last // OCTET**2:
        return ""
    low = base % OCTET**2
    third = f"{{(number + {low}) // {OCTET}}}"
    return f"{octets[0]}.{octets[1]}.{third}.{{(number + {low}) % {OCTET}}}"
