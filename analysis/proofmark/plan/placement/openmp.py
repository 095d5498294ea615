"""Which place each thread of a team goes to, by the rules of OpenMP for ``close`` and ``spread``.

OpenMP 5.x, "Controlling OpenMP Thread Affinity", for T threads on P places and a team whose first
thread is on place 0. Two choices that the specification leaves to the implementation are made as
GCC's libgomp makes them: where P is no multiple of T (or T none of P), the first places or
subpartitions are those with one more.

One thing is not as libgomp does it. For T > P the specification gives each place threads of
*consecutive* numbers: 69 threads on 68 places put threads 0 and 1 on place 0. libgomp fills every
place with floor(T/P) threads and deals out the rest again from place 0: threads 0 and 68 are on
place 0. The places hold the same number of threads either way.
"""

from __future__ import annotations


def _portions(whole: int, parts: int) -> list[int]:
    """Cut a whole into parts that differ by one at most, the larger ones first."""
    least, more = divmod(whole, parts)
    return [least + 1] * more + [least] * (parts - more)


def close(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: next to each other, or shared by S_p threads if T > P."""
    if threads <= places:
        return tuple(range(threads))
    held = _portions(threads, places)
    return tuple(place for place, count in enumerate(held) for _ in range(count))


def subpartitions(parts: int, places: int) -> tuple[range, ...]:
    """Cut the places 0 … `places` - 1 into `parts` ≤ `places` runs of consecutive places."""
    cuts = []
    start = 0
    for length in _portions(places, parts):
        cuts.append(range(start, start + length))
        start += length
    return tuple(cuts)


def spread(threads: int, places: int) -> tuple[int, ...]:
    """Return the place of each thread: the first of its subpartition; as `close` if T > P."""
    if threads > places:
        return close(threads, places)
    return tuple(part.start for part in subpartitions(threads, places))
