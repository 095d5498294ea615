"""Damage real outputs and read them: ``python -m tests.bench.fuzz CASES SEED``.

Same accidents and same demands as in ``tests/unit/test_reader_fuzz.py``, without the search for
a smallest example, so that a hundred thousand take minutes.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

from tests.unit.test_reader_fuzz import INSERTED, check, samples, spec

from proofmark.reader.engine import read_output


def damage(text: str, dice: random.Random) -> str:
    """Let one to four accidents happen to `text`."""
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(max(1, len(text)))
        begin = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place) + 1 or len(text)
        accident = dice.choice(["cut", "delete", "double", "swap", "insert", "replace"])
        if accident == "cut":
            text = text[:place]
        elif accident == "delete":
            text = text[:begin] + text[end:]
        elif accident == "double":
            text = text[:end] + text[begin:]
        elif accident == "swap":
            text = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
        elif accident == "insert":
            text = text[:place] + dice.choice(INSERTED) + text[place:]
        else:
            text = text[:place] + chr(dice.randrange(0x3000)) + text[place + 1 :]
    return text


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
