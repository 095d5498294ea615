"""Damage real outputs and read them: ``python -m tests.bench.fuzz CASES SEED``.

The damage and the assertions are those of ``tests/unit/cases/test_reader_fuzz.py``. There is no
search for a smallest example, so that a hundred thousand examples take minutes.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

from tests.unit.cases.test_reader_fuzz import check, damage, samples, spec

from proofmark.cases.reader.engine import read_output


def main(cases: int, seed: int) -> None:
    dice = random.Random(seed)
    outcome: Counter[str] = Counter()
    begin = time.perf_counter()
    for number in range(cases):
        case, text = dice.choice(samples())
        damaged = damage(text, dice)
        try:
            readings = read_output(spec(case), case, damaged)
            check(readings, damaged)
        except Exception as error:
            outcome["broken"] += 1
            print(f"case {number}: {case}: {type(error).__name__}: {error!s:.300}", flush=True)
            if outcome["broken"] >= 10:
                break
            continue
        outcome["valid" if all(each.valid for each in readings) else "something invalid"] += 1
    print(
        f"{sum(outcome.values())} cases, seed {seed}, {time.perf_counter() - begin:.0f} s: ", end=""
    )
    print(dict(outcome))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
