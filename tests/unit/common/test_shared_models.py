"""Models that share their equal parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.shared_models import StrictModel, shared


class Part(StrictModel):
    number: int | float | bool | None = None
    words: tuple[str, ...] = ()


class Whole(StrictModel):
    name: str
    parts: tuple[Part, ...]


NUMBERS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
PARTS = st.builds(Part, number=NUMBERS, words=st.lists(st.text()).map(tuple))
WHOLES = st.builds(Whole, name=st.text(), parts=st.lists(PARTS).map(tuple))


@given(part=WHOLES, like=WHOLES)
def test_what_is_shared_is_equal(part: Whole, like: Whole) -> None:
    kept = part.model_copy(deep=True)
    assert shared(part, like) == kept


def test_equal_parts_are_kept_once() -> None:
    one, two = (Whole(name=name, parts=(Part(words=("a",)),)) for name in "xy")
    found = shared(two, one)
    assert found.name == "y" and found.parts is one.parts
