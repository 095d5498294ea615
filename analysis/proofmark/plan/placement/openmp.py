"""Assigns threads to places by the rules of OpenMP for ``close`` and ``spread``.

OpenMP 5.x, "Controlling OpenMP Thread Affinity", for T threads on P places and a team whose first
thread is on place 0. If P is not a multiple of T (or T of P), the specification leaves to the
implementation which places or subpartitions get one more: here the first ones, as in GCC's libgomp.

For T > P the result differs from libgomp. The specification gives each place threads of
*consecutive* numbers: of 69 threads on 68 places, threads 0 and 1 are on place 0. libgomp gives
every place floor(T/P) threads and the rest to the first places: threads 0 and 68 are on place 0.
The number of threads of each place is the same in both.
"""

from __future__ import annotations


def _portions(whole: int, parts: int) -> list[int]:
    """Divide `whole` into `parts` numbers that differ by 1 at most, the larger ones first."""
    least, more = divmod(whole, parts)
    return [least + 1] * more + [least] * (parts - more)


def close(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: consecutive places, shared by S_p threads if T > P."""
    if threads <= places:
        return tuple(range(threads))
    counts = _portions(threads, places)
    found = []
    for place, count in enumerate(counts):
        found += [place for _ in range(count)]
    return tuple(found)


def subpartitions(parts: int, places: int) -> tuple[range, ...]:
    """Divide the places 0 … `places` - 1 into `parts` ≤ `places` ranges of consecutive places."""
    ranges = []
    start = 0
    for length in _portions(places, parts):
        ranges.append(range(start, start + length))
        start += length
    return tuple(ranges)


def spread(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: the first place of its subpartition; as `close` if T > P."""
    if threads > places:
        return close(threads, places)
    return tuple(part.start for part in subpartitions(threads, places))
