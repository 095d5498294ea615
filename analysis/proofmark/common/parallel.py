"""Work that is shared among processes, and spared the garbage collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

Task = TypeVar("Task")
Made = TypeVar("Made")

_WORK: Callable[[Any], Any] | None = None


@contextmanager
def gc_paused() -> Iterator[None]:
    """Do not look for cycles meanwhile.

    A run of thousands of nodes is read into millions of objects without any; the collector would
    walk through all of them, again and again, for a sixth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parallel_map(
    work: Callable[[Task], Made], tasks: Iterable[Task], *, large: bool
) -> Iterator[Made]:
    """Yield what `work` makes of each task, in order; if it is `large`, on all processors.

    Workers are forked, so `work` need not be picklable; tasks and results must be.
    """
    processors = len(os.sched_getaffinity(0))
    if not large or processors < 2:
        yield from map(work, tasks)
        return
    global _WORK
    _WORK = work
    gc.freeze()  # what is there by now is shared with the forks for as long as nobody walks it
    try:
        with ProcessPoolExecutor(processors, get_context("fork"), initializer=gc.disable) as pool:
            yield from pool.map(_do, tasks)
    finally:
        gc.unfreeze()
        _WORK = None


def _do(task: Any) -> Any:
    assert _WORK is not None
    return _WORK(task)
