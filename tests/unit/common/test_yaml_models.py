"""YAML into models: a mistake is named with file, line, key, what was found, what is accepted."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from proofmark.common.errors import BadInput, nearest
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import check_files, load


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Inner(Strict):
    size: int
    colour: str | int = "red"


class Other(Strict):
    same_as: str


class Outer(Strict):
    name: str
    inners: dict[str, Inner] = {}
    rows: list[Inner] = []
    limits: dict[str, int | float | list[int]] = {}
    either: Inner | Other | None = None


def write(folder: Path, text: str) -> Path:
    path = folder / "x.yml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(folder: Path, text: str) -> list[str]:
    """Return the messages about `text`, without the folder."""
    with pytest.raises(BadInput) as error:
        load(write(folder, text), Outer)
    return str(error.value).replace(f"{folder}/", "").splitlines()


def test_a_right_file_gives_the_model(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a\ninners: {b: {size: 3}}\nlimits: {low: .5}\n")
    assert load(path, Outer) == Outer(name="a", inners={"b": Inner(size=3)}, limits={"low": 0.5})


def test_a_file_is_read_as_it_is_now_and_a_mistake_names_its_own_file(tmp_path: Path) -> None:
    class Frozen(StrictModel):
        name: str

    class Longer(StrictModel):
        name: str
        size: int = 3

    first = write(tmp_path, "name: a\n")
    assert load(first, Frozen) == load(first, Frozen) == Frozen(name="a")
    assert load(first, Longer) == Longer(name="a")  # another model of the same text
    assert load(write(tmp_path, "name: b\n"), Frozen).name == "b"
    for name in ("one.yml", "other.yml", "one.yml"):
        path = tmp_path / name
        path.write_text("name: a\nname: b\n")
        with pytest.raises(BadInput, match=f"{name}:2: name: found the key a second time"):
            load(path, Frozen)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nam: a", "x.yml:1: nam: found unknown key, did you mean 'name'?; accepted: one of name,"),
        (
            "name: a\ninners:\n  b:\n    size: 1\n    color: x",
            "x.yml:5: inners.b.color: found unknown key, did you mean 'colour'?; "
            "accepted: one of size, colour",
        ),
        ("name: a\nrows:\n- {size: 1}\n- {siz: 1}", "x.yml:4: rows.1.siz: found unknown key, did"),
        ("name: a\nrows: [{}]", "x.yml:2: rows.0.size: found nothing; accepted: a value"),
        ("name: a\ninners: {b: {size: x}}", "x.yml:2: inners.b.size: found 'x'; accepted: a whole"),
        ("name: a\nname: b", "x.yml:2: name: found the key a second time; accepted: each key once"),
        ("name: a\nrows: [{size: 1, size: 2}]", "x.yml:2: size: found the key a second time"),
        ("name: a\nlimits: {Low: x}", "x.yml:2: limits.Low: found 'x'; accepted: a number"),
        (
            "name: a\nlimits:\n  list: x",
            "x.yml:3: limits.list: found 'x'; accepted: a number",
        ),
        ("name: a\nlimits: {a: {cores}}", "x.yml:2: limits.a: found {cores} without quotes; "),
        ("name: a\neither: {same: x}", "x.yml:2: either.same: found unknown key"),
        ("- a", "x.yml: found a file without a mapping at the top; accepted: a YAML mapping"),
        ("", "x.yml: found a file without a mapping at the top"),
        ("name: [", "x.yml:2: found not YAML:"),
        ("name: a\nwhen: 2001-13-41", "x.yml: found not YAML: month"),
        ("name: !secret a", "x.yml:1: found not YAML: could not determine a constructor"),
        ("? [a, b]\n: c", "x.yml:1: found not YAML:"),
        ("name: &a [*a]", "x.yml: found aliases that stand for more values, or for themselves;"),
        ("name: \x00", "x.yml: found not YAML:"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert any(said.startswith(expected) for said in mistakes(tmp_path, text)), mistakes(
        tmp_path, text
    )


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    said = mistakes(tmp_path, "nam: a\nrows: [{size: x}]")
    assert [line.split(": ")[1] for line in said] == ["rows.0.size", "nam"]


def test_one_value_of_several_types_is_one_mistake(tmp_path: Path) -> None:
    (said,) = mistakes(tmp_path, "name: a\nlimits: {low: x}")
    assert said.endswith("found 'x'; accepted: a number or a list: each a whole number")


def test_long_values_are_shortened(tmp_path: Path) -> None:
    (said,) = mistakes(tmp_path, f"name: [{'a' * 500}]")
    assert len(said) < 150


@pytest.mark.parametrize("there", [False, True])
def test_what_cannot_be_read_is_named(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "x.yml"
    if there:
        path.mkdir()
    with pytest.raises(BadInput, match=r"x\.yml: found (No such file|not a regular file)"):
        load(path, Outer)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(BadInput, match="not YAML"):
        load(tmp_path / "x.yml", Outer)


@given(
    st.lists(st.sampled_from(["name", "rows", ": ", "- ", "{", "}", "[", "]", "\n", " ", "a", "&a",
                              "*a", "!x", "'", "1", ".nan", "~", "? ", "|", "#", "<<"]))
)  # fmt: skip
def test_any_text_gives_a_model_or_mistakes(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "".join(words))
        try:
            assert isinstance(load(path, Outer), Outer)
        except BadInput as error:
            assert all(mistake.file.startswith(str(path)) for mistake in error.mistakes)


def test_nearest_names_only_what_is_near() -> None:
    assert nearest("hpc", ["hpcc", "fio"]) == ", did you mean 'hpcc'?"
    assert nearest("zzz", ["hpcc", "fio"]) == ""
    assert nearest("zzz", []) == ""


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


@pytest.mark.fault("yaml-bomb")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BOMB, "aliases that stand for more values"),
        ("name: " + "[" * 100_000, "found more levels; accepted: 64 nested levels"),
        ("\n".join(" " * level + "a:" for level in range(500)), "x.yml:65: found more levels"),
        ("name: " + "x" * (5 << 20), "more than 4.0 MiB|found 5.0 MiB"),
    ],
)
def test_a_yaml_file_beyond_the_limits_is_refused(tmp_path: Path, text: str, found: str) -> None:
    path = write(tmp_path, text)
    for refuse in (lambda: load(path, Outer), lambda: check_files(tmp_path)):
        with pytest.raises(BadInput, match=found):
            refuse()


@pytest.mark.fault("yaml-slip")
@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("name: a\n\tsize: 1\n", 2, "a tab does not indent|tab character"),
        ("name: a\nrows:\n- size: 'x\n  b: 1\n", 3, "quoted scalar from line 3"),
        ("name: a\n  size: 1\n", 2, "mapping values are not allowed"),
        ("rows: [1,\n", 1, "flow"),
    ],
)
def test_a_slip_is_named_with_its_line(tmp_path: Path, text: str, line: int, found: str) -> None:
    """Ansible names neither file nor line of a slip in the variables of a group."""
    path = write(tmp_path, text)
    for refuse in (lambda: load(path, Outer), lambda: check_files(tmp_path)):
        with pytest.raises(BadInput) as refused:
            refuse()
        (mistake,) = refused.value.mistakes
        file, _, number = mistake.file.rpartition(":")
        assert (file, abs(int(number) - line) <= 2) == (f"{path}", True)
        assert re.search(found, mistake.found)


@pytest.mark.parametrize(
    "value", ["!!timestamp x", "!!int ''", "!!bool x", "!!float x", "2026-13-45", "9" * 5000]
)
def test_a_value_that_its_tag_cannot_have_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadInput, match=r"x\.yml: found not YAML"):
        load(write(tmp_path, f"name: {value}\n"), Outer)


def test_aliases_within_the_limits_are_read(tmp_path: Path) -> None:
    """Control: no fault is injected."""
    path = write(tmp_path, "name: a\nrows: [&a {size: 1}, *a, {<<: *a, colour: blue}]\n")
    check_files(tmp_path)
    rows = load(path, Outer).rows
    assert [(row.size, row.colour) for row in rows] == [(1, "red"), (1, "red"), (1, "blue")]
